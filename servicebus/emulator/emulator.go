package emulator

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// Server is a running emulator. All its methods may be called at the same time.
type Server struct {
	cfg       Config
	policies  policies
	namespace namespace
	faults    faults
	stats     counters
	throttle  throttle
	observers observers
	addr      *net.TCPAddr
	started   time.Time
	running   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while suspended
	conns    map[net.Conn]struct{}
	clients  map[*conn]struct{} // those of conns that speak AMQP
	closed   bool
}

// Start listens and serves until Close. An error names the field of cfg that
// cannot be, or says why the address cannot be listened on.
func Start(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("service bus emulator: %w", err)
	}
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("service bus emulator: listening on %s: %w", cfg.Addr, err)
	}
	s := &Server{
		cfg: cfg, policies: newPolicies(cfg), listener: listener, addr: listener.Addr().(*net.TCPAddr), started: time.Now(),
		conns: map[net.Conn]struct{}{}, clients: map[*conn]struct{}{},
	}
	s.namespace.nodes = map[string]*node{}
	for _, e := range cfg.Entities {
		s.namespace.create(e)
	}
	s.throttle.set(cfg.CreditsPerSecond)
	s.running.Add(1)
	go s.accept(listener)
	return s, nil
}

// Addr is where to connect to, as host:port.
func (s *Server) Addr() string {
	if !s.addr.IP.IsUnspecified() {
		return s.addr.String()
	}
	// It listens on all addresses, which is none to connect to.
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.addr.Port))
}

// ConnectionString is for any client library. Without TLS it is
// PlainConnectionString.
func (s *Server) ConnectionString() string { return s.connectionString(s.policies[rootPolicy]) }

// PlainConnectionString says UseDevelopmentEmulator, which makes the libraries
// connect without TLS.
func (s *Server) PlainConnectionString() string {
	return s.endpoint(s.policies[rootPolicy]) + developmentEmulator
}

const developmentEmulator = ";UseDevelopmentEmulator=true"

func (s *Server) connectionString(p Policy) string {
	if s.cfg.TLS == nil {
		return s.endpoint(p) + developmentEmulator
	}
	return s.endpoint(p)
}

func (s *Server) endpoint(p Policy) string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", s.Addr(), p.Name, p.Key)
}

// WebSocketURL is where AMQP over WebSockets is served.
func (s *Server) WebSocketURL() string {
	scheme := "ws"
	if s.cfg.TLS != nil {
		scheme = "wss"
	}
	return scheme + "://" + s.Addr() + webSocketPath
}

// Close cuts all connections and returns when nothing runs any more. The
// messages can still be looked at.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Suspend()
	s.running.Wait()
	s.namespace.close()
}
