package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

// What a lone event waits on an idle worker, and what the worker asks of the
// database meanwhile.

const (
	// loneSettled is after how long without work the worker's pauses are at their
	// longest, and loneQuiet for how long its requests are then counted.
	loneSettled = 2 * time.Second
	loneQuiet   = 10 * time.Second
	// lonePatience is for the last events.
	lonePatience = 30 * time.Second
)

// benchLone are the figures of an idle worker.
type benchLone struct {
	Events int `json:"events"`
	// Outbox is from a row's created_at to the message's enqueued time.
	Outbox benchTimes `json:"outbox_ms"`
	// Statements a second, while nothing is pending.
	Statements float64 `json:"idle_statements_per_second"`
}

// idleWorker is the name of benchIdle for a benchJob.
const idleWorker = "idle"

// lone starts an idle worker on a table where nothing is pending, and writes
// one event after the other for it, at moments that have nothing to do with its
// own.
func (c *benchCmd) lone(ctx context.Context, log io.Writer, database, broker *benchEngine, table benchTable) (r benchLone, err error) {
	// The worker lives as long as its input is open.
	jobs, input := io.Pipe()
	defer input.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := startBenchWorker(ctx, log, jobs)
		_ = jobs.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		return err
	})
	group.Go(func() error {
		defer input.Close()
		job := benchJob{Strategy: idleWorker, DSN: database.address, Bus: broker.address, Lanes: c.Lanes, Batch: c.Batch, IdlePoll: c.IdlePoll}
		if err := json.NewEncoder(input).Encode(job); err != nil {
			return err
		}
		wait(ctx, loneSettled)
		before, err := database.counts()
		if err != nil {
			return err
		}
		wait(ctx, loneQuiet)
		after, err := database.counts()
		if err != nil {
			return err
		}
		r.Statements = rounded(float64(after.since(before).Statements) / loneQuiet.Seconds())

		first := c.Backlog + 1
		earlier, err := broker.counts()
		if err != nil {
			return err
		}
		for n := first; n < first+c.Lone && ctx.Err() == nil; n++ {
			if err := table.fill(ctx, n, n, c.Payload); err != nil {
				return err
			}
			// By as much as the worker's own pause lasts, so that each comes at any
			// moment of one alike. With less, every wait would have much of the one
			// before in it.
			wait(ctx, 150*time.Millisecond+rand.N(c.IdlePoll*9/8))
		}
		for deadline := time.Now().Add(lonePatience); ctx.Err() == nil; wait(ctx, 20*time.Millisecond) {
			now, err := broker.counts()
			if err != nil {
				return err
			}
			if r.Events = int(now.since(earlier).Received); r.Events == c.Lone {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d lone events arrived within %s", r.Events, c.Lone, lonePatience)
			}
		}
		r.Outbox, err = broker.waits(first)
		return err
	})
	return r, group.Wait()
}
