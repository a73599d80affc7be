package sqlserver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/worker"
)

// withEventType is a table whose event_type is declared otherwise.
func withEventType(t *testing.T, declaration string) *outbox {
	t.Helper()
	b := newOutbox(t, scripts.Options{})
	b.recreate("event_type     /*event_type*/ VARCHAR(100) NOT NULL", "event_type "+declaration)
	return b
}

// A key that the column would cut is another type's.
func TestOverlongEventTypeClaimsNothing(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	short := strings.Repeat("x", 100)
	id := b.add(short, 1)
	if _, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: short + "y", Batch: 1}); !errors.Is(err, worker.ErrPermanent) {
		t.Errorf("a claim of 101 characters: %v", err)
	}
	if _, err := s.EqualTypes(testContext(t), []string{short, short + "y"}); !errors.Is(err, worker.ErrPermanent) {
		t.Errorf("a key of 101 characters: %v", err)
	}
	b.wantRows(pending, id...)
	if c := claim(t, s, short, 1); len(c.Events) != 1 {
		t.Error("a key of 100 characters claims nothing")
	}
}

// The code page of the database, not of the column, is what a key must survive.
func TestEventTypesBeyondTheCodePage(t *testing.T) {
	newOutbox(t, scripts.Options{}).needCollation("Latin1_General_100_BIN2_UTF8")
	b := withEventType(t, "VARCHAR(100) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL")
	s := b.store()
	types := []string{"a", "geändert"}
	for _, eventType := range types {
		b.add(eventType, 2)
	}
	if pairs, err := s.EqualTypes(testContext(t), types); err != nil || len(pairs) != 0 {
		t.Errorf("keys that it has: %q, %v", pairs, err)
	}
	if got, _, err := s.DiscoverPending(testContext(t), nil, 10); err != nil || !slices.Equal(got, types) {
		t.Errorf("found %q, %v", got, err)
	}
	if c := claim(t, s, "geändert", 10); len(c.Events) != 2 {
		t.Errorf("claimed %d events", len(c.Events))
	}

	if _, err := s.EqualTypes(testContext(t), []string{"a", "日本"}); !errors.Is(err, worker.ErrPermanent) || !strings.Contains(err.Error(), `"日本"`) {
		t.Errorf("a key that it does not have: %v", err)
	}
	// Two that look the same in that code page; the last has its characters again.
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload)
VALUES (100, 'x', 'x', N'ā日', '{}'), (101, 'x', 'x', N'ā月', '{}'), (102, 'x', 'x', N'ā日', '{}'), (103, 'x', 'x', N'€', '{}')`)
	got, _, err := s.DiscoverPending(testContext(t), nil, 10)
	if err != nil || !slices.Equal(got, []string{"a", "€"}) {
		t.Errorf("found %q, %v past what it does not have", got, err)
	}
}

// An older table may let NULL in. Check refuses it; a scan goes past it.
func TestNullEventTypeHidesNoOther(t *testing.T) {
	b := withEventType(t, "VARCHAR(100) NULL")
	b.exec("INSERT INTO {events} (id, aggregate_type, aggregate_id, payload) VALUES (100, 'x', 'x', '{}')")
	b.add("a", 1)
	if got, _, err := b.store().DiscoverPending(testContext(t), nil, 10); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("found %q, %v", got, err)
	}
}

// The receipt's event_type is for people and must not fail a claim.
func TestReceiptTakesWhatFitsOfTheEventType(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.recreate("/*receipt_event_type*/ VARCHAR(100)", "VARCHAR(10)")
	id := b.add("order.created", 1)
	claim(t, b.store(), "order.created", 1)
	b.wantRows(processed, id...)
	if n := b.number("SELECT COUNT(*) FROM {receipts} WHERE event_type = 'order.crea'"); n != 1 {
		t.Error("the receipt does not hold the beginning of the event type")
	}
}

// CHAR pads what it holds, which is no loss.
func TestEnqueueIntoPaddedColumns(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.recreate("aggregate_type /*aggregate*/ VARCHAR(100)", "aggregate_type CHAR(20)")
	b.needSequences()
	e := event("{}")
	e.AggregateType = "Größe"
	if err := b.enqueue(testContext(t), b.writer(), e); err != nil {
		t.Error(err)
	}
	e.AggregateType = "日本"
	if err := b.enqueue(testContext(t), b.writer(), e); err == nil || !strings.Contains(err.Error(), "aggregate_type") {
		t.Errorf("what the code page does not have: %v", err)
	}
}
