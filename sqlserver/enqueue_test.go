package sqlserver_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

func (b *outbox) writer() *sqlserver.Writer {
	b.t.Helper()
	w, err := sqlserver.NewWriter(b.names)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

// enqueue writes events in a transaction of their own.
func (b *outbox) enqueue(ctx context.Context, w *sqlserver.Writer, events ...sqlserver.OutboxEvent) error {
	b.t.Helper()
	tx := b.begin()
	if err := w.Enqueue(ctx, tx, events...); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func event(payload string) sqlserver.OutboxEvent {
	return sqlserver.OutboxEvent{AggregateType: "order", AggregateID: "42", EventType: "order.created", Payload: []byte(payload)}
}

func TestEnqueueTakesIDsInBlocks(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSequences()
	w := b.writer()
	batch := make([]sqlserver.OutboxEvent, 60)
	for i := range batch {
		batch[i] = event(fmt.Sprint(i))
	}
	for _, events := range [][]sqlserver.OutboxEvent{batch[:1], batch, batch[:50]} {
		if err := b.enqueue(testContext(t), w, events...); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.enqueue(testContext(t), w); err != nil {
		t.Errorf("no events: %v", err)
	}
	c := claim(t, b.store(), "order.created", 1000)
	var want []int64
	want = append(want, 1) // of the block 1 to 50
	for id := int64(51); id <= 110; id++ {
		want = append(want, id) // of the blocks 51 to 100 and 101 to 150
	}
	for id := int64(151); id <= 200; id++ {
		want = append(want, id)
	}
	if got := ids(c); !slices.Equal(got, want) {
		t.Errorf("ids are %v", got)
	}
	if next := b.number("SELECT NEXT VALUE FOR {sequence}"); next != 201 {
		t.Errorf("the next writer's block begins at %d, want 201", next)
	}
	for i, e := range c.Events[1:61] {
		if string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("event %d has payload %s: the order of the list is not the order of the ids", i, e.Payload)
		}
	}
}

func TestEnqueueFollowsTheSequencesIncrement(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSequences()
	w := b.writer()
	b.exec("ALTER SEQUENCE {sequence} INCREMENT BY 1")
	if err := b.enqueue(testContext(t), w, event("a"), event("b"), event("c")); err != nil {
		t.Fatal(err)
	}
	next := b.number("SELECT NEXT VALUE FOR {sequence}")
	if highest := b.number("SELECT MAX(id) FROM {events}"); next != highest+1 {
		t.Errorf("the highest id is %d, the next of the sequence %d", highest, next)
	}
}

func TestEnqueueInTheCallersTransaction(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSequences()
	tx := b.begin()
	if err := b.writer().Enqueue(testContext(t), tx, event("a")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := b.number("SELECT COUNT(*) FROM {events}"); n != 0 {
		t.Errorf("%d events outlived the rollback", n)
	}
}

func TestEnqueueManyStatements(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSequences()
	events := make([]sqlserver.OutboxEvent, 2500)
	for i := range events {
		events[i] = event(fmt.Sprint(i))
	}
	if err := b.enqueue(testContext(t), b.writer(), events...); err != nil {
		t.Fatal(err)
	}
	if n := b.number("SELECT COUNT(DISTINCT id) FROM {events}"); n != 2500 {
		t.Errorf("%d events were written, want 2500", n)
	}
}

func TestEnqueueKeepsEveryCharacter(t *testing.T) {
	for _, payload := range []string{"VARCHAR(2000)", "NVARCHAR(2000)"} {
		t.Run(payload, func(t *testing.T) {
			b := newOutbox(t, scripts.Options{Payload: payload})
			b.needSequences()
			w := b.writer()
			for name, text := range texts {
				e := event(text)
				e.EventType = name
				e.Headers = map[string]any{"text": text, "n": 12, "yes": true, "f": 0.5, "none": nil}
				if err := b.enqueue(testContext(t), w, e); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				c := claim(t, b.store(), name, 1)
				if len(c.Events) != 1 || string(c.Events[0].Payload) != text {
					t.Errorf("%s: came back as %+v", name, c.Events)
				}
				if name == "ascii" {
					if want := `{"f":0.5,"n":12,"none":null,"text":"{\"a\":\"b\"}","yes":true}`; string(c.Events[0].Headers) != want {
						t.Errorf("headers are %s, want %s", c.Events[0].Headers, want)
					}
				}
			}
		})
	}
}

func TestEnqueueRefuses(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSequences()
	w := b.writer()
	fits := event(strings.Repeat("ä", 1000))
	fits.AggregateID = strings.Repeat("x", 100)
	if err := b.enqueue(testContext(t), w, fits); err != nil {
		t.Errorf("an event that fills its columns: %v", err)
	}
	change := func(f func(*sqlserver.OutboxEvent)) sqlserver.OutboxEvent {
		e := event("{}")
		f(&e)
		return e
	}
	for says, e := range map[string]sqlserver.OutboxEvent{
		"payload: has 2001 bytes":             event(strings.Repeat("ä", 1000) + "x"),
		"payload: is not valid UTF-8":         event("a\xffb"),
		"aggregate_id: has 101 bytes":         change(func(e *sqlserver.OutboxEvent) { e.AggregateID = strings.Repeat("x", 101) }),
		"aggregate_type: has 101 bytes":       change(func(e *sqlserver.OutboxEvent) { e.AggregateType = strings.Repeat("x", 101) }),
		"event_type: has 101 bytes":           change(func(e *sqlserver.OutboxEvent) { e.EventType = strings.Repeat("x", 101) }),
		"event_type is empty":                 change(func(e *sqlserver.OutboxEvent) { e.EventType = "" }),
		"headers: has 2010 bytes":             change(func(e *sqlserver.OutboxEvent) { e.Headers = map[string]any{"ab": strings.Repeat("x", 2001)} }),
		`headers: "a" is a map[string]string`: change(func(e *sqlserver.OutboxEvent) { e.Headers = map[string]any{"a": map[string]string{}} }),
		`headers: "a" is not valid UTF-8`:     change(func(e *sqlserver.OutboxEvent) { e.Headers = map[string]any{"a": "\xff"} }),
		`headers: "\xff" is not valid UTF-8`:  change(func(e *sqlserver.OutboxEvent) { e.Headers = map[string]any{"\xff": 1} }),
		"headers: json: unsupported value":    change(func(e *sqlserver.OutboxEvent) { e.Headers = map[string]any{"a": math.NaN()} }),
	} {
		err := b.enqueue(testContext(t), w, event("good"), e)
		if err == nil || !strings.Contains(err.Error(), "event 1: "+says) {
			t.Errorf("got %v, want one that says %q", err, says)
		}
	}
	if n := b.number("SELECT COUNT(*) FROM {events}"); n != 1 {
		t.Errorf("%d events were written, want only the one that fits", n)
	}
}

func TestEnqueueRefusesWhatACodePageDoesNotHave(t *testing.T) {
	b := newOutbox(t, scripts.Options{Collation: "Latin1_General_CI_AS"})
	b.needSequences()
	w := b.writer()
	if err := b.enqueue(testContext(t), w, event("Größe: 5 €")); err != nil {
		t.Errorf("what Latin 1 has: %v", err)
	}
	for _, text := range []string{"日本語", "ā", strings.Repeat("é", 2001)} {
		err := b.enqueue(testContext(t), w, event("good"), event(text))
		if err == nil || !strings.Contains(err.Error(), "event 1: payload") {
			t.Errorf("%.10q: got %v, want a refusal", text, err)
		}
	}
	if n := b.number("SELECT COUNT(*) FROM {events}"); n != 1 {
		t.Errorf("%d events were written, want one", n)
	}
	if c := claim(t, b.store(), "order.created", 10); string(c.Events[0].Payload) != "Größe: 5 €" {
		t.Errorf("came back as %q", c.Events[0].Payload)
	}
}

func TestEnqueueTakesTheTraceparent(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSequences()
	w := b.writer()
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: trace.FlagsSampled,
	})
	ctx := trace.ContextWithSpanContext(testContext(t), span)
	own := event("own")
	own.Headers = map[string]any{"traceparent": "mine"}
	plain := event("plain")
	plain.Headers = map[string]any{"a": "b"}
	if err := b.enqueue(ctx, w, event("none"), plain, own); err != nil {
		t.Fatal(err)
	}
	const parent = "00-01020300000000000000000000000000-0405000000000000-01"
	c := claim(t, b.store(), "order.created", 10)
	for i, want := range []string{
		`{"traceparent":"` + parent + `"}`,
		`{"a":"b","traceparent":"` + parent + `"}`,
		`{"traceparent":"mine"}`,
	} {
		if got := string(c.Events[i].Headers); got != want {
			t.Errorf("headers of event %d are %s, want %s", i, got, want)
		}
	}
	if _, has := plain.Headers["traceparent"]; has {
		t.Error("the caller's headers were changed")
	}
}

// identityTable turns the id into an IDENTITY column.
func identityTable(t *testing.T) *outbox {
	t.Helper()
	b := newOutbox(t, scripts.Options{})
	b.recreate("id             BIGINT        NOT NULL", "id BIGINT IDENTITY (1000, 1) NOT NULL")
	b.exec("DROP SEQUENCE {sequence}")
	return b
}

func TestEnqueueIntoIdentity(t *testing.T) {
	b := identityTable(t)
	b.needCatalog()
	if err := b.enqueue(testContext(t), b.writer(), event("a"), event("b")); err != nil {
		t.Fatal(err)
	}
	c := claim(t, b.store(), "order.created", 10)
	if !slices.Equal(ids(c), []int64{1000, 1001}) || string(c.Events[0].Payload) != "a" {
		t.Errorf("claimed %+v", c.Events)
	}
}

func TestEnqueueIntegerEventType(t *testing.T) {
	b := newOutbox(t, scripts.Options{EventType: "INT"})
	b.needSequences()
	w := b.writer()
	e := event("a")
	e.EventType = "7"
	if err := b.enqueue(testContext(t), w, e); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, b.store(), "7", 1); len(c.Events) != 1 {
		t.Errorf("claimed %d events", len(c.Events))
	}
	for _, eventType := range []string{"x", "3000000000"} {
		e.EventType = eventType
		if err := b.enqueue(testContext(t), w, e); err == nil || !strings.Contains(err.Error(), "event_type") {
			t.Errorf("%s: %v", eventType, err)
		}
	}
}
