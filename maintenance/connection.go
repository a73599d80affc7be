package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	mssql "github.com/microsoft/go-mssqldb"
	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
)

const (
	// stopGrace is what a statement that may write gets when the task is to stop.
	stopGrace = 10 * time.Second
	// statementPatience is for a server that does not answer; no small step of a
	// task comes near it.
	statementPatience = 2 * time.Minute
	// outagePatience is how long a database may be away before a task gives up;
	// a paused serverless one needs a minute or two, a failover less.
	outagePatience = 5 * time.Minute

	firstRetry, longestRetry = 50 * time.Millisecond, 10 * time.Second

	// cannotOpen is the error of a database that is moving, of one that is not there
	// and of a login without a user in it. A worker waits for it, whatever it is.
	// Here a person may have mistyped a name: until the database has answered once,
	// it is asked openTries times, openPause apart, which is 9 s.
	cannotOpen = 4060
	openTries  = 4
)

// openPause lies between two tries to open a database; tests shorten it.
var openPause = 3 * time.Second

// lockPatience is how long a lock may be waited for before that is said, and
// before a statement gives up that need not wait until its task ends. Tests
// shorten it.
var lockPatience = 30 * time.Second

// connection is a Dedicated whose small statements are tried until they are
// answered: after a deadlock or a lock timeout on the same connection, for as
// long as the task has; after a lost connection or a failover on a new one.
type connection struct {
	dedicated *sqlserver.Dedicated
	log       *zap.Logger
	// retries counts the statements that were sent again.
	retries int64
	// reached says that the database has answered before. Until then only what
	// the server itself calls passing is waited for: a wrong host name is not.
	reached bool
	// locked says that another session had the application lock at the last try.
	locked bool
	// reads says that no statement writes: none gets stopGrace.
	reads bool
	// keepWaiting is for statements that may wait for a lock until ctx ends.
	keepWaiting bool
}

// connect makes one; task, where it is not empty, names the application lock
// that it holds.
func (t Target) connect(task string) *connection {
	c := &connection{log: t.Logger}
	var hold func(context.Context, *sql.Conn) error
	if task != "" {
		hold = func(ctx context.Context, conn *sql.Conn) error {
			err := t.takeAppLock(ctx, conn, task)
			c.locked = errors.As(err, new(*Refusal))
			return err
		}
	}
	c.dedicated = sqlserver.NewDedicated(t.DB, t.LockTimeout, hold)
	return c
}

// connectToRead is connect for what changes nothing.
func (t Target) connectToRead() *connection {
	c := t.connect("")
	c.reads = true
	return c
}

// do runs fn, again where that can help. When ctx ends, a statement in hand that
// may write may go on for stopGrace, and nothing is begun; then the error is ctx's
// cause.
func (c *connection) do(ctx context.Context, op string, fn func(context.Context, *sql.Conn) error) error {
	var begun time.Time // of the failing
	var said bool
	var unopened int
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstRetry, longestRetry
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := c.once(ctx, op, fn)
		if err == nil {
			c.reached = true
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		contended := sqlserver.ClassOf(err) == sqlserver.Contention
		var refusal *Refusal
		if errors.As(err, &refusal) {
			err = refusal // it says itself what was tried
		}
		if !contended && !c.passing(err) {
			return err
		}
		if begun.IsZero() {
			begun = time.Now()
		}
		switch failing := time.Since(begun); {
		case contended && failing > lockPatience && !c.keepWaiting, !contended && failing > outagePatience:
			return err
		case !said && (!contended || failing > lockPatience):
			said = true
			c.log.Warn("the database does not let it go on; trying again", zap.Error(err))
		}
		wait := max(pause.NextBackOff(), waitOf(err))
		if !c.reached && numberOf(err) == cannotOpen {
			if unopened++; unopened == openTries {
				return fmt.Errorf("%w; it was asked %d times in %s: look at the name after database= in the DSN and at this login's user in that database, or come back when the failover is over",
					err, openTries, time.Since(begun).Round(time.Second))
			}
			wait = openPause
		}
		c.retries++
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// passing says whether waiting may mend err.
func (c *connection) passing(err error) bool {
	if errors.As(err, new(*Refusal)) {
		// The application lock of a connection that was lost is its session's
		// until the server notices.
		return c.locked && c.reached
	}
	var e *sqlserver.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Class {
	case sqlserver.Reconnect:
		return true
	case sqlserver.Transient:
		if e.Number == 0 {
			return c.reached // the connection, not the server's word
		}
		// Of the numbers that nobody knows, those of the statement's own fault
		// have severities up to 16 (sql-docs, database-engine-error-severities.md).
		var server mssql.Error
		return e.Advice != "" || e.Wait > 0 || errors.As(err, &server) && server.Class > 16
	default:
		return false
	}
}

func (c *connection) once(ctx context.Context, op string, fn func(context.Context, *sql.Conn) error) error {
	c.locked = false
	way, cancel := context.WithTimeout(ctx, statementPatience)
	defer cancel()
	if err := c.dedicated.Connect(way, op); err != nil {
		return err
	}
	call := way
	if !c.reads {
		call, cancel = outlive(ctx)
		defer cancel()
	}
	var contended error
	err := c.dedicated.Use(call, op, func(conn *sql.Conn) error {
		err := sqlserver.Classify(op, fn(call, conn))
		if sqlserver.ClassOf(err) == sqlserver.Contention {
			contended = err // the connection is as good as before
			return nil
		}
		return err
	})
	if err == nil {
		err = contended
	}
	return err
}

func (c *connection) close() { c.dedicated.Close() }

// outlive is a context that ends stopGrace after ctx, or when a statement has
// had its time.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementPatience)
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(stopGrace, cancel)
		context.AfterFunc(call, func() { timer.Stop() })
	})
	return call, func() {
		unwatch()
		cancel()
	}
}

// numberOf is the server's number of an error; 0 where it has none.
func numberOf(err error) int32 {
	var e *sqlserver.Error
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// waitOf is how long the service asks to wait.
func waitOf(err error) time.Duration {
	var e *sqlserver.Error
	if errors.As(err, &e) {
		return e.Wait
	}
	return 0
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
