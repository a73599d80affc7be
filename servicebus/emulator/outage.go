package emulator

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"go.uber.org/zap"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// KillConnections cuts all connections without a word, as a network does that
// fails. New ones are welcome.
func (s *Server) KillConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Logger.Debug("killing all connections", zap.Int("connections", len(s.conns)))
	for n := range s.conns {
		_ = n.Close()
	}
}

// CloseConnections closes all AMQP connections with an error, as the service does
// where it moves a namespace (amqp:connection:forced), and returns how many there
// were. New ones are welcome.
func (s *Server) CloseConnections(condition, description string) int {
	s.mu.Lock()
	clients := slices.Collect(maps.Keys(s.clients))
	s.mu.Unlock()
	for _, c := range clients {
		c.dismiss(&amqp.Error{Condition: amqp.Symbol(condition), Description: description})
	}
	return len(clients)
}

// Suspend is the beginning of an outage: all connections are cut without a word,
// and new ones refused by the operating system, until Resume. What the entities
// hold stays, and their time goes on.
func (s *Server) Suspend() {
	s.mu.Lock()
	listener := s.listener
	s.listener = nil
	s.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
	s.KillConnections()
}

// Resume is the end of an outage: the server is there again at the same address.
// An error says that the address is taken, or that the server is closed; where
// there is no outage, nothing happens.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("service bus emulator: resuming: it is closed")
	case s.listener != nil:
		return nil
	}
	listener, err := net.Listen("tcp", s.addr.String())
	if err != nil {
		return fmt.Errorf("service bus emulator: resuming: listening on %s: %w", s.addr, err)
	}
	s.listener = listener
	s.running.Add(1)
	go s.accept(listener)
	return nil
}
