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

func TestCheckPassesAndLeavesNothing(t *testing.T) {
	for name, o := range map[string]scripts.Options{
		"default": {},
		"legacy":  {EventType: "INT", Payload: "NVARCHAR(MAX)", SlimClaimIndex: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOutbox(t, o)
			b.needCatalog()
			s := b.store()
			id := b.add("7", 1)
			b.exec("UPDATE {events} SET status = 2, retry_at = '2020-01-01' WHERE id = @id", sql.Named("id", id[0]))
			if err := s.Check(testContext(t)); err != nil {
				t.Fatal(err)
			}
			b.wantRows(row{Status: 2, Retry: true}, id...)
			if b.receipts() != 0 || b.number("SELECT COUNT(*) FROM {workers}") != 0 {
				t.Error("the rehearsal left rows behind")
			}
		})
	}
}

// Workers that start together prove their rights together.
func TestChecksDoNotWaitForEachOther(t *testing.T) {
	b, server := onEmulator(t)
	ctx, stop := context.WithCancel(testContext(t))
	first := make(chan error, 1)
	held := server.Inject(emulator.Fault{Statement: "RetryDue", Delay: time.Hour})
	holder := b.store(func(c *sqlserver.Config) { c.Owner = "first" })
	go func() {
		defer close(first)
		first <- holder.Check(ctx)
	}()
	defer func() {
		stop()
		<-first
	}()
	for held.Fired() == 0 { // once it is there, it stays in the middle of its transaction
		select {
		case err := <-first:
			t.Fatalf("the first check ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if err := b.store(func(c *sqlserver.Config) { c.Owner = "second" }).Check(testContext(t)); err != nil {
		t.Error(err)
	}
	if n := server.Counters().LockWaits; n != 0 {
		t.Errorf("the second waited for locks %d times", n)
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		damage string
		says   string
		class  sqlserver.Class
	}{
		"no table":         {"DROP TABLE {events}", "outboxctl schema apply --table", sqlserver.Permanent},
		"no receipts":      {"DROP TABLE {receipts}", "_claim", sqlserver.Permanent},
		"no workers":       {"DROP TABLE {workers}", "_worker", sqlserver.Permanent},
		"no controls":      {"DROP TABLE {controls}", "_control", sqlserver.Permanent},
		"no column":        {"ALTER TABLE {events} DROP COLUMN last_error", "last_error", sqlserver.Permanent},
		"coarse fence":     {"ALTER TABLE {events} ALTER COLUMN processed_at DATETIME2(2) NULL", "processed_at", sqlserver.Permanent},
		"no way back":      {"ALTER TABLE {events} ALTER COLUMN processed_at DATETIME2(3) NOT NULL", "processed_at is NOT NULL", sqlserver.Permanent},
		"nullable type":    {"DROP INDEX IX_outbox_claim ON {events}; ALTER TABLE {events} ALTER COLUMN event_type VARCHAR(100) NULL", "event_type may be NULL", sqlserver.Permanent},
		"no claim index":   {"DROP INDEX IX_outbox_claim ON {events}", "IX_outbox_claim is not there", sqlserver.IndexUnusable},
		"no retry index":   {"DROP INDEX IX_outbox_retry ON {events}", "IX_outbox_retry is not there", sqlserver.IndexUnusable},
		"unfiltered index": {"DROP INDEX IX_outbox_claim ON {events}; CREATE INDEX IX_outbox_claim ON {events} (event_type, id)", "filtered by", sqlserver.IndexUnusable},
		"wrong key":        {"DROP INDEX IX_outbox_claim ON {events}; CREATE INDEX IX_outbox_claim ON {events} (aggregate_id, id) WHERE status = 0", "first key column", sqlserver.IndexUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOutbox(t, scripts.Options{})
			b.needCatalog()
			b.needNumbers()
			b.exec(c.damage)
			err := b.store().Check(testContext(t))
			if err == nil || !strings.Contains(err.Error(), c.says) || sqlserver.ClassOf(err) != c.class {
				t.Errorf("got %v (%s), want one that says %q (%s)", err, sqlserver.ClassOf(err), c.says, c.class)
			}
		})
	}
}

// The hints of the statements find the indexes in any case, and so must the check.
func TestCheckTakesAnyCaseOfTheIndexes(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needCatalog()
	s := b.store(func(c *sqlserver.Config) { c.ClaimIndex, c.RetryIndex = "ix_outbox_CLAIM", "IX_OUTBOX_RETRY" })
	if err := s.Check(testContext(t)); err != nil {
		t.Error(err)
	}
}

// A table of one's own may write its columns in any case.
func TestCheckTakesAnyCaseOfTheColumns(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needCatalog()
	b.exec(`DROP TABLE {events};
CREATE TABLE {events} (
    ID BIGINT NOT NULL PRIMARY KEY, AGGREGATE_TYPE VARCHAR(100) NOT NULL, Aggregate_Id VARCHAR(100) NOT NULL,
    Event_Type VARCHAR(100) NOT NULL, Payload NVARCHAR(2000) NOT NULL, Headers NVARCHAR(2000) NULL,
    Status TINYINT NOT NULL DEFAULT (0) CHECK (Status IN (0, 1, 2)), Created_At DATETIME2(3) NOT NULL DEFAULT (SYSUTCDATETIME()),
    Processed_At DATETIME2(3) NULL, Retry_At DATETIME2(3) NULL, Retry_Count INT NOT NULL DEFAULT (0), Last_Error VARCHAR(400) NULL);
CREATE INDEX IX_outbox_claim ON {events} (Event_Type, ID) WHERE Status = 0;
CREATE INDEX IX_outbox_retry ON {events} (Retry_At, ID) WHERE Status = 2;`)
	if err := b.store().Check(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestCheckCountsUnknownStatus(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needCatalog()
	b.exec("ALTER TABLE {events} DROP CONSTRAINT " + (sqlserver.Names{Table: "CK_" + b.names.Table + "_status"}).Events()[len("[dbo]."):])
	s := b.store()
	id := b.add("a", 3)
	if err := s.Check(testContext(t)); err != nil {
		t.Errorf("without the constraint, values as they should be: %v", err)
	}
	b.exec("UPDATE {events} SET status = 9 WHERE id > @id", sql.Named("id", id[0]))
	err := s.Check(testContext(t))
	if err == nil || !strings.Contains(err.Error(), "2 rows with a status") || !errors.Is(err, worker.ErrPermanent) {
		t.Errorf("got %v, want two rows counted", err)
	}
}

func TestScriptMayRunAgain(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needCatalog()
	id := b.add("a", 1)
	b.create()
	b.wantRows(pending, id...)
}

// A sequence from 1 on beside rows would hand out their ids again.
func TestScriptMakesNoSequenceBesideRows(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.add("a", 1)
	b.exec("DROP SEQUENCE {sequence}")
	script, err := scripts.Outbox(b.options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.db.ExecContext(testContext(t), scripts.Batches(script)[1])
	if err == nil || !strings.Contains(err.Error(), "START WITH a number above the highest id") {
		t.Errorf("got %v", err)
	}
	b.exec("DELETE FROM {events}")
	b.exec(scripts.Batches(script)[1])
	if n := b.number("SELECT CASE WHEN OBJECT_ID(@sequence, N'SO') IS NULL THEN 0 ELSE 1 END", sql.Named("sequence", b.names.Sequence())); n != 1 {
		t.Error("no sequence was made beside an empty table")
	}
}

func TestScriptAddsOnlyWhatIsMissing(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needCatalog()
	id := b.add("a", 1)
	b.exec("DROP INDEX IX_outbox_retry ON {events}; DROP TABLE {receipts}")
	b.create()
	b.wantRows(pending, id...)
	if err := b.store().Check(testContext(t)); err != nil {
		t.Error(err)
	}
}
