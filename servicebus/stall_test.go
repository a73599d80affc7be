package servicebus_test

import (
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

// stallingProxy stands between a client and a server, and can let connections
// fall silent as a network does that loses every packet: nobody is told.
type stallingProxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	stalled *atomic.Bool // of the connections that exist now
	conns   sync.WaitGroup
}

func newStallingProxy(t *testing.T, target string) *stallingProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &stallingProxy{listener: listener, target: target, stalled: new(atomic.Bool)}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.conns.Wait()
	})
	return p
}

// stall silences the connections there are; new ones work.
func (p *stallingProxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled.Store(true)
	p.stalled = new(atomic.Bool)
}

func (p *stallingProxy) accept() {
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
		p.conns.Go(func() { p.copy(client, server, stalled) })
		p.conns.Go(func() { p.copy(server, client, stalled) })
	}
}

func (p *stallingProxy) copy(to, from net.Conn, stalled *atomic.Bool) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
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
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders, DuplicateDetection: true}}})
	proxy := newStallingProxy(t, server.Addr())
	connectionString := strings.Replace(server.ConnectionString(), server.Addr(), proxy.listener.Addr().String(), 1)
	_, p := broker{connectionString: connectionString, queue: orders}.publisher(t, servicebus.Config{SendTimeout: time.Second})

	wantAll(t, p.Publish(t.Context(), manyEvents(5, 10)), worker.Sent)
	proxy.stall()
	wantAll(t, p.Publish(inTime(t, time.Minute), manyEvents(10, 10)[5:]), worker.Sent)
	wantStored(t, server, 10)
}
