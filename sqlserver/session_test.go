package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a driver whose statements succeed and whose queries have no row, for
// what sessions do with time and errors; what they do with a server is tested on
// one.
type silent struct{ opened, closed atomic.Int64 }

func (d *silent) Connect(context.Context) (driver.Conn, error) {
	d.opened.Add(1)
	return silentConn{d}, nil
}
func (d *silent) Driver() driver.Driver { return nil }
func (d *silent) open() int64           { return d.opened.Load() - d.closed.Load() }

type silentConn struct{ d *silent }

func (c silentConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c silentConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c silentConn) Close() error                        { c.d.closed.Add(1); return nil }
func (c silentConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), nil
}

func (c silentConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, nil
}

type noRows struct{}

func (noRows) Columns() []string         { return []string{"n"} }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

func silentSessions(t *testing.T, pool int) (*sessions, *silent) {
	t.Helper()
	d := new(silent)
	db := sql.OpenDB(d)
	db.SetMaxOpenConns(pool)
	p := newSessions(db, pool, time.Second)
	t.Cleanup(func() {
		p.closeIdle()
		db.Close()
	})
	return p, d
}

// Whoever waits gets the next session that is given back: it is not overtaken by
// those who give one back and take it again.
func TestMoreCallersThanConnections(t *testing.T) {
	for _, callers := range []int{3, 40} {
		synctest.Test(t, func(t *testing.T) {
			const pool, call = 2, 20 * time.Millisecond
			p, d := silentSessions(t, pool)
			longest := time.Duration(callers/pool+1) * call
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range 50 {
						ctx, cancel := context.WithTimeout(t.Context(), longest)
						err := p.use(ctx, func(*sql.Conn) error { time.Sleep(call); return nil })
						cancel()
						if err != nil {
							t.Errorf("%d callers: no connection within %s: %v", callers, longest, err)
							return
						}
					}
				})
			}
			wg.Wait()
			if n := d.opened.Load(); n != pool {
				t.Errorf("%d callers opened %d connections", callers, n)
			}
		})
	}
}

// A worker whose heartbeat keeps one session busy does not keep those of a burst.
func TestIdleSessionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 16
		p, d := silentSessions(t, burst)
		var wg sync.WaitGroup
		for range burst {
			wg.Go(func() {
				if err := p.use(t.Context(), func(*sql.Conn) error { time.Sleep(time.Second); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for began := time.Now(); time.Since(began) < sessionMaxIdle+time.Minute; time.Sleep(10 * time.Second) {
			if err := p.use(t.Context(), func(*sql.Conn) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if d.opened.Load() != burst || d.open() != 1 {
			t.Errorf("%d connections were opened, %d are open, want %d and 1", d.opened.Load(), d.open(), burst)
		}
	})
}

// A session that is never idle ends before the token that it logged in with.
func TestOldSessionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := silentSessions(t, 1)
		use := func() {
			t.Helper()
			if err := p.use(t.Context(), func(*sql.Conn) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		use()
		for range int(sessionMaxAge/time.Minute) - 1 {
			time.Sleep(time.Minute)
			use()
		}
		if n := d.opened.Load(); n != 1 {
			t.Errorf("%d connections were opened within %s, want 1", n, sessionMaxAge)
		}
		time.Sleep(time.Minute)
		use()
		if d.opened.Load() != 2 || d.open() != 1 {
			t.Errorf("%d connections were opened after %s and %d are open, want 2 and 1", d.opened.Load(), sessionMaxAge, d.open())
		}
		if age := 50 * time.Minute; sessionMaxAge > age {
			t.Errorf("sessions last %s: an Entra token may have run out", sessionMaxAge)
		}
	})
}

// A statement without its row is an error like any other: it says what was tried,
// and its connection is not used again.
func TestAMissingRowIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := silentSessions(t, 1)
		s := &Store{sessions: p}
		err := s.retrying(t.Context(), "settle 1 claim", func(ctx context.Context) error {
			return p.use(ctx, func(conn *sql.Conn) error {
				var n int
				return conn.QueryRowContext(ctx, "SELECT 1 WHERE 1 = 0").Scan(&n)
			})
		})
		var e *Error
		if !errors.As(err, &e) || e.Op != "settle 1 claim" || !errors.Is(err, errNoMarker) {
			t.Errorf("got %v", err)
		}
		if d.open() != 0 {
			t.Error("the connection is kept")
		}
	})
}
