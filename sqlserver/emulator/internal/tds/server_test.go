package tds

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTwoHundredConnections(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{"echo": echo}}
	addr, server := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=disable")
	var wg sync.WaitGroup
	all := make(chan struct{})
	var ready sync.WaitGroup
	ready.Add(200)
	for range 200 {
		wg.Go(func() {
			c, err := db.Conn(context.Background())
			ready.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			<-all // nobody gives a connection back before all have one
			var n int64
			if err := c.QueryRowContext(context.Background(), "echo", 5).Scan(&n); err != nil || n != 5 {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
	ready.Wait()
	if n := server.Connections(); n != 200 {
		t.Errorf("%d connections are open, want 200", n)
	}
	close(all)
	wg.Wait()
	server.KillConnections()
}

// waitingRequest is a client whose request waits for its end, which closes stopped.
type waitingRequest struct {
	addr    string
	server  *Server
	client  *rawClient
	stopped chan struct{}
}

func startWaiting(t *testing.T) waitingRequest {
	t.Helper()
	w := waitingRequest{stopped: make(chan struct{})}
	started := make(chan struct{})
	backend := &fakeBackend{handlers: map[string]handler{
		"wait": func(ctx context.Context, _ call, _ ResultWriter) error {
			close(started)
			<-ctx.Done()
			close(w.stopped)
			return ctx.Err()
		},
	}}
	w.addr, w.server = start(t, Config{Backend: backend})
	w.client, _ = login(t, w.addr, nil)
	w.client.send(packetBatch, 1, batchBytes("wait"))
	<-started
	return w
}

func TestClientThatGoesAwayStopsItsRequest(t *testing.T) {
	w := startWaiting(t)
	_ = w.client.conn.Close()
	<-w.stopped
}

func TestKillConnections(t *testing.T) {
	w := startWaiting(t)
	w.server.KillConnections()
	<-w.stopped
	if _, err := w.client.tryReceive(); err == nil {
		t.Error("an answer came over a connection that was killed")
	}
	login(t, w.addr, nil) // others are welcome
}

func TestServeSaysWhyItCannotAccept(t *testing.T) {
	server, err := New(Config{Backend: &fakeBackend{}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := server.Serve(t.Context(), listener); err == nil || !strings.Contains(err.Error(), "accept on") {
		t.Errorf("got %v", err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	for field, config := range map[string]Config{
		"Backend":         {},
		"RoundTrip":       {Backend: &fakeBackend{}, RoundTrip: -1},
		"MaxRequestBytes": {Backend: &fakeBackend{}, MaxRequestBytes: 100},
	} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestRoundTripIsWaitedBeforeEveryReply(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	addr, _ := start(t, Config{Backend: &fakeBackend{handlers: map[string]handler{"echo": echo}}, RoundTrip: roundTrip})
	db := openDB(t, addr, "encrypt=disable")
	if _, err := db.Exec("echo"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 3 {
		if _, err := db.Exec("echo"); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took < 3*roundTrip {
		t.Errorf("three replies took %v, less than three round trips", took)
	}
}
