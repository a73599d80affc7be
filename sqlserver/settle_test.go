package sqlserver_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"azsqloutbox/scripts"
	"azsqloutbox/worker"
)

func TestSettleSent(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	mine := b.add("a", 4)
	one, two := claim(t, s, "a", 2), claim(t, s, "a", 2)
	gone := worker.Receipt{ID: uuid.New()}

	lost, err := s.SettleSent(testContext(t), []worker.Receipt{one.Receipt, two.Receipt, gone})
	if err != nil || lost != 1 {
		t.Errorf("settled three, one of them gone: lost %d, %v", lost, err)
	}
	if n := b.receipts(); n != 0 {
		t.Errorf("%d receipts are left", n)
	}
	b.wantRows(processed, mine...)

	lost, err = s.SettleSent(testContext(t), []worker.Receipt{one.Receipt})
	if err != nil || lost != 1 {
		t.Errorf("settled again: lost %d, %v", lost, err)
	}
	if lost, err := s.SettleSent(testContext(t), nil); err != nil || lost != 0 {
		t.Errorf("settled nothing: lost %d, %v", lost, err)
	}
}

func TestSettleMovesWhatDidNotGoOut(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	id := b.add("a", 5)
	c := claim(t, s, "a", 5)
	long := strings.Repeat("x", 1000) + "é\n"
	err := s.Settle(testContext(t), worker.Settlement{
		Receipt:  c.Receipt,
		Returned: []int64{id[1]},
		Failed: []worker.Failure{
			{ID: id[2], Error: "refused: header 'a' is no JSON", SpendAttempt: false},
			{ID: id[3], Error: "timeout – später\nzweite Zeile 🙂", SpendAttempt: true, RetryIn: time.Hour},
			{ID: id[4], Error: long, SpendAttempt: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.wantRows(processed, id[0])
	b.wantRows(pending, id[1])
	b.wantRows(row{Status: 2, LastError: "refused: header 'a' is no JSON"}, id[2])
	b.wantRows(row{Status: 2, RetryCount: 1, Retry: true, LastError: "timeout ? sp?ter zweite Zeile ?"}, id[3])
	b.wantRows(row{Status: 2, RetryCount: 1, LastError: strings.Repeat("x", 400)}, id[4])
	if n := b.receipts(); n != 0 {
		t.Errorf("%d receipts are left", n)
	}
	if n := b.number("SELECT COUNT(*) FROM {events} WHERE id = @id AND retry_at > DATEADD(MINUTE, 59, SYSUTCDATETIME()) AND retry_at < DATEADD(MINUTE, 61, SYSUTCDATETIME())", sql.Named("id", id[3])); n != 1 {
		t.Error("retry_at is not an hour away by the database's clock")
	}
}

func TestSettleAfterTheLeaseChangesNothing(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	zombie, living := b.store(), b.store()
	id := b.add("a", 2)
	old := claim(t, zombie, "a", 2)
	b.expire()
	if r, err := living.Reap(testContext(t)); err != nil || r.Receipts != 1 {
		t.Fatalf("reaped %+v, %v", r, err)
	}
	again := claim(t, living, "a", 2)

	err := zombie.Settle(testContext(t), worker.Settlement{Receipt: old.Receipt, Returned: id[:1], Failed: []worker.Failure{{ID: id[1], Error: "x"}}})
	if !errors.Is(err, worker.ErrLeaseLost) {
		t.Errorf("the zombie's settle: %v, want ErrLeaseLost", err)
	}
	if lost, err := zombie.SettleSent(testContext(t), []worker.Receipt{old.Receipt}); err != nil || lost != 1 {
		t.Errorf("the zombie's second try: lost %d, %v", lost, err)
	}
	b.wantRows(row{Status: 1, Processed: true, RetryCount: 1}, id...)
	if err := living.Settle(testContext(t), worker.Settlement{Receipt: again.Receipt, Returned: id[:1]}); err != nil {
		t.Errorf("the owner's settle: %v", err)
	}
}

func TestSettleIsFencedByTheClaimsTime(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	id := b.add("a", 2)
	c := claim(t, s, "a", 2)
	// A row of the same id that another claim has flipped since.
	b.exec("UPDATE {events} SET processed_at = DATEADD(MILLISECOND, 1, processed_at) WHERE id = @id", sql.Named("id", id[0]))
	if err := s.Settle(testContext(t), worker.Settlement{Receipt: c.Receipt, Returned: id}); err != nil {
		t.Fatal(err)
	}
	b.wantRows(processed, id[0])
	b.wantRows(pending, id[1])
}

// A client that reads the database's times in another zone must not lose the
// batch by it.
func TestSettleDoesNotAskTheClientForTheTime(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	id := b.add("a", 1)
	c := claim(t, s, "a", 1)
	c.Receipt.ClaimedAt = c.Receipt.ClaimedAt.Add(-time.Hour)
	if err := s.Settle(testContext(t), worker.Settlement{Receipt: c.Receipt, Returned: id}); err != nil {
		t.Fatal(err)
	}
	b.wantRows(pending, id...)
}

func TestSettleKeepsQuotesOfAnError(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	var v string
	err := b.db.QueryRowContext(testContext(t), `SELECT v FROM OPENJSON(@json) WITH (v NVARCHAR(10) '$')`,
		sql.Named("json", `["a\"b"]`)).Scan(&v)
	if err != nil {
		t.Fatal(err)
	}
	if v != `a"b` {
		t.Skipf("OPENJSON of this engine reads an escaped quote as %s", v)
	}
	s := b.store()
	id := b.add("a", 1)
	c := claim(t, s, "a", 1)
	const text = `it's "bad": \path {[$`
	if err := s.Settle(testContext(t), worker.Settlement{Receipt: c.Receipt, Failed: []worker.Failure{{ID: id[0], Error: text}}}); err != nil {
		t.Fatal(err)
	}
	b.wantRows(row{Status: 2, LastError: text}, id...)
}
