package emulator

import (
	"bufio"
	"crypto/tls"
	"net"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// accept takes connections until the listener is closed.
func (s *Server) accept(listener net.Listener) {
	defer s.running.Done()
	for {
		n, err := listener.Accept()
		if err != nil {
			return
		}
		if !s.track(n) {
			_ = n.Close()
			continue
		}
		go s.greet(n)
	}
}

// greet finds out what a connection speaks by its first byte: TLS, HTTP for a
// WebSocket or an admin operation, or AMQP. So one port serves all, as port 443 of the service does
// not, but a test then needs to know of one address only.
func (s *Server) greet(n net.Conn) {
	defer s.untrack(n)
	p := &peeked{Conn: n, in: bufio.NewReaderSize(n, 512)}
	if p.first() == tlsHandshake {
		if s.cfg.TLS == nil {
			s.cfg.Logger.Debug("a TLS connection, but no certificate is configured")
			_ = n.Close()
			return
		}
		inner := tls.Server(p, s.cfg.TLS)
		p = &peeked{Conn: inner, in: bufio.NewReaderSize(inner, 512)}
	}
	if speaksHTTP(p.first()) {
		s.serveHTTP(p)
		return
	}
	s.serve(p)
}

// serve speaks AMQP on a connection until it ends.
func (s *Server) serve(n net.Conn) {
	s.stats.connections.Add(1)
	s.stats.connectionsTotal.Add(1)
	defer s.stats.connections.Add(-1)
	c := newConn(s, n)
	s.admit(c)
	defer func() {
		s.mu.Lock()
		delete(s.clients, c)
		s.mu.Unlock()
	}()
	c.serve()
}

// admit counts a client among those connected, or has it told that there are
// too many. The service calls it a quota; its condition is believed.
func (s *Server) admit(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= s.cfg.MaxConnections {
		c.refusal = amqp.Errorf(broker.CondResourceLimit, "ConnectionsQuotaExceeded for namespace %s. (emulator: %d are open)",
			s.Addr(), len(s.clients))
		return
	}
	s.clients[c] = struct{}{}
}

const (
	tlsHandshake = 0x16 // the record type that every TLS connection begins with
	// greetTimeout is how long a client may take to say anything.
	greetTimeout = 30 * time.Second
)

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	in *bufio.Reader
}

// first waits for the first byte, 0 if there is none.
func (p *peeked) first() byte {
	_ = p.SetReadDeadline(time.Now().Add(greetTimeout))
	defer func() { _ = p.SetReadDeadline(time.Time{}) }()
	b, err := p.in.Peek(1)
	if err != nil {
		return 0
	}
	return b[0]
}

func (p *peeked) Read(b []byte) (int, error) { return p.in.Read(b) }

// track remembers a connection so that Suspend and Close end it; it says no where
// they were called since it was accepted.
func (s *Server) track(n net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return false
	}
	s.conns[n] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) untrack(n net.Conn) {
	_ = n.Close()
	s.mu.Lock()
	delete(s.conns, n)
	s.mu.Unlock()
	s.running.Done()
}
