package sqlserver_test

import (
	"database/sql"
	"slices"
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

func reap(t *testing.T, s *sqlserver.Store) worker.Reaped {
	t.Helper()
	r, err := s.Reap(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReapGivesBackWhatIsOverdue(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	id := b.add("a", 4)
	claim(t, s, "a", 2)
	b.expire()
	living := claim(t, s, "a", 2)

	if r := reap(t, s); r.Receipts != 1 || r.Returned != 2 || r.Parked != 0 || r.Unreadable != 0 || len(r.Missing) != 0 {
		t.Errorf("reaped %+v", r)
	}
	b.wantRows(row{RetryCount: 1}, id[0], id[1])
	b.wantRows(processed, id[2], id[3])
	if r := reap(t, s); r.Receipts != 0 {
		t.Errorf("reaped %+v the second time", r)
	}
	if lost, err := s.SettleSent(testContext(t), []worker.Receipt{living.Receipt}); err != nil || lost != 0 {
		t.Errorf("the living claim: lost %d, %v", lost, err)
	}
}

func TestReapParksWhatHasSpentItsAttempts(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store() // three attempts
	id := b.add("a", 1)
	for range 2 {
		claim(t, s, "a", 1)
		b.expire()
		if r := reap(t, s); r.Returned != 1 || r.Parked != 0 {
			t.Fatalf("reaped %+v", r)
		}
	}
	claim(t, s, "a", 1)
	b.expire()
	if r := reap(t, s); r.Returned != 0 || r.Parked != 1 {
		t.Errorf("reaped %+v in the last attempt", r)
	}
	got := b.row(id[0])
	if got.LastError == "" {
		t.Error("a parked event says nothing of why")
	}
	got.LastError = ""
	if want := (row{Status: 2, RetryCount: 3}); got != want {
		t.Errorf("parked event is %+v, want %+v", got, want)
	}
}

// A count at the end of its type stays there: an overflow would undo the reap or
// the settlement each time, and its other events would be sent again and again.
func TestAnAttemptAtTheEndOfItsTypeIsNotCounted(t *testing.T) {
	const most = 1<<31 - 1
	b := newOutbox(t, scripts.Options{})
	s := b.store(func(c *sqlserver.Config) { c.MaxAttempts = most })
	id := b.add("a", 4)
	b.exec("UPDATE {events} SET retry_count = @most WHERE id = @id", sql.Named("most", most), sql.Named("id", id[0]))
	b.exec("UPDATE {events} SET retry_count = @most - 1 WHERE id = @id", sql.Named("most", most), sql.Named("id", id[1]))
	b.exec("UPDATE {events} SET retry_count = -2 WHERE id = @id", sql.Named("id", id[2]))

	claim(t, s, "a", 4)
	b.expire()
	if r := reap(t, s); r.Receipts != 1 || r.Returned != 2 || r.Parked != 2 {
		t.Errorf("reaped %+v", r)
	}
	b.wantRows(row{Status: 2, RetryCount: most, LastError: "the lease ran out in its last attempt"}, id[0], id[1])
	b.wantRows(row{RetryCount: -1}, id[2])
	b.wantRows(row{RetryCount: 1}, id[3])

	b.exec("UPDATE {events} SET status = 0, last_error = NULL WHERE id = @id", sql.Named("id", id[0]))
	c := claim(t, s, "a", 3)
	failed := make([]worker.Failure, len(c.Events))
	for i, e := range c.Events {
		failed[i] = worker.Failure{ID: e.ID, Error: "no", SpendAttempt: true}
	}
	if err := s.Settle(testContext(t), worker.Settlement{Receipt: c.Receipt, Failed: failed}); err != nil {
		t.Fatal(err)
	}
	b.wantRows(row{Status: 2, RetryCount: most, LastError: "no"}, id[0])
	b.wantRows(row{Status: 2, RetryCount: 0, LastError: "no"}, id[2])
	b.wantRows(row{Status: 2, RetryCount: 2, LastError: "no"}, id[3])
}

func TestReapReportsMissingEvents(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	id := b.add("a", 3)
	claim(t, s, "a", 3)
	b.exec("DELETE FROM {events} WHERE id = @id", sql.Named("id", id[0]))
	b.exec("UPDATE {events} SET processed_at = DATEADD(SECOND, 1, processed_at) WHERE id = @id", sql.Named("id", id[2]))
	b.expire()
	r := reap(t, s)
	slices.Sort(r.Missing)
	if r.Receipts != 1 || r.Returned != 1 || !slices.Equal(r.Missing, []int64{id[0], id[2]}) {
		t.Errorf("reaped %+v", r)
	}
	b.wantRows(processed, id[2])
}

func TestReapLeavesWhatItCannotRead(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	for _, eventIDs := range []string{`{"v":2}`, `[1,2]`, `["x"]`, `[1.5]`, `[null]`, `null`} {
		b.exec(`INSERT INTO {receipts} (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
VALUES (NEWID(), 'x', 'a', '2020-01-01', '2020-01-02', 1, @ids)`, sql.Named("ids", eventIDs))
	}
	b.exec("UPDATE {receipts} SET event_count = 0 WHERE event_ids = 'null'")
	b.add("a", 1)
	claim(t, s, "a", 1)
	b.expire()
	if r := reap(t, s); r.Receipts != 1 || r.Unreadable != 6 {
		t.Errorf("reaped %+v, want one receipt and six unreadable", r)
	}
	if n := b.receipts(); n != 6 {
		t.Errorf("%d receipts are left, want 6", n)
	}
}

func TestReapSkipsAReceiptThatIsBeingSettled(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSkipping()
	s := b.store()
	id := b.add("a", 1)
	claim(t, s, "a", 1)
	b.expire()
	tx := b.begin()
	if _, err := tx.ExecContext(testContext(t), b.sql("DELETE FROM {receipts}")); err != nil {
		t.Fatal(err)
	}
	if r := reap(t, s); r.Receipts != 0 {
		t.Errorf("reaped %+v from under its worker", r)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	b.wantRows(processed, id...)
}

// A row that a person holds, in a transaction left open, keeps its own receipt
// from being reaped and no other.
func TestReapPassesByAReceiptWhoseRowIsHeld(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needNumbers()
	s := b.store()
	ids := b.add("a", 5)
	for range ids {
		claim(t, s, "a", 1)
	}
	b.expire()
	tx := b.begin()
	if _, err := tx.ExecContext(testContext(t), b.sql("UPDATE {events} SET retry_count = retry_count WHERE id = @id"), sql.Named("id", ids[0])); err != nil {
		t.Fatal(err)
	}
	r, err := s.Reap(testContext(t))
	if err == nil || r.Receipts != 4 {
		t.Errorf("reaped %+v, %v; want four receipts and the error of the fifth", r, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if r := reap(t, s); r.Receipts != 1 {
		t.Errorf("reaped %+v once the row was free, want the fifth", r)
	}
}

func TestReapOfManyReceipts(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	const n = 130 // more than one look takes
	b.add("a", n)
	for range n {
		claim(t, s, "a", 1)
	}
	b.expire()
	if r := reap(t, s); r.Receipts != n || r.Returned != n {
		t.Errorf("reaped %d receipts and %d events, want %d", r.Receipts, r.Returned, n)
	}
}

// More receipts that cannot be read than one look takes, all of them older.
func TestReapFindsWhatUnreadableReceiptsHide(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	const n = 250
	b.exec(`INSERT INTO {receipts} (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
SELECT NEWID(), 'x', 'a', '2020-01-01', '2020-01-02', 1, '?'
FROM   OPENJSON(N'[' + REPLICATE(CAST(N'1,' AS NVARCHAR(MAX)), 249) + N'1]')`)
	id := b.add("a", 130)
	for range id {
		claim(t, s, "a", 1)
	}
	b.expire()
	b.exec("UPDATE {receipts} SET lease_until = '2020-01-02' WHERE event_ids = '?'")
	if r := reap(t, s); r.Receipts != len(id) || r.Returned != len(id) || r.Unreadable != n {
		t.Errorf("reaped %d receipts and %d events past %d unreadable ones; want %d past %d", r.Receipts, r.Returned, r.Unreadable, len(id), n)
	}
	b.wantRows(row{RetryCount: 1}, id...)
}

// Another version may claim more at once than this one.
func TestReapOfALargerReceipt(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	for _, count := range []int{4000, 4001} {
		b.exec(`INSERT INTO {receipts} (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
VALUES (NEWID(), 'x', 'a', '2020-01-01', '2020-01-02', @count, CAST(N'[' + REPLICATE(CAST(N'7,' AS NVARCHAR(MAX)), @count - 1) + N'7]' AS VARCHAR(MAX)))`,
			sql.Named("count", count))
	}
	if r := reap(t, b.store()); r.Receipts != 1 || len(r.Missing) != 4000 || r.Unreadable != 1 {
		t.Errorf("reaped %d receipts with %d missing events, %d unreadable", r.Receipts, len(r.Missing), r.Unreadable)
	}
}
