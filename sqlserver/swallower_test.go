package sqlserver_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// swallower is a TCP proxy that can let everything vanish without a reset.
type swallower struct {
	listener net.Listener
	target   string
	dead     atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newSwallower(t *testing.T, target string) *swallower {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &swallower{listener: listener, target: target}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		wg.Wait()
	})
	return s
}

func (s *swallower) addr() string { return s.listener.Addr().String() }

func (s *swallower) swallow(dead bool) { s.dead.Store(dead) }

func (s *swallower) serve(client net.Conn) {
	server, err := net.Dial("tcp", s.target)
	if err != nil {
		client.Close()
		return
	}
	s.mu.Lock()
	s.conns = append(s.conns, client, server)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		wg.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			_, _ = io.Copy(writer{s, way[1]}, way[0])
		})
	}
	wg.Wait()
}

type writer struct {
	s    *swallower
	conn net.Conn
}

func (w writer) Write(b []byte) (int, error) {
	if w.s.dead.Load() {
		return len(b), nil
	}
	return w.conn.Write(b)
}
