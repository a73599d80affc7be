// Package tds is the server's side of TDS 7.4, the protocol of SQL Server:
// packets, login, TLS, requests, values and results. It knows nothing of SQL;
// what a request means is decided by a Backend.
//
// What it does follows Microsoft's open specification MS-TDS; section numbers
// in comments are of that document.
//
// One goroutine of a connection reads packets, so that an attention reaches a
// request that is running; the other decodes requests, runs them and writes
// the answers. Memory grows with the bytes that a client has sent, up to
// Config.MaxRequestBytes, never with a length that it only announced.
//
// Not modelled, and refused: TDS before 7.3, TDS 8.0 (encrypt=strict), MARS,
// integrated and Microsoft Entra logins, Always Encrypted, CLR and XML schema
// types, distributed transactions. A half of a surrogate pair, which no Go
// string can hold, is replaced by U+FFFD.
package tds

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	// DefaultMaxRequestBytes leaves room for batches of events of megabytes.
	DefaultMaxRequestBytes = 64 << 20
	// loginTimeout is how long a connection may take to log in. SQL Server's
	// own limit is not documented; a client's is 15 s by default.
	loginTimeout = 30 * time.Second
	// acceptPause is waited when the process has no file descriptor left.
	acceptPause = 10 * time.Millisecond
)

// Config is how a Server is set up.
type Config struct {
	Backend Backend
	// Database is the one that a login without a database gets.
	Database string
	// ServerName is the server in error messages. Default "emulator".
	ServerName string
	// RoundTrip is waited before every reply, as a network would.
	RoundTrip time.Duration
	// MaxRequestBytes bounds one request, for a bulk load one row of it.
	// Default DefaultMaxRequestBytes.
	MaxRequestBytes int
	// Certificate is the server's; nil makes one that nobody has signed but itself.
	Certificate *tls.Certificate
	// Admit is asked when a connection was accepted; false closes it before
	// the first byte. nil admits all. One goroutine calls it.
	Admit func() bool
	// Logger may be nil.
	Logger *zap.Logger
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Backend == nil:
		return errors.New("tds: Backend is required")
	case c.RoundTrip < 0:
		return errors.New("tds: RoundTrip must not be negative")
	case c.MaxRequestBytes < maxPacketSize:
		return fmt.Errorf("tds: MaxRequestBytes must be at least %d, the largest packet", maxPacketSize)
	}
	return nil
}

// Server accepts connections. Its methods may be called at any time from any
// goroutine.
type Server struct {
	config Config
	tls    *tls.Config

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New makes a server that does not accept connections yet.
func New(config Config) (*Server, error) {
	config.ServerName = cmp.Or(config.ServerName, "emulator")
	config.MaxRequestBytes = cmp.Or(config.MaxRequestBytes, DefaultMaxRequestBytes)
	config.Logger = cmp.Or(config.Logger, zap.NewNop())
	if err := config.Validate(); err != nil {
		return nil, err
	}
	tlsConfig, err := newTLSConfig(config.Certificate)
	if err != nil {
		return nil, err
	}
	return &Server{config: config, tls: tlsConfig, conns: map[*conn]struct{}{}}, nil
}

// Serve accepts connections until ctx ends. It then closes the listener and
// every connection, and returns when all their sessions are closed. It returns
// an error only where accepting failed for another reason.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer s.KillConnections()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		raw, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				s.config.Logger.Warn("cannot accept a connection", zap.Error(err))
				time.Sleep(acceptPause)
				continue
			}
			_ = listener.Close()
			return fmt.Errorf("accept on %s: %w", listener.Addr(), err)
		}
		if s.config.Admit != nil && !s.config.Admit() {
			_ = raw.Close()
			continue
		}
		c := newConn(ctx, s, raw)
		s.track(c, true)
		running.Go(func() {
			defer s.track(c, false)
			c.serve()
		})
	}
}

func (s *Server) track(c *conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.conns[c] = struct{}{}
	} else {
		delete(s.conns, c)
	}
}

// Connections counts the open connections, whether logged in yet or not.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// KillConnections closes every TCP connection there is, in the middle of
// whatever it does. It does not wait for their sessions to end.
func (s *Server) KillConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.kill()
	}
}
