package service_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/scripts"
	busemulator "azsqloutbox/servicebus/emulator"
	"azsqloutbox/sqlserver"
)

// patience bounds every wait for something that happens in another goroutine.
const patience = 30 * time.Second

func startStack(t *testing.T, c local.Config) *local.Stack {
	t.Helper()
	stack, err := local.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Error(err)
		}
	})
	return stack
}

// settingsFor is a worker on the stack that polls fast and listens nowhere.
func settingsFor(t *testing.T, stack *local.Stack) service.Settings {
	t.Helper()
	s, err := service.DefaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	s.SQL.DSN = stack.SQL.DSN()
	s.ServiceBus.ConnectionString = stack.Bus.ConnectionString()
	s.ServiceBus.Entity = local.Entity
	s.Claim.IdlePoll = 10 * time.Millisecond
	s.Process.Listen = "off"
	return s
}

// drain runs a worker until the table is empty.
func drain(t *testing.T, s service.Settings) {
	t.Helper()
	s.Claim.Drain = true
	w, err := service.New(s, zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("the backlog was not drained in time")
	}
}

// enqueue writes events in one transaction.
func enqueue(t *testing.T, stack *local.Stack, events ...sqlserver.OutboxEvent) {
	t.Helper()
	db, err := sqlserver.Open(stack.SQL.DSN(), sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := sqlserver.Enqueue(t.Context(), tx, events...); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func event(eventType, payload string) sqlserver.OutboxEvent {
	return sqlserver.OutboxEvent{AggregateType: "order", AggregateID: "42", EventType: eventType, Payload: []byte(payload)}
}

// query runs one SELECT past the worker's own connections.
func query(t *testing.T, stack *local.Stack, text string) [][]any {
	t.Helper()
	sets, err := stack.SQL.Exec(t.Context(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return sets[len(sets)-1].Rows
}

func TestBadEventsAreParkedAndTheGoodOnesArrive(t *testing.T) {
	stack := startStack(t, local.Config{Schema: scripts.Options{Payload: "VARCHAR(MAX)"}})
	var events []sqlserver.OutboxEvent
	for i := range 1000 {
		events = append(events, event("order-placed", fmt.Sprintf(`{"n":%d}`, i)))
	}
	huge := strings.Repeat("x", 600<<10)
	enqueue(t, stack, append(events[:500:500], event("order-placed", huge))...)
	enqueue(t, stack, append(events[500:], event("order-placed", huge))...)
	// No library of ours writes such a header; a writer of another kind did.
	if _, err := stack.SQL.Exec(t.Context(), `
		SET QUOTED_IDENTIFIER ON;
		INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers)
		VALUES (900001, 'order', '42', 'order-placed', '{}', '{tenant: north}');`); err != nil {
		t.Fatal(err)
	}

	drain(t, settingsFor(t, stack))

	if got := stack.Bus.Counts(local.Entity).Active; got != 1000 {
		t.Errorf("%d messages arrived, want the 1000 good ones", got)
	}
	rows := query(t, stack, `SELECT id, last_error, retry_count, retry_at FROM dbo.outbox_event WHERE status = 2 ORDER BY id`)
	if len(rows) != 3 {
		t.Fatalf("%d events are FAILED, want 3: %v", len(rows), rows)
	}
	for i, words := range [][]string{{"614", "262144"}, {"614", "262144"}, {"headers", "JSON"}} {
		for _, word := range words {
			if text := fmt.Sprint(rows[i][1]); !strings.Contains(text, word) {
				t.Errorf("last_error of event %v is %q, want %q in it", rows[i][0], text, word)
			}
		}
		if rows[i][3] != nil {
			t.Errorf("event %v has retry_at %v: it should be parked", rows[i][0], rows[i][3])
		}
	}
	if rows := query(t, stack, `SELECT COUNT(*) FROM dbo.outbox_event_claim`); fmt.Sprint(rows[0][0]) != "0" {
		t.Errorf("%v receipts are left", rows[0][0])
	}
}

// get asks an endpoint of a worker.
func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// eventually waits until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freeAddress is an address that nobody listens on for now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// runService runs a worker in the background and stops it with the test.
func runService(t *testing.T, s service.Settings) (stop func() error) {
	t.Helper()
	w, err := service.New(s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var stopped bool
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func TestDatabaseThatIsNotThereYetIsWaitedFor(t *testing.T) {
	// The broker is up; the database comes later, on an address known before.
	stack := startStack(t, local.Config{})
	s := settingsFor(t, stack)
	sqlAddress := freeAddress(t)
	s.SQL.DSN = strings.Replace(s.SQL.DSN, stack.SQL.Addr(), sqlAddress, 1)
	s.Process.Listen = freeAddress(t)
	stop := runService(t, s)

	eventually(t, "/livez answers", func() bool { code, _ := get(t, s.Process.Listen, "/livez"); return code == 200 })
	var body string
	eventually(t, "/readyz says why", func() bool {
		var code int
		code, body = get(t, s.Process.Listen, "/readyz")
		return code == 503 && strings.Contains(body, "refused")
	})
	if strings.Contains(body, "Outbox-Local-1") {
		t.Errorf("the reason holds the password: %s", body)
	}

	late := startStack(t, local.Config{SQLAddr: sqlAddress})
	enqueue(t, late, event("order-placed", "{}"))
	eventually(t, "/readyz is fine", func() bool { code, _ := get(t, s.Process.Listen, "/readyz"); return code == 200 })
	eventually(t, "the event arrives", func() bool { return stack.Bus.Counts(local.Entity).Active == 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestMetricsAndStatusPage(t *testing.T) {
	stack := startStack(t, local.Config{})
	s := settingsFor(t, stack)
	s.Process.Listen = freeAddress(t)
	for range 3 {
		enqueue(t, stack, event("order-placed", "{}"))
	}
	runService(t, s)
	eventually(t, "three events are counted as sent", func() bool {
		_, body := get(t, s.Process.Listen, "/metrics")
		return strings.Contains(body, `outbox_events_published_total{event_type="order-placed",outcome="sent"} 3`)
	})
	_, body := get(t, s.Process.Listen, "/metrics")
	for _, name := range []string{
		"outbox_events_claimed_total", "outbox_receipts_settled_total", "outbox_receipts_lost_total",
		"outbox_events_in_flight", "outbox_ready", "outbox_claim_duration_seconds_bucket",
		"outbox_publish_duration_seconds_bucket",
	} {
		if !strings.Contains(body, "\n"+name+" ") && !strings.Contains(body, "\n"+name+"{") {
			t.Errorf("/metrics has no %s", name)
		}
	}
	code, page := get(t, s.Process.Listen, "/")
	if code != 200 || !strings.Contains(page, "dbo.outbox_event") || !strings.Contains(page, ">ready<") {
		t.Errorf("the status page answers %d: %s", code, page)
	}
	if code, _ := get(t, s.Process.Listen, "/nothing"); code != 404 {
		t.Errorf("an unknown path answers %d, want 404", code)
	}
}

// A stop is said when it begins, with what it waits for, not when it is over: who
// asked for it would take a silent process for a dead one.
func TestAStopIsSaidAtOnce(t *testing.T) {
	stack := startStack(t, local.Config{})
	unanswered := stack.Bus.Inject(busemulator.Fault{Kind: busemulator.Delay, Entity: local.Entity, Duration: time.Minute})
	enqueue(t, stack, event("order-placed", "{}"))
	s := settingsFor(t, stack)
	s.Process.Grace = 4 * time.Second
	core, logs := observer.New(zap.InfoLevel)
	w, err := service.New(s, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	eventually(t, "an event is on its way", func() bool { return unanswered.Fired() == 1 })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	stopping, stopped := logs.FilterMessageSnippet("stopping: nothing new is claimed").All(), logs.FilterMessage("stopped").All()
	if len(stopping) != 1 || len(stopped) != 1 {
		t.Fatalf("%d lines say that it stops, %d that it has stopped, want one each: %v", len(stopping), len(stopped), logs.All())
	}
	if said := stopping[0].ContextMap(); fmt.Sprint(said["events"], said["claims"], said["grace"]) != "1 1 4s" {
		t.Errorf("it waits for %v", said)
	}
	if stopped[0].Time.Before(stopping[0].Time) {
		t.Error("the stop was said after its end")
	}
}
