package emulator

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, config Config) (*Server, *sql.DB) {
	t.Helper()
	s, err := Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := sql.Open("sqlserver", s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return s, db
}

// waitFor polls what the server offers for looking at, not for waiting on.
func waitFor(happened func() bool) {
	for !happened() {
		time.Sleep(time.Millisecond)
	}
}

const (
	insertRow = "-- outbox:InsertRow\nINSERT INTO t (n) VALUES (@n)"
	countRows = "-- outbox:CountRows\nSELECT COUNT(*) FROM t WHERE n > @above"
)

func createTable(t *testing.T, s *Server) {
	t.Helper()
	if _, err := s.Exec(t.Context(), "CREATE TABLE t (n INT NOT NULL PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
}

func insert(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, n int,
) error {
	_, err := db.ExecContext(ctx, insertRow, sql.Named("n", n))
	return err
}

// holding makes the table and a transaction that has inserted the row 1 and goes on.
func holding(t *testing.T, s *Server, db *sql.DB) *sql.Tx {
	t.Helper()
	createTable(t, s)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if err := insert(t.Context(), tx, 1); err != nil {
		t.Fatal(err)
	}
	return tx
}

// rows counts what is really there, past the network.
func rows(t *testing.T, s *Server) int64 {
	t.Helper()
	sets, err := s.Exec(t.Context(), "SELECT COUNT_BIG(*) AS n FROM t")
	if err != nil {
		t.Fatal(err)
	}
	return sets[0].Rows[0][0].(int64)
}

func wantNumber(t *testing.T, err error, number int32) {
	t.Helper()
	var sqlErr mssql.Error
	if !errors.As(err, &sqlErr) || sqlErr.Number != number {
		t.Errorf("got %v, want error %d", err, number)
	}
}

func TestFaultReportsAnErrorInsteadOfRunning(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	fault := s.Inject(Fault{Statement: "InsertRow", Nth: 2, Times: 2, Error: &Error{Number: 40501, Class: 16, Message: "The service is currently busy"}})
	for n, fails := range []bool{false, true, true, false} {
		err := insert(t.Context(), db, n)
		if fails {
			wantNumber(t, err, 40501)
		} else if err != nil {
			t.Error(err)
		}
	}
	if fault.Fired() != 2 || rows(t, s) != 2 {
		t.Errorf("fired %d times, %d rows; want 2 and 2", fault.Fired(), rows(t, s))
	}
}

func TestFaultUntilRemoved(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	fault := s.Inject(Fault{Times: -1, Error: &Error{Number: 10928, Class: 16, Message: "Resource ID: 1"}})
	for n := range 3 {
		wantNumber(t, insert(t.Context(), db, n), 10928)
	}
	fault.Remove()
	if err := insert(t.Context(), db, 1); err != nil || fault.Fired() != 3 {
		t.Errorf("after Remove: %v, fired %d times", err, fault.Fired())
	}
}

func TestDeadlockRollsTheTransactionBack(t *testing.T) {
	s, db := start(t, Config{})
	tx := holding(t, s, db)
	s.Inject(Fault{Statement: "InsertRow", Error: &Error{Number: 1205, Class: 13, Message: "Transaction was deadlocked"}})
	wantNumber(t, insert(t.Context(), tx, 2), 1205)
	if err := insert(t.Context(), tx, 3); err == nil {
		t.Error("the driver went on in a transaction that was rolled back")
	}
	_ = tx.Rollback()
	if n := rows(t, s); n != 0 {
		t.Errorf("%d rows outlived the rollback", n)
	}
}

func TestDropBeforeAndAfterCommit(t *testing.T) {
	for name, tt := range map[string]struct {
		point DropPoint
		want  int64
	}{
		"before": {DropBefore, 0},
		"after":  {DropAfter, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := start(t, Config{})
			fault := s.Inject(Fault{Statement: Commit, Drop: tt.point})
			tx := holding(t, s, db)
			if err := tx.Commit(); err == nil {
				t.Error("the client was told of a commit whose answer was dropped")
			}
			if fault.Fired() != 1 {
				t.Errorf("fired %d times", fault.Fired())
			}
			if n := rows(t, s); n != tt.want {
				t.Errorf("%d rows, want %d", n, tt.want)
			}
		})
	}
}

func TestFaultsOfTransactionRequests(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	s.Inject(Fault{Statement: Begin, Error: &Error{Number: 3906, Class: 16, Message: "read-only"}})
	_, err := db.Begin()
	wantNumber(t, err, 3906)
	s.Inject(Fault{Statement: Rollback, Drop: DropBefore})
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := insert(t.Context(), tx, 1); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err == nil {
		t.Error("the rollback was answered")
	}
	if n := rows(t, s); n != 0 {
		t.Errorf("%d rows outlived a connection that was cut", n)
	}
}

func TestDelayEndsWithTheClientsPatience(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	fault := s.Inject(Fault{Statement: "InsertRow", Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		waitFor(func() bool { return fault.Fired() > 0 })
		cancel()
	}()
	if err := insert(ctx, db, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := rows(t, s); n != 0 {
		t.Error("the statement ran although it was cancelled during its delay")
	}
	s.Inject(Fault{Statement: "InsertRow", Delay: time.Millisecond})
	if err := insert(t.Context(), db, 1); err != nil {
		t.Error(err)
	}
}

func TestLoginFaults(t *testing.T) {
	s, db := start(t, Config{})
	s.Inject(Fault{Statement: Login, Error: &Error{Number: 40613, Class: 14, Message: "Database is not currently available"}})
	wantNumber(t, db.Ping(), 40613)
	for _, fault := range []Fault{{Statement: Login, Drop: DropBefore}, {Statement: Login, Drop: DropAfter}, {Statement: Login, Refuse: true}} {
		injected := s.Inject(fault)
		if err := db.Ping(); err == nil || injected.Fired() != 1 {
			t.Errorf("%+v: got %v, fired %d times", fault, err, injected.Fired())
		}
	}
	if err := db.Ping(); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestKillConnections(t *testing.T) {
	s, db := start(t, Config{})
	tx := holding(t, s, db)
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	s.KillConnections()
	if err := insert(t.Context(), tx, 2); err == nil {
		t.Error("the connection still answers")
	}
	// The lock on row 1 goes with the session; a new connection then gets it.
	if err := insert(t.Context(), db, 1); err != nil {
		t.Error(err)
	}
}

// TestWhatWasAcknowledgedIsThere cuts all connections again and again under
// many writers: every insert whose commit was answered must be there.
func TestWhatWasAcknowledgedIsThere(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	const writers, each = 20, 50
	var acknowledged [writers * each]atomic.Bool
	var done sync.WaitGroup
	progress := make(chan struct{}, writers*each)
	for w := range writers {
		done.Go(func() {
			for i := range each {
				n := w*each + i
				tx, err := db.BeginTx(context.Background(), nil)
				if err == nil {
					if err = insert(context.Background(), tx, n); err == nil {
						err = tx.Commit()
					}
					_ = tx.Rollback()
				}
				acknowledged[n].Store(err == nil)
				progress <- struct{}{}
			}
		})
	}
	for range 5 {
		for range writers * each / 6 {
			<-progress
		}
		s.KillConnections()
	}
	done.Wait()
	sets, err := s.Exec(t.Context(), "SELECT n FROM t")
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]bool{}
	for _, row := range sets[0].Rows {
		there[row[0].(int64)] = true
	}
	answered := 0
	for n := range acknowledged {
		if acknowledged[n].Load() {
			answered++
			if !there[int64(n)] {
				t.Errorf("%d was committed and is lost", n)
			}
		}
	}
	if answered == 0 || answered == len(acknowledged) {
		t.Errorf("%d of %d inserts were answered: the test proves nothing", answered, len(acknowledged))
	}
}
