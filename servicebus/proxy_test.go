package servicebus_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

// proxy stands between a client and a server, and can let connections
// fall silent as a network does that loses every packet: nobody is told.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	stalled *atomic.Bool // of the connections that exist now
	conns   sync.WaitGroup
	hello   atomic.Pointer[string] // what a client said first, the last one counts
}

// newProxy returns a proxy and the connection string that leads through
// it.
func newProxy(t *testing.T, server *emulator.Server) (*proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: server.Addr(), stalled: new(atomic.Bool)}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.conns.Wait()
	})
	return p, strings.Replace(server.ConnectionString(), server.Addr(), listener.Addr().String(), 1)
}

// stall silences the connections there are; new ones work.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled.Store(true)
	p.stalled = new(atomic.Bool)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		stalled := p.stalled
		p.mu.Unlock()
		p.conns.Go(func() { p.copy(client, server, stalled, func([]byte) {}) })
		p.conns.Go(func() {
			p.copy(server, client, stalled, func(b []byte) {
				hello := string(b)
				p.hello.Store(&hello)
			})
		})
	}
}

func (p *proxy) copy(to, from net.Conn, stalled *atomic.Bool, first func([]byte)) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for i := 0; ; i++ {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if i == 0 {
			first(buffer[:n])
		}
		if stalled.Load() {
			_, _ = io.Copy(io.Discard, from) // swallow until the client hangs up
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// A connection that falls silent is given up for a new one, within the same
// Publish.
func TestASilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders, DuplicateDetection: true}, {Name: payments}}})
	through, connectionString := newProxy(t, server)
	p := newPublisher(t, servicebus.Config{
		ConnectionString: connectionString, Source: "test", SendTimeout: time.Second,
		Routes: mustRoutes(t, servicebus.Route{Entity: orders}, servicebus.Route{EventType: "Paid", Entity: payments}),
	})
	wantAll(t, p.Publish(t.Context(), manyEvents(5, 10)), worker.Sent)
	through.stall()
	wantAll(t, p.Publish(inTime(t, time.Minute), manyEvents(10, 10)[5:]), worker.Sent)
	wantStored(t, server, 10)
	through.stall() // with a link that is not open yet
	wantAll(t, p.Publish(inTime(t, time.Minute), paid(5)), worker.Sent)
}

// So it is where no send gets its whole SendTimeout, because the publish deadline is
// sooner: what was under way is unsent, and the next Publish has a new connection.
// Left alone, go-amqp would find the silence out after a minute.
func TestASilentConnectionIsReplacedAtThePublishDeadline(t *testing.T) {
	t.Parallel()
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}}})
	through, connectionString := newProxy(t, server)
	_, p := broker{connectionString: connectionString, queue: orders}.publisher(t, servicebus.Config{SendTimeout: time.Hour})

	wantAll(t, p.Publish(t.Context(), manyEvents(5, 10)), worker.Sent)
	through.stall()
	for deadline := 1500 * time.Millisecond; ; deadline *= 2 { // on a busy machine little of it is the send's
		outcomes := p.Publish(inTime(t, deadline), manyEvents(10, 10)[5:])
		if outcomes[0].Verdict == worker.Sent {
			break
		}
		wantAll(t, outcomes, worker.Unsent)
		wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindTimeout)
		if deadline > 10*time.Second {
			t.Fatal("the silent connection is still in use")
		}
	}
	wantStored(t, server, 10)
}

// Whoever gives up a connection after others have, gives up that one, and not the new
// one that serves them.
func TestASilentConnectionIsReplacedOnce(t *testing.T) {
	t.Parallel()
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}}})
	through, connectionString := newProxy(t, server)
	_, p := broker{connectionString: connectionString, queue: orders}.publisher(t, servicebus.Config{SendTimeout: 3 * time.Second})
	wantAll(t, p.Publish(t.Context(), manyEvents(1, 10)), worker.Sent)
	through.stall()
	all := manyEvents(5, 10)
	late := make(chan []worker.Outcome)
	go func() { late <- p.Publish(t.Context(), all[1:2]) }()
	p.Publish(inTime(t, 1500*time.Millisecond), all[2:3])
	wantAll(t, p.Publish(t.Context(), all[3:4]), worker.Sent)
	wantAll(t, <-late, worker.Sent)
	wantAll(t, p.Publish(t.Context(), all[4:]), worker.Sent)
	if got := server.Stats().ConnectionsAccepted; got != 2 {
		t.Errorf("%d connections were opened, want a second one in place of the silent", got)
	}
}

// A wait that was cut short says nothing of the connection.
func TestAShortWaitReplacesNoConnection(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever})
	for range 12 {
		wantAll(t, p.Publish(inTime(t, 100*time.Millisecond), manyEvents(1, 10)), worker.Unsent)
	}
	if got := server.Stats().ConnectionsAccepted; got > 4 { // on a busy machine some of them were long
		t.Errorf("%d connections were opened", got)
	}
}

func TestWebSockets(t *testing.T) {
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}}})
	through, connectionString := newProxy(t, server)
	_, p := broker{connectionString: connectionString, queue: orders}.publisher(t, servicebus.Config{WebSockets: true})
	ctx, cancel := context.WithCancel(t.Context())
	wantAll(t, p.Publish(ctx, manyEvents(250, 600)), worker.Sent)
	cancel() // the connection outlives the Publish that opened it
	wantAll(t, p.Publish(t.Context(), manyEvents(250, 600)), worker.Sent)
	if got := server.Stats().ConnectionsAccepted; got != 1 {
		t.Errorf("%d connections were opened, want one", got)
	}
	server.KillConnections()
	wantAll(t, p.Publish(t.Context(), manyEvents(500, 600)), worker.Sent)
	wantStored(t, server, 1000)
	if hello := *through.hello.Load(); !strings.HasPrefix(hello, "GET /$servicebus/websocket HTTP/1.1\r\n") {
		t.Errorf("the connection began with %q, want a WebSocket", hello[:min(len(hello), 40)])
	}
}
