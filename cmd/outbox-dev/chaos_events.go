package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"azsqloutbox/sqlserver"
)

// poisonKind is what is wrong with an event.
type poisonKind int

const (
	sound           poisonKind = iota
	poisonHeaders              // headers that are no JSON
	poisonRefused              // the broker answers with a condition that nobody knows
	poisonBreaks               // the broker breaks the connection each time
	poisonSwallowed            // the broker takes it and says nothing
	poisonKinds
)

// poisonOf says what is wrong with event n; nothing with most of them.
func (c *chaosRun) poisonOf(n int) poisonKind {
	if n%c.poisonEvery != c.poisonEvery/2 {
		return sound
	}
	return 1 + poisonKind(n/c.poisonEvery)%(poisonKinds-1)
}

var chaosSamples = samples{payloadBytes: 300}

const (
	chaosWriters = 2
	// largestChaosTransaction is how many events one business transaction holds
	// at most.
	largestChaosTransaction = 20
	// rollBackOneIn is how many transactions there are to one that is rolled back.
	rollBackOneIn = 10
)

// write commits transactions at about the rate until ctx ends. What it does not
// know, whether a commit that was not answered happened, the table will tell.
func (c *chaosRun) write(ctx context.Context, rate int) error {
	db, err := sqlserver.Open(c.stack.SQL.DSN(), sqlserver.Options{AppName: "outbox-dev chaos writer"})
	if err != nil {
		return err
	}
	defer db.Close()
	enqueue, err := sqlserver.NewWriter(sqlserver.Names{})
	if err != nil {
		return err
	}
	var group errgroup.Group
	for range chaosWriters {
		group.Go(func() error {
			for begun, wrote := time.Now(), 0; ctx.Err() == nil; {
				size := 1 + rand.IntN(largestChaosTransaction)
				first := int(c.next.Add(int64(size))) - size
				c.writeTransaction(ctx, db, enqueue, first, first+size)
				wrote += size
				due := time.Duration(float64(wrote) * chaosWriters / float64(rate) * float64(time.Second))
				wait(ctx, due-time.Since(begun))
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *chaosRun) writeTransaction(ctx context.Context, db *sql.DB, w *sqlserver.Writer, first, last int) {
	// A transaction that was begun is ended, whatever else ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return // it was not to be
	}
	defer func() { _ = tx.Rollback() }()
	var events []sqlserver.OutboxEvent
	for n := first; n < last; n++ {
		e := chaosSamples.event(n)
		if c.poisonOf(n) == poisonHeaders {
			if err := insertBadHeaders(ctx, tx, e); err != nil {
				return
			}
			continue
		}
		events = append(events, e)
	}
	if err := w.Enqueue(ctx, tx, events...); err != nil {
		return
	}
	if rand.IntN(rollBackOneIn) == 0 {
		if tx.Rollback() == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			for n := first; n < last; n++ {
				c.rolledBack[n] = true
			}
		}
		return
	}
	_ = tx.Commit()
}

// Headers as an application that knows no better writes them.
const badHeadersSQL = `INSERT /* outbox:ChaosBadHeaders */ INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers)
VALUES (NEXT VALUE FOR dbo.outbox_event_seq, @aggregate_type, @aggregate_id, @event_type, @payload, '{"tenant": ');`

func insertBadHeaders(ctx context.Context, tx *sql.Tx, e sqlserver.OutboxEvent) error {
	_, err := tx.ExecContext(ctx, badHeadersSQL,
		sql.Named("aggregate_type", e.AggregateType), sql.Named("aggregate_id", e.AggregateID),
		sql.Named("event_type", e.EventType), sql.Named("payload", string(e.Payload)))
	if err != nil {
		return fmt.Errorf("insert an event with bad headers: %w", err)
	}
	return nil
}
