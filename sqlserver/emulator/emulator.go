package emulator

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver/emulator/internal/engine"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// What Config fills in for a client that does not care.
const (
	DefaultUser     = "outbox"
	DefaultPassword = "Outbox-Local-1"
	DefaultDatabase = "outbox"
)

// Config is how a Server is set up. The zero Config is good for tests.
type Config struct {
	// Addr is where to listen, host:port. Default 127.0.0.1:0, any free port.
	Addr string
	// User and Password are the only login there is; its user is dbo. Defaults
	// DefaultUser and DefaultPassword. CREATE USER … WITH PASSWORD makes users that
	// connect by DSNFor.
	User     string
	Password string
	// Database is the name of the only user database. Default DefaultDatabase.
	Database string
	// Edition is the product to stand for. Default AzureSQLDatabase.
	Edition Edition
	// ServiceObjective is what DATABASEPROPERTYEX says of an Azure SQL database;
	// nothing is limited by it. Default GP_Gen5_2.
	ServiceObjective string
	// RoundTrip is waited before every reply, as a network would.
	RoundTrip time.Duration
	// Certificate is what the server shows to clients that encrypt. nil has it
	// make one of its own, as SQL Server does, which no client can verify.
	Certificate *tls.Certificate
	// Logger may be nil.
	Logger *zap.Logger
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("emulator: Addr %q is not host:port: %w", c.Addr, err)
	}
	if c.RoundTrip < 0 {
		return errors.New("emulator: RoundTrip must not be negative")
	}
	return c.validateEdition()
}

// Server is a running emulator. Its methods may be called at any time from any
// goroutine.
type Server struct {
	config   Config
	listener net.Listener
	engine   *engine.Engine
	protocol *tds.Server
	faults   faults
	log      statementLog

	stop   context.CancelFunc
	served chan struct{}
	failed error // of Serve; read after served is closed
}

// Start listens and serves until Close.
func Start(config Config) (*Server, error) {
	config.Addr = cmp.Or(config.Addr, "127.0.0.1:0")
	config.User = cmp.Or(config.User, DefaultUser)
	config.Password = cmp.Or(config.Password, DefaultPassword)
	config.Database = cmp.Or(config.Database, DefaultDatabase)
	config.Logger = cmp.Or(config.Logger, zap.NewNop())
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Server{config: config, served: make(chan struct{})}
	s.engine = engine.New(engine.Config{
		Admin:            config.User,
		Database:         config.Database,
		Logger:           config.Logger,
		Edition:          engineEditions[config.Edition],
		ServiceObjective: config.ServiceObjective,
	})
	var err error
	s.protocol, err = tds.New(tds.Config{
		Backend:     &backend{server: s, inner: s.engine},
		Database:    config.Database,
		RoundTrip:   config.RoundTrip,
		Certificate: config.Certificate,
		Admit:       s.faults.admit,
		Logger:      config.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.listener, err = net.Listen("tcp", config.Addr)
	if err != nil {
		return nil, fmt.Errorf("emulator: listen on %s: %w", config.Addr, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.served)
		s.failed = s.protocol.Serve(ctx, s.listener)
	}()
	return s, nil
}

// Close ends every connection, rolls back what they had open, and returns when
// nothing runs any more. It may be called again.
func (s *Server) Close() error {
	s.stop()
	<-s.served
	return s.failed
}

// Addr is host:port, with the port that was chosen.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// DSN is for sql.Open("sqlserver", …). It asks for encryption, so that TLS is
// really used, and trusts the certificate, because the server signs its own;
// replace encrypt=true by encrypt=disable to do without.
func (s *Server) DSN() string { return s.DSNFor(s.config.User, s.config.Password) }

// DSNFor is the DSN of a contained user, whom CREATE USER … WITH PASSWORD has
// made: it may do what it was granted, and nothing else.
func (s *Server) DSNFor(user, password string) string {
	u := url.URL{
		Scheme: "sqlserver",
		User:   url.UserPassword(user, password),
		Host:   s.Addr(),
		RawQuery: url.Values{
			"database":               {s.config.Database},
			"encrypt":                {"true"},
			"trustservercertificate": {"true"},
		}.Encode(),
	}
	return u.String()
}

// Connections counts the open TCP connections, whether logged in yet or not.
func (s *Server) Connections() int { return s.protocol.Connections() }

// KillConnections drops every TCP connection now, in the middle of whatever it
// does. Their sessions end on their own soon after: transactions are rolled
// back, locks released. New connections are accepted.
func (s *Server) KillConnections() { s.protocol.KillConnections() }
