package sqlserver_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

func TestClaimFlipsAndWritesAReceipt(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	mine := b.add("order.created", 3)
	other := b.add("order.paid", 1)

	c := claim(t, s, "order.created", 10)
	if got := ids(c); !slices.Equal(got, mine) {
		t.Fatalf("claimed %v, want %v", got, mine)
	}
	if c.More {
		t.Error("More is set although the claim was short")
	}
	b.wantRows(processed, mine...)
	b.wantRows(pending, other...)

	var claimedAt, leaseUntil time.Time
	var count int
	var eventIDs, owner, eventType string
	err := b.db.QueryRowContext(testContext(t), b.sql(`SELECT claimed_at, lease_until, event_count, event_ids, owner, event_type FROM {receipts} WHERE claim_id = @id`),
		sql.Named("id", c.Receipt.ID.String())).Scan(&claimedAt, &leaseUntil, &count, &eventIDs, &owner, &eventType)
	if err != nil {
		t.Fatal(err)
	}
	if count != 3 || eventIDs != "[1,2,3]" || owner != "test-worker" || eventType != "order.created" {
		t.Errorf("receipt holds count %d, ids %s, owner %s, type %s", count, eventIDs, owner, eventType)
	}
	if !claimedAt.Equal(c.Receipt.ClaimedAt) || !leaseUntil.Equal(c.Receipt.LeaseUntil) || leaseUntil.Sub(claimedAt) != time.Minute {
		t.Errorf("receipt says %s to %s, the claim %s to %s", claimedAt, leaseUntil, c.Receipt.ClaimedAt, c.Receipt.LeaseUntil)
	}
	if n := b.number("SELECT COUNT(*) FROM {events} AS e INNER JOIN {receipts} AS r ON r.claimed_at = e.processed_at"); n != 3 {
		t.Errorf("%d rows carry the receipt's time, want 3", n)
	}
}

func TestClaimOfNothingLeavesNothing(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	c := claim(t, b.store(), "order.created", 10)
	if len(c.Events) != 0 || c.More || b.receipts() != 0 {
		t.Errorf("claimed %+v, %d receipts", c, b.receipts())
	}
}

func TestClaimReadsByKeysetInIDOrder(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	all := b.add("a", 7)
	var got []int64
	var after worker.Cursor
	for range 10 {
		c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 3, After: after})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ids(c)...)
		if !c.More {
			break
		}
		after = worker.After(c.Events[len(c.Events)-1].ID)
	}
	if !slices.Equal(got, all) {
		t.Errorf("claimed %v, want %v", got, all)
	}
	// A lower id that appeared meanwhile is not above the cursor, and is found
	// without one.
	b.exec("UPDATE {events} SET status = 0, processed_at = NULL WHERE id = 2")
	c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 3, After: worker.After(4)})
	if err != nil || len(c.Events) != 0 {
		t.Errorf("above 4: %v, %v", ids(c), err)
	}
	if c := claim(t, s, "a", 3); !slices.Equal(ids(c), []int64{2}) {
		t.Errorf("without a cursor: %v, want [2]", ids(c))
	}
}

func TestClaimTakesNegativeAndExtremeIDs(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	want := []int64{-9223372036854775808, -1, 0, 9223372036854775807}
	for _, id := range want {
		b.nextID = id
		b.addEvent("a", "{}", nil)
	}
	if c := claim(t, s, "a", 10); !slices.Equal(ids(c), want) {
		t.Errorf("claimed %v, want %v", ids(c), want)
	}
	c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 1, After: worker.After(9223372036854775807)})
	if err != nil || len(c.Events) != 0 {
		t.Errorf("above the highest id: %v, %v", ids(c), err)
	}
}

func TestClaimsAreDisjoint(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSkipping()
	s := b.store()
	all := b.add("a", 200)

	var mu sync.Mutex
	var got []int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 7})
				if err != nil {
					t.Error(err)
					return
				}
				if len(c.Events) == 0 {
					return
				}
				mu.Lock()
				got = append(got, ids(c)...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	if !slices.Equal(got, all) {
		t.Errorf("claimed %d events, want each of %d once", len(got), len(all))
	}
}

func TestClaimSkipsWhatAnotherHolds(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSkipping()
	s := b.store()
	all := b.add("a", 3)
	tx := b.begin()
	if _, err := tx.ExecContext(testContext(t), b.sql("UPDATE {events} SET retry_count = 7 WHERE id = @id"), sql.Named("id", all[1])); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, s, "a", 10); !slices.Equal(ids(c), []int64{all[0], all[2]}) {
		t.Errorf("claimed %v past a locked row, want %v", ids(c), []int64{all[0], all[2]})
	}
}

func TestClaimDoesNotSeeUncommittedEvents(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSkipping()
	s := b.store()
	tx := b.begin()
	if _, err := tx.ExecContext(testContext(t), b.sql("INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'x', 'x', 'a', '{}')")); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, s, "a", 10); len(c.Events) != 0 {
		t.Errorf("claimed %v before its commit", ids(c))
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, s, "a", 10); len(c.Events) != 1 {
		t.Errorf("claimed %v after its commit, want one", ids(c))
	}
}

