// Package emulator is an embedded Azure Service Bus for tests and local use: an
// AMQP 1.0 server on a real socket that the real client libraries use
// unmodified.
//
// Modelled, and meant to behave as the service does:
//
//   - queues, topics and subscriptions with correlation filters, dead-letter
//     queues, peek-lock and receive-and-delete, complete, abandon, defer,
//     dead-letter, lock expiry, delivery count, time to live, scheduled
//     messages, message sessions with state, duplicate detection by message id
//   - batches that are taken whole or not at all; limits on the size of
//     messages and batches by tier, on their number, on the entity's size
//   - $cbs with SAS tokens whose signature and expiry are checked, SASL PLAIN
//     with the same key; $management: peek, schedule, cancel, renew, settle,
//     receive deferred messages, session state
//   - flow control by session window and link credit, drain, both settle
//     modes, heartbeats, TLS, AMQP over WebSockets, all on one port
//
// As on the service, a message that was locked by a connection that is gone
// stays locked until its lock ends, while a session is free at once.
//
// Refused with a clear AMQP error (amqp:not-implemented, or 501 in a management
// reply): transactions, SQL filters and rule management, dynamic nodes,
// transfer dead-letter queues, source filters other than the session filter,
// scheduling by $management on a topic.
//
// Accepted as syntax only: JWTs, the policy name and audience of a token (any
// good token opens the whole connection), durability and expiry policy of a
// terminus, priorities.
//
// Not there at all, so that nothing can be concluded about it: partitioning
// beyond the rule on batches, auto-forwarding, the idle timeout of links,
// quotas on connections and operations, geo-replication, persistence. The
// service's exact error texts are imitated where they were known; where the
// condition of an error is only believed, the line that makes it says so.
//
// Faults are scripted with [Server.Inject]; [Server.Messages], [Server.Counts]
// and [Server.Stats] look inside.
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
	listener  net.Listener
	started   time.Time
	running   sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	clients map[*conn]struct{} // those of conns that speak AMQP
	closed  bool
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
		cfg: cfg, policies: newPolicies(cfg), namespace: newNamespace(cfg.Entities), listener: listener, started: time.Now(),
		conns: map[net.Conn]struct{}{}, clients: map[*conn]struct{}{},
	}
	s.running.Add(1)
	go s.accept()
	return s, nil
}

// Addr is where to connect to, as host:port.
func (s *Server) Addr() string {
	at := s.listener.Addr().(*net.TCPAddr)
	if !at.IP.IsUnspecified() {
		return at.String()
	}
	// It listens on all addresses, which is none to connect to.
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
}

// ConnectionString is for any client library. Without TLS it says
// UseDevelopmentEmulator, which makes the libraries connect without it.
func (s *Server) ConnectionString() string { return s.connectionString(s.policies[rootPolicy]) }

func (s *Server) connectionString(p Policy) string {
	text := fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", s.Addr(), p.Name, p.Key)
	if s.cfg.TLS == nil {
		text += ";UseDevelopmentEmulator=true"
	}
	return text
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
	for n := range s.conns {
		_ = n.Close()
	}
	s.mu.Unlock()
	_ = s.listener.Close()
	s.running.Wait()
	s.namespace.close()
}
