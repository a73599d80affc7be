package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// Maintenance must never win a deadlock against the application or a worker,
// and never make them queue behind a lock it waits for.
const dedicatedSetupSQL = `/* outbox:DedicatedSetup */
SET ARITHABORT ON;
SET XACT_ABORT ON;
SET NOCOUNT ON;
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET DEADLOCK_PRIORITY LOW;
SET LOCK_TIMEOUT %d;`

// Dedicated is one connection for a task that works for long, as maintenance
// does: set up like a worker's, with low deadlock priority. When it breaks, the
// next Use connects again. It is for one goroutine.
type Dedicated struct {
	db        *sql.DB
	setup     string
	onConnect func(context.Context, *sql.Conn) error
	conn      *sql.Conn
	kill      func()
}

// NewDedicated makes one; it connects with the first Use. lockTimeout is what a
// statement waits for a lock at most. onConnect, which may be nil, runs on every
// new connection, for what a session holds: an application lock, say. Close it.
func NewDedicated(db *sql.DB, lockTimeout time.Duration, onConnect func(context.Context, *sql.Conn) error) *Dedicated {
	return &Dedicated{db: db, setup: fmt.Sprintf(dedicatedSetupSQL, lockTimeout.Milliseconds()), onConnect: onConnect}
}

// Connect connects where there is no connection, for a caller whose statements may
// go on for longer than the way to them. Its error is like that of Use.
func (d *Dedicated) Connect(ctx context.Context, op string) error {
	return Classify(op, d.connect(ctx))
}

// Use runs fn on the connection. Its error is classified, with op, what is
// tried on what, in front. The connection is dropped after any error, and when
// it does not answer within a second of the end of ctx.
func (d *Dedicated) Use(ctx context.Context, op string, fn func(*sql.Conn) error) error {
	if err := d.connect(ctx); err != nil {
		return Classify(op, err)
	}
	stop := watch(ctx, d.kill)
	err := fn(d.conn)
	if killed := stop(); killed || err != nil {
		d.Close()
	}
	return Classify(op, err)
}

func (d *Dedicated) connect(ctx context.Context) error {
	if d.conn != nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	d.conn, d.kill = conn, killer(d.db, conn)
	stop := watch(ctx, d.kill)
	_, err = conn.ExecContext(ctx, d.setup)
	if err == nil && d.onConnect != nil {
		err = d.onConnect(ctx, conn)
	}
	if killed := stop(); killed || err != nil {
		d.Close()
		return fmt.Errorf("set up the session: %w", err)
	}
	return nil
}

// Close ends the connection, and with it what the session holds.
func (d *Dedicated) Close() {
	if d.conn == nil {
		return
	}
	_ = d.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = d.conn.Close()
	d.conn = nil
}
