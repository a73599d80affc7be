package sqlserver_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"azsqloutbox/sqlserver"
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

// A batch is read, flipped and settled: three statements, of which the last is
// shared by what came back together.
func TestADrainedBacklogNeedsFewStatements(t *testing.T) {
	b, server := onEmulator(t)
	const events, batch = 5000, 500
	b.fill(events)
	w, err := worker.New(worker.Config{
		Store: b.store(func(c *sqlserver.Config) { c.Logger = nil }), Publisher: sends{},
		EventTypes: []string{"a"}, Batch: batch, Lanes: 1, Drain: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if n := b.number("SELECT COUNT(*) FROM {events} WHERE status = 1"); n != events {
		t.Fatalf("%d events are processed", n)
	}
	total, each := 0, map[string]int{}
	for _, s := range server.Statements() {
		total, each[s.Name] = total+s.Count, s.Count
	}
	for name, most := range map[string]int{
		"ClaimEvents": events/batch + 3, // one finds nothing, one is the rehearsal's
		"FlipClaim":   events/batch + 1,
		"SettleSent":  events/batch + 1,
		"Settle":      1, // the rehearsal's alone
	} {
		if n := server.StatementCount(name); n > most {
			t.Errorf("%s was sent %d times, at most %d are needed", name, n, most)
		}
	}
	// 57 were counted, of which a start takes about 30 whatever the backlog. The
	// rest is room for timers that fire again on a slow machine.
	if most := events / 1000 * 18; total > most {
		t.Errorf("%d statements, at most %d are needed: %v", total, most, each)
	}
}

// What one event more in a claim allocates, the embedded engine's share
// included, as it runs in this process: 19 were counted.
func TestClaimAllocations(t *testing.T) {
	const small, large, most = 100, 500, 30
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
	if n := (allocations(large) - allocations(small)) / (large - small); n > most {
		t.Errorf("%.1f allocations an event, want at most %d", n, most)
	}
}
