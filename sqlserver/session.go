package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"golang.org/x/sync/semaphore"
)

// How a session is set up, once. A pooled checkout would cost the reset of the
// connection and this request every time.
//
//   - ARITHABORT is a key of the plan cache: ON is what Management Studio has, so
//     that a person who looks at a statement sees the plan that runs.
//   - XACT_ABORT: an error inside a transaction leaves nothing half done.
//   - LOCK_TIMEOUT: the default waits for ever.
//   - NOCOUNT: no row count messages on the wire; @@ROWCOUNT is not affected.
//   - The isolation level for requests outside transactions: SQL Server on a
//     machine of one's own keeps it when a pooled connection is reset.
const sessionSetupSQL = `/* outbox:SessionSetup */
SET ARITHABORT ON;
SET XACT_ABORT ON;
SET NOCOUNT ON;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCK_TIMEOUT %d;`

const (
	// sessionMaxIdle is below the 4 minutes after which a NAT on the way may
	// forget a silent connection, and the 30 of Azure SQL's gateway.
	sessionMaxIdle = 3 * time.Minute
	// sessionMaxAge is well below the life of an Entra token, which is an hour
	// at least: an expired one ends the connection with an error in mid-use.
	sessionMaxAge = 30 * time.Minute
)

// sessions is a free list of connections that are set up. A connection that
// has seen any error is dropped: what state it is in is not worth finding out.
type sessions struct {
	db    *sql.DB
	setup string
	// places are as many as the pool has connections, nil where it has no bound.
	// Callers wait here, in order: one that waited in the pool would not see a
	// session that is given back, and newcomers would overtake it for ever.
	places *semaphore.Weighted

	mu   sync.Mutex
	idle []*session // the one given back last is the last
}

type session struct {
	conn            *sql.Conn
	kill            func()
	born, idleSince time.Time
}

// newSessions makes a free list on a pool of so many connections; 0 is no bound.
func newSessions(db *sql.DB, pool int, lockTimeout time.Duration) *sessions {
	p := &sessions{db: db, setup: fmt.Sprintf(sessionSetupSQL, lockTimeout.Milliseconds())}
	if pool > 0 {
		p.places = semaphore.NewWeighted(int64(pool))
	}
	return p
}

// use runs fn on a connection under the watchdog. Where all are in use, it waits
// for its turn, as long as ctx lets it.
func (p *sessions) use(ctx context.Context, fn func(*sql.Conn) error) error {
	return p.useUntil(ctx, ctx, fn)
}

// useUntil waits for its connection as long as ctx lets it, and the watchdog looks
// at end, for an fn that may go on for longer.
func (p *sessions) useUntil(ctx, end context.Context, fn func(*sql.Conn) error) error {
	if p.places != nil {
		if err := p.places.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("wait for a connection, all of the pool are in use: %w", err)
		}
		defer p.places.Release(1)
	}
	s, err := p.take(ctx)
	if err != nil {
		return err
	}
	stop := watch(end, s.kill)
	err = fn(s.conn)
	killed := stop()
	p.give(s, killed || (err != nil && !isAnswer(err)))
	return err
}

func (p *sessions) take(ctx context.Context) (*session, error) {
	if s := p.popIdle(time.Now()); s != nil {
		return s, nil
	}
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	now := time.Now()
	s := &session{conn: conn, kill: killer(p.db, conn), born: now, idleSince: now}
	stop := watch(ctx, s.kill)
	_, err = conn.ExecContext(ctx, p.setup)
	stop()
	if err != nil {
		s.drop()
		return nil, fmt.Errorf("set up the session: %w", err)
	}
	return s, nil
}

// popIdle returns the session used last, so that those not needed grow old, and
// closes those that have.
func (p *sessions) popIdle(now time.Time) (fresh *session) {
	var old []*session
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(s *session) bool {
		over := now.Sub(s.idleSince) >= sessionMaxIdle || now.Sub(s.born) >= sessionMaxAge
		if over {
			old = append(old, s)
		}
		return over
	})
	if last := len(p.idle) - 1; last >= 0 {
		fresh, p.idle = p.idle[last], p.idle[:last]
	}
	p.mu.Unlock()
	for _, s := range old {
		s.drop()
	}
	return fresh
}

func (p *sessions) give(s *session, broken bool) {
	if broken {
		s.drop()
		return
	}
	s.idleSince = time.Now()
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.mu.Unlock()
}

func (p *sessions) closeIdle() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, s := range idle {
		s.drop()
	}
}

// drop closes the connection for good: database/sql discards it where the
// driver says that it is bad.
func (s *session) drop() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}

// outlive is a context that ends when its cancel is called, or by the grace
// after ctx ends.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel(context.Canceled)
	}
}

// drain reads every result that is left, so that no error of a later statement
// is missed.
func drain(rows *sql.Rows) error {
	for {
		for rows.Next() {
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

func isServerError(err error) bool {
	var server mssql.Error
	return errors.As(err, &server)
}
