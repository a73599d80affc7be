package sqlserver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

// What no engine does on demand: these tests script it into the embedded one.

// onEmulator is an outbox on a server of its own, so that faults meet no other
// test's statements.
func onEmulator(t *testing.T) (*outbox, *emulator.Server) {
	t.Helper()
	server, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return newOutboxOn(t, server.DSN(), scripts.Options{Collation: "Latin1_General_100_BIN2_UTF8"}), server
}

func sqlError(number int32, text string) *emulator.Error {
	return &emulator.Error{Number: number, State: 1, Class: 16, Message: text}
}

func TestDeadlockVictimTriesAgain(t *testing.T) {
	for _, statement := range []string{"ClaimEvents", "FlipClaim"} {
		t.Run(statement, func(t *testing.T) {
			b, server := onEmulator(t)
			s := b.store()
			mine := b.add("a", 2)
			fault := server.Inject(emulator.Fault{Statement: statement, Times: 2, Error: sqlError(1205, "deadlocked")})
			c := claim(t, s, "a", 2)
			if len(c.Events) != 2 || fault.Fired() != 2 || b.receipts() != 1 {
				t.Errorf("claimed %d events after %d deadlocks, %d receipts", len(c.Events), fault.Fired(), b.receipts())
			}
			b.wantRows(processed, mine...)
		})
	}
}

func TestContentionGivesUpInTheEnd(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	mine := b.add("a", 1)
	fault := server.Inject(emulator.Fault{Statement: "FlipClaim", Times: -1, Error: sqlError(1222, "lock request time out"), Doom: true})
	_, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 1})
	if sqlserver.ClassOf(err) != sqlserver.Contention || errors.Is(err, worker.ErrPermanent) {
		t.Errorf("got %v (%s)", err, sqlserver.ClassOf(err))
	}
	if n := fault.Fired(); n < 2 || n > 10 {
		t.Errorf("tried %d times", n)
	}
	b.wantRows(pending, mine...)
	fault.Remove()
	if c := claim(t, s, "a", 1); len(c.Events) != 1 {
		t.Error("does not claim once the lock is free")
	}
}

func TestCommitThatHappenedWithoutAnAnswerIsFound(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	mine := b.add("a", 2)
	server.Inject(emulator.Fault{Statement: emulator.Commit, Drop: emulator.DropAfter})
	c := claim(t, s, "a", 2)
	if len(c.Events) != 2 || c.Receipt.LeaseUntil.IsZero() || server.StatementCount("FindClaim") != 1 {
		t.Errorf("claim is %+v, FindClaim was sent %d times", c, server.StatementCount("FindClaim"))
	}
	b.wantRows(processed, mine...)
	if lost, err := s.SettleSent(testContext(t), []worker.Receipt{c.Receipt}); err != nil || lost != 0 {
		t.Errorf("settled: lost %d, %v", lost, err)
	}
}

// A stop finds a flip under way: the batch is claimed, and in hand.
func TestAFlipOutlivesAStop(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	mine := b.add("a", 2)
	ctx, stop := context.WithCancel(testContext(t))
	defer stop()
	fault := server.Inject(emulator.Fault{Statement: "FlipClaim", Delay: 50 * time.Millisecond})
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := s.Claim(ctx, worker.ClaimRequest{EventType: "a", Batch: 2})
		if err != nil || len(c.Events) != 2 {
			t.Errorf("claimed %d events, %v", len(c.Events), err)
		}
	}()
	for fault.Fired() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-done
	b.wantRows(processed, mine...)
}

func TestCommitThatDidNotHappenIsLetGo(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	mine := b.add("a", 2)
	server.Inject(emulator.Fault{Statement: emulator.Commit, Drop: emulator.DropBefore})
	if _, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 2}); err == nil {
		t.Error("a claim that was rolled back is owned")
	}
	b.wantRows(pending, mine...)
	if c := claim(t, s, "a", 2); len(c.Events) != 2 {
		t.Errorf("claimed %d events the next time", len(c.Events))
	}
}

func TestUnknownCommitThatCannotBeAskedForIsReaped(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	mine := b.add("a", 2)
	server.Inject(emulator.Fault{Statement: emulator.Commit, Drop: emulator.DropAfter})
	server.Inject(emulator.Fault{Statement: "FindClaim", Drop: emulator.DropBefore})
	if _, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 2}); err == nil {
		t.Error("a claim that nobody knows of is owned")
	}
	b.wantRows(processed, mine...)
	b.expire()
	if r := reap(t, s); r.Returned != 2 {
		t.Errorf("reaped %+v", r)
	}
	b.wantRows(row{RetryCount: 1}, mine...)
}

func TestBrokenConnectionsAreNotUsedAgain(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	b.add("a", 1)
	if _, err := s.Pending(testContext(t), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	server.KillConnections()
	// The first call meets the dead connection, or a new one; after it nothing
	// of the old remains.
	_, _ = s.Pending(testContext(t), []string{"a"})
	if got, err := s.Pending(testContext(t), []string{"a"}); err != nil || len(got) != 1 {
		t.Errorf("pending %q, %v", got, err)
	}
}

func TestReadOnlyReplica(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	mine := b.add("a", 1)
	server.Inject(emulator.Fault{Statement: "FlipClaim", Error: sqlError(3906, "the database is read-only"), Doom: true})
	_, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 1})
	if sqlserver.ClassOf(err) != sqlserver.Reconnect {
		t.Errorf("got %v (%s)", err, sqlserver.ClassOf(err))
	}
	b.wantRows(pending, mine...)
	if setups := server.StatementCount("SessionSetup"); setups != 1 {
		t.Fatalf("%d sessions were set up, want 1", setups)
	}
	claim(t, s, "a", 1)
	if setups := server.StatementCount("SessionSetup"); setups != 2 {
		t.Errorf("%d sessions were set up, want a new one after the error", setups)
	}
}