func TestClaimReadsAllColumns(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.addEvent("a", `{"x":1}`, `{"tenant":"north"}`)
	b.exec("UPDATE {events} SET retry_count = 2, created_at = '2026-08-06T12:34:56.789' WHERE id = 1")
	b.addEvent("a", "", nil)

	c := claim(t, s, "a", 10)
	if len(c.Events) != 2 {
		t.Fatalf("claimed %d events", len(c.Events))
	}
	e := c.Events[0]
	if e.ID != 1 || e.Type != "a" || e.AggregateType != "order" || e.AggregateID != "1" ||
		string(e.Payload) != `{"x":1}` || string(e.Headers) != `{"tenant":"north"}` || e.RetryCount != 2 || e.Withheld {
		t.Errorf("event is %+v", e)
	}
	if want := time.Date(2026, 8, 6, 12, 34, 56, 789e6, time.UTC); !e.CreatedAt.Equal(want) {
		t.Errorf("created_at is %s, want %s", e.CreatedAt, want)
	}
	if e := c.Events[1]; e.Payload != nil || e.Headers != nil || e.Withheld {
		t.Errorf("event with nothing in it is %+v", e)
	}
}

func TestClaimWithholdsOversizePayloads(t *testing.T) {
	b := newOutbox(t, scripts.Options{Payload: "VARCHAR(MAX)"})
	s := b.store(func(c *sqlserver.Config) { c.MaxEventBytes = 100 })
	fits, over := make([]byte, 100), make([]byte, 101)
	for i := range over {
		over[i] = 'x'
	}
	copy(fits, over)
	b.addEvent("a", string(over), nil)
	b.addEvent("a", string(fits), nil)
	c := claim(t, s, "a", 10)
	if e := c.Events[0]; !e.Withheld || e.Payload != nil || e.StoredBytes != 101 {
		t.Errorf("event over the limit: withheld %v, %d bytes read, %d stored", e.Withheld, len(e.Payload), e.StoredBytes)
	}
	if e := c.Events[1]; e.Withheld || len(e.Payload) != 100 {
		t.Errorf("event at the limit: withheld %v, %d bytes read", e.Withheld, len(e.Payload))
	}
}

func TestClaimWithholdsOversizeHeaders(t *testing.T) {
	b := newOutbox(t, scripts.Options{Payload: "VARCHAR(MAX)"})
	s := b.store(func(c *sqlserver.Config) { c.MaxEventBytes = 100 })
	b.addEvent("a", strings.Repeat("p", 50), strings.Repeat("h", 51))
	b.addEvent("a", strings.Repeat("p", 50), strings.Repeat("h", 50))
	b.addEvent("a", "", strings.Repeat("h", 101))
	c := claim(t, s, "a", 10)
	for i, withheld := range []bool{true, false, true} {
		e := c.Events[i]
		if e.Withheld != withheld || (e.Headers == nil) != withheld || withheld && e.Payload != nil {
			t.Errorf("event %d of %d stored bytes: withheld %v, %d and %d bytes read", i, e.StoredBytes, e.Withheld, len(e.Payload), len(e.Headers))
		}
	}
}

// The bound is on what the worker holds, which is more than the column's bytes
// where NVARCHAR becomes UTF-8.
func TestClaimBoundsBytesOfUTF8(t *testing.T) {
	b := newOutbox(t, scripts.Options{Payload: "NVARCHAR(2000)"})
	s := b.store(func(c *sqlserver.Config) { c.MaxBatchBytes = 1000 })
	text := strings.Repeat("日", 100)
	for range 5 {
		b.addEvent("a", text, nil)
	}
	c := claim(t, s, "a", 10)
	if string(c.Events[0].Payload) != text {
		t.Skip("this engine does not give back the text")
	}
	if len(c.Events) != 3 || !c.More {
		t.Errorf("claimed %d events of 300 bytes, want 3", len(c.Events))
	}
}

func TestClaimStopsAtTheByteBound(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store(func(c *sqlserver.Config) { c.MaxBatchBytes = 35 }) // of 16 an event
	for range 3 {
		b.addEvent("a", "0123456789", nil)
	}
	b.addEvent("a", "a payload that is over the bound all by itself", nil)

	first := claim(t, s, "a", 10)
	if !slices.Equal(ids(first), []int64{1, 2}) || !first.More {
		t.Fatalf("claimed %v, more %v; want [1 2] and more", ids(first), first.More)
	}
	b.wantRows(pending, 3, 4)
	if c := claim(t, s, "a", 10); !slices.Equal(ids(c), []int64{3}) || !c.More {
		t.Errorf("claimed %v, more %v; want [3] and more", ids(c), c.More)
	}
	if c := claim(t, s, "a", 10); !slices.Equal(ids(c), []int64{4}) || c.More {
		t.Errorf("claimed %v, more %v; want [4], the one that is too large for any batch", ids(c), c.More)
	}
}

func TestClaimRefusesAnImpossibleBatch(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	for _, batch := range []int{0, -1, sqlserver.MaxBatch + 1} {
		_, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: batch})
		if !errors.Is(err, worker.ErrPermanent) {
			t.Errorf("batch of %d: %v, want a permanent error", batch, err)
		}
	}
}

func TestClaimOfACancelledContext(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	mine := b.add("a", 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Claim(ctx, worker.ClaimRequest{EventType: "a", Batch: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	b.wantRows(pending, mine...)
}

func TestMissingClaimIndexIsLoud(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needHints()
	b.needNumbers()
	s := b.store()
	b.add("a", 1)
	b.exec("DROP INDEX IX_outbox_claim ON {events}")
	_, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 1})
	if sqlserver.ClassOf(err) != sqlserver.IndexUnusable {
		t.Errorf("without the index: %v, class %s", err, sqlserver.ClassOf(err))
	}
	b.create()
	if c := claim(t, s, "a", 1); len(c.Events) != 1 {
		t.Errorf("with the index again: %d events", len(c.Events))
	}
}

func TestMissingTableIsPermanent(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store(func(c *sqlserver.Config) { c.Table = "no such table" })
	_, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 1})
	if !errors.Is(err, worker.ErrPermanent) {
		t.Errorf("got %v, want a permanent error", err)
	}
}
