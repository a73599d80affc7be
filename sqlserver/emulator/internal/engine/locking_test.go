package engine

import (
	"fmt"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/tds"
)

const claimOf = `SELECT TOP (%d) id FROM e WITH (INDEX(IX_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE event_type = 'a' AND status = 0 ORDER BY id`

func outboxOf(t *testing.T, rows int) (e *Engine, a, b tds.Session) {
	t.Helper()
	e = newEngine(t)
	a, b = open(t, e), open(t, e)
	must(t, a, outboxTable)
	must(t, a, fmt.Sprintf(`INSERT e (id, event_type, payload) SELECT value, 'a', 'x' FROM GENERATE_SERIES(1, %d)`, rows))
	must(t, b, `SET LOCK_TIMEOUT 0`)
	return e, a, b
}

// A claim of too many rows escalates to a table lock, which READPAST does not
// skip: the next claim meets it. One below the threshold leaves the rest free.
func TestClaimThatEscalatesStopsTheOthers(t *testing.T) {
	for _, c := range []struct {
		rows int
		want string
	}{
		{4999, "5000"},
		{5001, "error 1222"},
	} {
		_, a, b := outboxOf(t, 6000)
		must(t, a, `BEGIN TRAN; `+fmt.Sprintf(claimOf, c.rows))
		if got := run(t, b, fmt.Sprintf(claimOf, 1)).text(); got != c.want {
			t.Errorf("beside a claim of %d rows: %q, want %q", c.rows, got, c.want)
		}
		must(t, a, `COMMIT`)
		if got := run(t, b, fmt.Sprintf(claimOf, 1)).text(); got != "1" {
			t.Errorf("after it: %q", got)
		}
	}
}

// An update of too many rows escalates as well, and with it in place a claim
// finds no row lock to skip.
func TestUpdateThatEscalatesStopsAClaim(t *testing.T) {
	_, a, b := outboxOf(t, 6000)
	must(t, a, `BEGIN TRAN; UPDATE e SET retry_count = 1 WHERE id <= 5500`)
	if got := run(t, b, fmt.Sprintf(claimOf, 1)).text(); got != "error 1222" {
		t.Errorf("a claim: %q", got)
	}
	if got := run(t, b, `SELECT l.request_mode FROM sys.dm_tran_locks AS l WHERE l.resource_associated_entity_id = OBJECT_ID('e')`).text(); got != "X" {
		t.Errorf("the table lock: %q", got)
	}
}

// The intent locks of a claim keep table locks out, and each other not.
func TestIntentLocks(t *testing.T) {
	_, a, b := outboxOf(t, 10)
	must(t, a, `BEGIN TRAN; `+fmt.Sprintf(claimOf, 2))
	for _, c := range []struct{ sql, want string }{
		{fmt.Sprintf(claimOf, 1), "3"},
		{`SELECT TOP (1) id FROM e WITH (TABLOCKX) ORDER BY id`, "error 1222"},
		{`SELECT TOP (1) id FROM e WITH (TABLOCK, HOLDLOCK) ORDER BY id`, "error 1222"},
		{`SELECT TOP (1) id FROM e WITH (TABLOCK, READPAST) ORDER BY id`, "error 1222"},
		{`SELECT TOP (1) id FROM e ORDER BY id`, "1"},
		{`ALTER TABLE e ADD x INT NULL`, "error 1222"},
		{`TRUNCATE TABLE e`, "error 1222"},
	} {
		if got := run(t, b, c.sql).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.sql, got, c.want)
		}
	}
}

func TestSavepoints(t *testing.T) {
	play(t, []batch{
		{smallTable, ""},
		// a name may be used again: the newest one counts
		{`BEGIN TRAN; INSERT t VALUES (1, 1); SAVE TRAN s; INSERT t VALUES (2, 2); SAVE TRAN s; INSERT t VALUES (3, 3); ROLLBACK TRAN s; SELECT id FROM t; COMMIT`, "began\n1\n2\ncommitted"},
		// rolling back to one leaves it, and the count, in place
		{`BEGIN TRAN; SAVE TRAN s; DELETE t; ROLLBACK TRAN s; DELETE t WHERE id = 1; ROLLBACK TRAN s; SELECT COUNT(*), @@TRANCOUNT FROM t; ROLLBACK`, "began\n2|1\nrolled back"},
		// those after it are gone
		{`BEGIN TRAN; SAVE TRAN a; SAVE TRAN b; ROLLBACK TRAN a; ROLLBACK TRAN b`, "began\nerror 6401"},
		{`ROLLBACK`, "rolled back"},
		// a doomed transaction cannot be rolled back to one, nor take one
		{`SET XACT_ABORT ON; BEGIN TRAN; SAVE TRAN s; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH SELECT XACT_STATE(); ROLLBACK TRAN s END CATCH`, "began\n-1\nerror 3931\nrolled back"},
		{`BEGIN TRAN; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH SAVE TRAN s END CATCH`, "began\nerror 3931\nrolled back"},
		// a rollback without a name takes all of it
		{`SET XACT_ABORT OFF; BEGIN TRAN; BEGIN TRAN; SAVE TRAN s; DELETE t; ROLLBACK; SELECT @@TRANCOUNT, COUNT(*) FROM t`, "began\nrolled back\n0|2"},
	})
}

// Rolling back to a savepoint keeps the locks (transaction locking and row
// versioning guide).
func TestSavepointKeepsLocks(t *testing.T) {
	_, a, b := outboxOf(t, 3)
	must(t, a, `BEGIN TRAN; SAVE TRAN s; UPDATE e SET status = 1 WHERE id = 1; ROLLBACK TRAN s`)
	if got := run(t, b, `UPDATE e SET retry_count = 1 WHERE id = 1`).text(); got != "error 1222" {
		t.Errorf("the row: %q", got)
	}
	if got := run(t, b, fmt.Sprintf(claimOf, 5)).text(); got != "2\n3" {
		t.Errorf("a claim beside it: %q", got)
	}
	must(t, a, `COMMIT`)
	if got := run(t, b, `UPDATE e SET retry_count = 1 WHERE id = 1`).text(); got != "" {
		t.Errorf("after the commit: %q", got)
	}
}

// A connection that ends takes its transaction and locks with it.
func TestOrphanedTransaction(t *testing.T) {
	e, a, b := outboxOf(t, 3)
	orphan := login(t, e)
	must(t, orphan, `BEGIN TRAN; UPDATE e SET status = 1; EXEC sp_getapplock @Resource = 'x', @LockMode = 'Exclusive', @LockOwner = 'Session'`)
	if got := run(t, b, fmt.Sprintf(claimOf, 5)).text(); got != "" {
		t.Errorf("before: %q", got)
	}
	orphan.Close()
	if got := run(t, b, fmt.Sprintf(claimOf, 5)).text(); got != "1\n2\n3" {
		t.Errorf("after: %q", got)
	}
	if got := run(t, a, `SELECT COUNT(*) FROM sys.dm_tran_locks WHERE resource_type = 'APPLICATION'`).text(); got != "0" {
		t.Errorf("%s application locks are left", got)
	}
}
