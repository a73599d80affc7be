package diagnose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"azsqloutbox/sqlserver"
)

// source asks the database. What several sections need is asked once.
type source struct {
	names   sqlserver.Names
	conn    *sqlserver.Dedicated
	env     environment
	since   time.Time
	top     int
	limit   time.Duration // of one statement
	cached  *once[[]cachedStatement]
	indexes *once[catalog]
	storage *once[storage]
	store   *once[queryStore]
}

func newSource(c Config) *source {
	s := &source{
		names: c.Names, top: c.Top, limit: c.StatementTimeout,
		conn: sqlserver.NewDedicated(c.DB, c.LockTimeout, nil),
	}
	s.cached = &once[[]cachedStatement]{get: s.readCache}
	s.indexes = &once[catalog]{get: s.readCatalog}
	s.storage = &once[storage]{get: s.readStorage}
	s.store = &once[queryStore]{get: s.readQueryStore}
	return s
}

// use runs fn on the connection, for the time that one statement may take.
func (s *source) use(ctx context.Context, op string, fn func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, errSlow)
	defer cancel()
	err := s.conn.Use(ctx, op+" of "+s.names.String(), func(conn *sql.Conn) error { return fn(ctx, conn) })
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return fmt.Errorf("%s of %s: %w (%s)", op, s.names, errSlow, s.limit)
	}
	return err
}

// each runs a query and scans every row of it.
func (s *source) each(ctx context.Context, op, query string, args []any, scan func(*sql.Rows) error) error {
	return s.use(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// table names the event table as OBJECT_ID wants it.
func (s *source) table() sql.NamedArg { return sql.Named("table", s.names.Events()) }

// optional is the reason why part of a section is missing; empty where err is
// nil.
func (s *source) optional(what string, sc scope, err error) string {
	if err == nil {
		return ""
	}
	reason, remedy := s.env.reason(sc, err)
	if remedy != "" {
		reason += " " + remedy
	}
	return "No " + what + ": " + reason
}

// once keeps the answer to a question that several sections ask.
type once[T any] struct {
	get   func(context.Context) (T, error)
	asked bool
	value T
	err   error
}

func (o *once[T]) read(ctx context.Context) (T, error) {
	if !o.asked {
		o.value, o.err = o.get(ctx)
		o.asked = true
	}
	return o.value, o.err
}