func TestMissingRightsAreNamed(t *testing.T) {
	for _, statement := range []string{"ClaimEvents", "FlipClaim", "Pending", "DiscoverPending", "BacklogTypes", "SettleSent", "Settle", "OverdueClaims", "ReapClaim", "RetryDue", "Heartbeat", "Leave"} {
		t.Run(statement, func(t *testing.T) {
			b, server := onEmulator(t)
			server.Inject(emulator.Fault{Statement: statement, Error: sqlError(229, "The UPDATE permission was denied"), Doom: true})
			err := b.store().Check(testContext(t))
			var e *sqlserver.Error
			if !errors.Is(err, worker.ErrPermanent) || !errors.As(err, &e) || e.Number != 229 {
				t.Errorf("got %v", err)
			}
			if b.receipts() != 0 {
				t.Error("the rehearsal left a receipt")
			}
		})
	}
}

func TestCheckNamesTheCompatibilityLevel(t *testing.T) {
	b, _ := onEmulator(t)
	b.exec("ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 120")
	err := b.store().Check(testContext(t))
	if !errors.Is(err, worker.ErrPermanent) || !strings.Contains(err.Error(), "compatibility level 120") {
		t.Errorf("got %v", err)
	}
}

func TestOneSessionServesManyCalls(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	b.add("a", 20)
	for range 10 {
		c := claim(t, s, "a", 2)
		if _, err := s.SettleSent(testContext(t), []worker.Receipt{c.Receipt}); err != nil {
			t.Fatal(err)
		}
	}
	claim(t, s, "a", 2) // of nothing, which rolls back
	if n := server.StatementCount("SessionSetup"); n != 1 {
		t.Errorf("%d sessions were set up, want 1", n)
	}
	if n := server.StatementCount("TableColumns"); n != 2 {
		t.Errorf("columns were read %d times, want once each of the events and the receipts", n)
	}
}

func TestEnqueueCostsOneRoundTrip(t *testing.T) {
	b, server := onEmulator(t)
	w := b.writer()
	for range 3 {
		if err := b.enqueue(testContext(t), w, event("a"), event("b")); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"Enqueue": 3, "TableColumns": 1, "FitsCollation": 0} {
		if n := server.StatementCount(name); n != want {
			t.Errorf("%s was sent %d times, want %d", name, n, want)
		}
	}
}

// A server that does not answer: the call ends with its context.
func TestAHangingCallEnds(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	b.add("a", 1)
	fault := server.Inject(emulator.Fault{Statement: "Pending", Delay: time.Hour})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Pending(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call without an answer: %v", err)
	}
	fault.Remove()
	if got, err := s.Pending(testContext(t), []string{"a"}); err != nil || len(got) != 1 {
		t.Errorf("the next call: %q, %v", got, err)
	}
}

// go-mssqldb gives every read the DSN's connection timeout as its deadline, and a
// rebuild says nothing for longer.
func TestALongStatementOutlastsTheDSNsTimeout(t *testing.T) {
	for _, parameter := range []string{"connection+timeout", "Connection%20TIMEOUT"} {
		t.Run(parameter, func(t *testing.T) {
			t.Parallel()
			server, err := emulator.Start(emulator.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { server.Close() })
			db, err := sqlserver.Open(server.DSN()+"&"+parameter+"=1", sqlserver.Options{LongStatements: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			fault := server.Inject(emulator.Fault{Statement: "Rebuild", Delay: 1200 * time.Millisecond})
			if _, err := db.ExecContext(testContext(t), "SELECT /* outbox:Rebuild */ 1 AS one"); err != nil || fault.Fired() != 1 {
				t.Errorf("a statement of 1.2 s under a timeout of 1 s, delayed %d times: %v", fault.Fired(), err)
			}
		})
	}
}

// A network that swallows everything, and a call that does not even listen to
// its context: only closing the connection under it ends it.
func TestADeadNetworkDoesNotHoldACall(t *testing.T) {
	server, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	net := newSwallower(t, server.Addr())
	b := newOutboxOn(t, strings.Replace(server.DSN(), server.Addr(), net.addr(), 1), scripts.Options{})
	s := b.store()
	b.add("a", 1)
	if _, err := s.Pending(testContext(t), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	net.swallow(true)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- s.Use(ctx, func(conn *sql.Conn) error {
			_, err := conn.ExecContext(context.Background(), "SELECT 1")
			return err
		})
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a call into nowhere succeeded")
		}
	case <-time.After(30 * time.Second): // the driver alone gives up after 60
		t.Error("the call is still waiting")
	}
	net.swallow(false)
	if got, err := s.Pending(testContext(t), []string{"a"}); err != nil || len(got) != 1 {
		t.Errorf("the next call: %q, %v", got, err)
	}
}
