// Package local starts the two embedded engines with the outbox schema and a
// queue: what outbox-dev serves, and what tests of whole programs run on.
package local

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/scripts"
	busemulator "azsqloutbox/servicebus/emulator"
	"azsqloutbox/sqlserver"
	sqlemulator "azsqloutbox/sqlserver/emulator"
)

// Entity is the queue that is there when Config names none.
const Entity = "outbox-events"

// Config says where the engines listen, what they hold and how far away they
// seem. The zero Config is good for tests.
type Config struct {
	// SQLAddr and AMQPAddr default to any free port of 127.0.0.1.
	SQLAddr, AMQPAddr string
	// SQLRoundTrip and AMQPRoundTrip are waited before each answer.
	SQLRoundTrip, AMQPRoundTrip time.Duration
	// Schema is how the scripts are rendered.
	Schema scripts.Options
	// Entities default to one queue, Entity, with duplicate detection.
	Entities []busemulator.Entity
	// Tier of the namespace; default Standard.
	Tier busemulator.Tier
	// Certificate is what both engines show to clients that encrypt. Without one
	// the SQL engine makes its own, and the broker takes plain connections only.
	Certificate *tls.Certificate
	// Logger may be nil.
	Logger *zap.Logger
}

// Stack is both engines. They may be used directly, to script faults and to
// look inside.
type Stack struct {
	SQL *sqlemulator.Server
	Bus *busemulator.Server
}

// Roomy is a queue with the most room that there is, and with duplicate detection
// over what README.md asks for: with the default of 10 minutes doctor would warn.
func Roomy(name string) busemulator.Entity {
	return busemulator.Entity{Name: name, DuplicateDetection: true, DuplicateWindow: 15 * time.Minute, MaxSizeBytes: 80 << 30}
}

// Start starts the engines and applies the schema. Close the Stack.
func Start(ctx context.Context, c Config) (*Stack, error) {
	if c.Entities == nil {
		c.Entities = []busemulator.Entity{Roomy(Entity)}
	}
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	sql, err := sqlemulator.Start(sqlemulator.Config{
		Addr: c.SQLAddr, RoundTrip: c.SQLRoundTrip, Certificate: c.Certificate, Logger: c.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("start the SQL engine: %w", err)
	}
	s := &Stack{SQL: sql}
	bus := busemulator.Config{
		Addr: c.AMQPAddr, RoundTrip: c.AMQPRoundTrip, Tier: c.Tier, Entities: c.Entities, Logger: c.Logger,
	}
	if c.Certificate != nil {
		bus.TLS = &tls.Config{Certificates: []tls.Certificate{*c.Certificate}, MinVersion: tls.VersionTLS12}
	}
	s.Bus, err = busemulator.Start(bus)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the broker: %w", err), s.Close())
	}
	if err := ApplySchema(ctx, sql.DSN(), c.Schema); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends both engines; what they held is gone.
func (s *Stack) Close() error {
	if s.Bus != nil {
		s.Bus.Close()
	}
	return s.SQL.Close()
}

// ApplySchema runs the numbered scripts through the driver, batch by batch, as
// sqlcmd would.
func ApplySchema(ctx context.Context, dsn string, o scripts.Options) error {
	db, err := sqlserver.Open(dsn, sqlserver.Options{AppName: "outbox-dev schema"})
	if err != nil {
		return err
	}
	defer db.Close()
	// SET options of one batch are for the next one: one connection for all.
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to apply the schema: %w", err)
	}
	defer conn.Close()
	for _, render := range []func(scripts.Options) (string, error){scripts.Outbox, scripts.Enqueue} {
		script, err := render(o)
		if err != nil {
			return err
		}
		for _, batch := range scripts.Batches(script) {
			if _, err := conn.ExecContext(ctx, batch); err != nil {
				return fmt.Errorf("apply the schema: %w", err)
			}
		}
	}
	return nil
}
