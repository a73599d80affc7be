package sqlserver_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

// What an event costs, as counts: they do not depend on the machine.

// sends takes every event for sent.
type sends struct{}

func (sends) Publish(_ context.Context, events []worker.Event) []worker.Outcome {
	return slices.Repeat([]worker.Outcome{{Verdict: worker.Sent}}, len(events))
}

// fill writes n pending events of 600 bytes.
func (b *outbox) fill(n int) {
	b.t.Helper()
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers)
SELECT CAST(j.[key] AS BIGINT), 'order', 'customer-4711', 'a', @payload, '{"tenant":"north"}'
FROM   OPENJSON(N'[' + REPLICATE(CAST(N'1,' AS NVARCHAR(MAX)), @n - 1) + N'1]') AS j`,
		sql.Named("payload", strings.Repeat("0123456789", 60)), sql.Named("n", n))
}

// What a batch asks of the database, its settlement included, is what a longer
// backlog costs more: whatever a start takes is in both drains.
func TestRoundTripsOfABatch(t *testing.T) {
	const few, many = 10, 50
	short, long := drainBatches(t, few), drainBatches(t, many)
	for _, c := range []struct {
		what        string
		short, long int
		most        float64
	}{
		// begin, ClaimEvents, FlipClaim, commit; SettleSent, which batches that come
		// back together share; a probe every 20 batches. The half is room for timers
		// that fire on a slow machine.
		{"round trips", short.roundTrips, long.roundTrips, 5.5},
		{"statements", short.statements, long.statements, 3.5},
		{"ClaimEvents", short.each["ClaimEvents"], long.each["ClaimEvents"], 1.1},
		{"FlipClaim", short.each["FlipClaim"], long.each["FlipClaim"], 1},
	} {
		if n := float64(c.long-c.short) / (many - few); n > c.most {
			t.Errorf("a batch takes %.2f %s, want at most %.1f: %v", n, c.what, c.most, long.each)
		}
	}
	// How many batches share one is for the timers to say, in either drain.
	if n := long.each["SettleSent"]; n > many+1 { // with the rehearsal's
		t.Errorf("%d SettleSent for %d batches", n, many)
	}
	if n := long.each["Settle"]; n > 1 { // the rehearsal's
		t.Errorf("claims that went out whole were settled one by one, %d times", n)
	}
}

// requests are what a server was asked.
type requests struct {
	roundTrips, statements int
	each                   map[string]int // statements by name
}

// drainBatches has a worker of one lane empty a backlog of so many batches.
func drainBatches(t *testing.T, batches int) requests {
	t.Helper()
	b, server := onEmulator(t)
	const batch = 50
	b.fill(batches * batch)
	w, err := worker.New(worker.Config{
		Store: b.store(func(c *sqlserver.Config) { c.Logger = nil }), Publisher: sends{},
		EventTypes: []string{"a"}, Batch: batch, Lanes: 1, Drain: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	// A fault that does nothing, for ever, counts what it meets.
	count := func(statement string) *emulator.Injected {
		return server.Inject(emulator.Fault{Statement: statement, Times: -1})
	}
	all := count("")
	edges := []*emulator.Injected{count(emulator.Begin), count(emulator.Commit), count(emulator.Rollback)}
	before := make(map[string]int)
	for _, s := range server.Statements() {
		before[s.Name] = s.Count
	}
	if err := w.Run(testContext(t)); err != nil {
		t.Fatal(err)
	}
	r := requests{roundTrips: all.Fired(), statements: all.Fired(), each: make(map[string]int)}
	for _, e := range edges {
		r.statements -= e.Fired()
	}
	for _, s := range server.Statements() {
		r.each[s.Name] = s.Count - before[s.Name]
	}
	if n := b.number("SELECT COUNT(*) FROM {events} WHERE status = 1"); n != int64(batches*batch) {
		t.Fatalf("%d events are processed", n)
	}
	return r
}

// What one event more in a claim allocates, the embedded engine's share
// included, as it runs in this process: 17.8 were counted.
func TestClaimAllocations(t *testing.T) {
	const small, large, most = 100, 500, 20
	allocations := func(batch int) float64 {
		b, _ := onEmulator(t)
		b.fill(large)
		s := b.store(func(c *sqlserver.Config) { c.Logger = nil })
		return testing.AllocsPerRun(5, func() {
			if c := claim(t, s, "a", batch); len(c.Events) != batch {
				t.Fatalf("claimed %d events", len(c.Events))
			}
			b.exec("UPDATE {events} SET status = 0, processed_at = NULL")
		})
	}
	n := (allocations(large) - allocations(small)) / (large - small)
	if n > most {
		t.Errorf("%.1f allocations an event, want at most %d", n, most)
	}
}
