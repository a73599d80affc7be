package sqlserver_test

import (
	"database/sql"
	"testing"

	"azsqloutbox/scripts"
)

func TestRetryDue(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	id := b.add("a", 4)
	fail := func(id int64, retryAt string) {
		b.exec("UPDATE {events} SET status = 2, retry_count = 1, last_error = 'x', retry_at = "+retryAt+" WHERE id = @id", sql.Named("id", id))
	}
	fail(id[0], "DATEADD(SECOND, -1, SYSUTCDATETIME())")
	fail(id[1], "DATEADD(HOUR, 1, SYSUTCDATETIME())")
	fail(id[2], "NULL")

	if !reap(t, s).RetryDue {
		t.Error("Reap does not say that something is due")
	}
	n, err := s.RetryDue(testContext(t))
	if err != nil || n != 1 {
		t.Fatalf("moved %d, %v; want 1", n, err)
	}
	b.wantRows(row{RetryCount: 1, LastError: "x"}, id[0])
	b.wantRows(row{Status: 2, RetryCount: 1, Retry: true, LastError: "x"}, id[1])
	b.wantRows(row{Status: 2, RetryCount: 1, LastError: "x"}, id[2])
	b.wantRows(pending, id[3])
	if n, err := s.RetryDue(testContext(t)); err != nil || n != 0 {
		t.Errorf("moved %d, %v the second time", n, err)
	}
	if reap(t, s).RetryDue {
		t.Error("Reap says that something is due when nothing is")
	}
}

// A table that was there before may have a coarser time.
func TestRetryDueOfADatetimeColumn(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.recreate("retry_at       DATETIME2(3)  NULL", "retry_at DATETIME NULL")
	s := b.store()
	id := b.add("a", 2)
	b.exec("UPDATE {events} SET status = 2, retry_at = DATEADD(SECOND, -1, SYSUTCDATETIME()) WHERE id = @id", sql.Named("id", id[0]))
	b.exec("UPDATE {events} SET status = 2, retry_at = DATEADD(HOUR, 1, SYSUTCDATETIME()) WHERE id = @id", sql.Named("id", id[1]))

	if !reap(t, s).RetryDue {
		t.Error("Reap does not say that something is due")
	}
	if n, err := s.RetryDue(testContext(t)); err != nil || n != 1 {
		t.Errorf("moved %d, %v; want 1", n, err)
	}
	b.wantRows(pending, id[0])
	b.wantRows(row{Status: 2, Retry: true}, id[1])
}

func TestRetryDueMovesMoreThanABatch(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, status, retry_at)
SELECT CAST(j.[key] AS BIGINT), 'x', 'x', 'a', '{}', 2, '2020-01-01'
FROM OPENJSON(N'[' + REPLICATE(CAST(N'1,' AS NVARCHAR(MAX)), 1200) + N'1]') AS j`)
	if n, err := s.RetryDue(testContext(t)); err != nil || n != 1201 {
		t.Errorf("moved %d, %v; want 1201", n, err)
	}
}
