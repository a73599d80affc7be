package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// committer is a driver whose commit takes as long as it is told, unless its
// network connection is closed.
type committer struct {
	silent
	connector *connector
	takes     time.Duration
	begun     func() // called by the commit

	cut   chan struct{}
	close sync.Once
}

func newCommitter(takes time.Duration, begun func()) *committer {
	return &committer{connector: new(connector), takes: takes, begun: begun, cut: make(chan struct{})}
}

func (d *committer) Connect(context.Context) (driver.Conn, error) {
	w := new(wire)
	w.add(cutConn{d: d})
	c := committerConn{silentConn{&d.silent}, d}
	d.connector.wires.Store(driver.Conn(c), w)
	return c, nil
}

func (d *committer) Driver() driver.Driver { return wireDriver{connector: d.connector} }

type cutConn struct {
	net.Conn
	d *committer
}

func (c cutConn) Close() error {
	c.d.close.Do(func() { close(c.d.cut) })
	return nil
}

type committerConn struct {
	silentConn
	d *committer
}

func (c committerConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }
func (c committerConn) Rollback() error                                              { return nil }

func (c committerConn) Commit() error {
	c.d.begun()
	select {
	case <-time.After(c.d.takes):
		return nil
	case <-c.d.cut:
		return driver.ErrBadConn
	}
}

func (d *committer) store(t *testing.T) *Store {
	db := sql.OpenDB(d)
	t.Cleanup(func() { db.Close() })
	s := &Store{sessions: newSessions(db, 1, time.Second)}
	s.ready.Store(new(statements))
	t.Cleanup(s.Close)
	return s
}

// A stop finds a commit under way: it has finishGrace to be answered, and only one
// that hangs is cut.
func TestACommitOutlivesAStop(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		want  error
	}{
		"within the grace": {finishGrace - time.Millisecond, nil},
		"for ever":         {time.Hour, errCommitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				s := newCommitter(c.takes, stop).store(t)
				begun := time.Now()
				err := s.transact(ctx, func(context.Context, *sql.Tx, *statements) error { return nil })
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if took := time.Since(begun); took > finishGrace+watchdogGrace {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// What is done in a transaction outlives a stop as its commit does.
func TestATransactionOutlivesAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := newCommitter(0, func() {}).store(t)
		err := s.transact(ctx, func(whole context.Context, _ *sql.Tx, _ *statements) error {
			stop()
			time.Sleep(finishGrace - time.Millisecond)
			synctest.Wait()
			return whole.Err()
		})
		if err != nil {
			t.Errorf("broken off: %v", err)
		}
	})
}
