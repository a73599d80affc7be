package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"azsqloutbox/sqlserver"
)

const (
	writers = 4
	// largestTransaction is how many events one business transaction of the demo
	// writes at most; 1 to this many, as chance has it.
	largestTransaction = 100
)

// write enqueues the events 0 to n-1 in many transactions from several writers.
func write(ctx context.Context, dsn string, s samples, n int, wrote func(events int)) error {
	db, err := sqlserver.Open(dsn, sqlserver.Options{AppName: "outbox-dev writer"})
	if err != nil {
		return err
	}
	defer db.Close()
	w, err := sqlserver.NewWriter(sqlserver.Names{})
	if err != nil {
		return err
	}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range writers {
		group.Go(func() error {
			for {
				size := int64(1 + rand.IntN(largestTransaction))
				first := next.Add(size) - size
				if first >= int64(n) {
					return nil
				}
				last := min(first+size, int64(n))
				if err := writeTransaction(ctx, db, w, s, int(first), int(last)); err != nil {
					return err
				}
				wrote(int(last - first))
			}
		})
	}
	return group.Wait()
}

func writeTransaction(ctx context.Context, db *sql.DB, w *sqlserver.Writer, s samples, first, last int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a writer's transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	events := make([]sqlserver.OutboxEvent, 0, last-first)
	for n := first; n < last; n++ {
		events = append(events, s.event(n))
	}
	if err := w.Enqueue(ctx, tx, events...); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit events %d to %d: %w", first, last-1, err)
	}
	return nil
}
