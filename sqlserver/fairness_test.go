package sqlserver_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// newcomers writes an event of another type while each batch of the backlog goes
// out, and counts how many of those batches go out before it does.
type newcomers struct {
	b       *outbox
	backlog string
	nextID  int64

	batches int           // of the backlog, that went out
	written map[int64]int // batches, when an event was written
	waited  []int
	err     error
}

// Publish is called by one goroutine at a time: one batch is under way.
func (n *newcomers) Publish(ctx context.Context, events []worker.Event) []worker.Outcome {
	if events[0].Type == n.backlog {
		n.batches++
		_, err := n.b.db.ExecContext(ctx, n.b.sql(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload) VALUES (@id, 'order', '7', @type, '{}')`),
			sql.Named("id", n.nextID), sql.Named("type", []string{"b", "c"}[n.batches%2]))
		n.err = errors.Join(n.err, err)
		n.written[n.nextID] = n.batches
		n.nextID++
	} else {
		for _, e := range events {
			n.waited = append(n.waited, n.batches-n.written[e.ID])
		}
	}
	return slices.Repeat([]worker.Outcome{{Verdict: worker.Sent}}, len(events))
}

// A fresh worker in front of a backlog of one type does not keep new events of
// other types waiting for its end. With one batch under way at a time it is
// exact: what is written meanwhile is found after the rounds that are left of the
// cycle, and is claimed beside the first one of the next.
func TestABacklogStarvesNoOtherType(t *testing.T) {
	b, _ := onEmulator(t)
	const batch, batches, rounds = 20, 100, 5
	b.fill(batch * batches)
	n := &newcomers{b: b, backlog: "a", nextID: batch * batches, written: map[int64]int{}}
	w, err := worker.New(worker.Config{
		Store: b.store(func(c *sqlserver.Config) { c.Logger = nil }), Publisher: n,
		EventTypes: []string{"a", "b", "c"}, Batch: batch, Lanes: 1, MaxInFlight: 1, MaxRounds: rounds, Drain: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if n.err != nil {
		t.Fatal(n.err)
	}
	if n.batches != batches || len(n.waited) != batches {
		t.Fatalf("%d batches of the backlog and %d other events went out, want %d of both", n.batches, len(n.waited), batches)
	}
	if most := slices.Max(n.waited); most > rounds+1 {
		t.Errorf("an event waited for %d batches of the backlog, want at most %d: %v", most, rounds+1, n.waited)
	}
}
