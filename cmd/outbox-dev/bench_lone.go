package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// What a lone event waits on an idle worker, and what the worker asks of the
// database meanwhile.

const (
	// loneSettled is after how long without work the worker's pauses are at their
	// longest, and loneQuiet for how long it is then watched.
	loneSettled = 2 * time.Second
	loneQuiet   = 10 * time.Second
	// lonePatience is for the first event and for the last ones.
	lonePatience = 60 * time.Second
)

// benchLone are the figures of an idle worker.
type benchLone struct {
	IdlePollMS float64 `json:"idle_poll_ms"`
	Events     int     `json:"events"`
	// Outbox is from a row's created_at to the message's enqueued time.
	Outbox benchTimes `json:"outbox_ms"`
	// Statements a second, and CPU in percent of one core, while nothing is
	// pending.
	Statements float64 `json:"idle_statements_per_second"`
	CPU        float64 `json:"idle_cpu_percent"`
	// FirstEvent is from the start of the process until the broker had the event
	// that was pending then.
	FirstEvent float64 `json:"first_event_ms"`
}

// idleWorker is the name of benchIdle for a benchJob.
const idleWorker = "idle"

// lone starts a worker for one pending event, watches it while it is idle, and
// then writes one event after the other for it, at moments that have nothing to
// do with its own. The events have the ids from first on.
func (c *benchCmd) lone(ctx context.Context, log io.Writer, stack *benchStack, poll time.Duration, first int) (r benchLone, err error) {
	r.IdlePollMS = milliseconds(poll)
	earlier, err := stack.broker.counts()
	if err != nil {
		return r, err
	}
	if err := stack.table.fill(ctx, first, first, c.Payload); err != nil {
		return r, err
	}
	began := time.Now()
	idle, err := startBenchWorker(ctx, log, benchJob{
		Strategy: idleWorker, DSN: stack.database.address, Bus: stack.broker.address,
		Lanes: c.Lanes, Batch: c.Batch, IdlePoll: poll,
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, idle.close()) }()
	if err := stack.broker.awaitReceived(ctx, earlier.Received+1, lonePatience); err != nil {
		return r, err
	}
	fared, err := stack.broker.waits(first)
	if err != nil {
		return r, err
	}
	r.FirstEvent = milliseconds(fared.First.Sub(began))

	wait(ctx, loneSettled)
	if err := r.watch(ctx, stack.database, idle); err != nil {
		return r, err
	}
	for n := first + 1; n <= first+c.Lone && ctx.Err() == nil; n++ {
		if err := stack.table.fill(ctx, n, n, c.Payload); err != nil {
			return r, err
		}
		// By as much as the worker's own pause lasts, so that each comes at any
		// moment of one alike. With less, every wait would have much of the one
		// before in it.
		wait(ctx, 150*time.Millisecond+rand.N(poll*9/8))
	}
	if err := stack.broker.awaitReceived(ctx, earlier.Received+1+int64(c.Lone), lonePatience); err != nil {
		return r, err
	}
	r.Events = c.Lone
	fared, err = stack.broker.waits(first + 1)
	r.Outbox = fared.Outbox
	return r, err
}

// watch counts what the worker uses while nothing is pending.
func (r *benchLone) watch(ctx context.Context, database *benchEngine, idle *benchProcess) error {
	var cpuBefore, cpuAfter time.Duration
	before, err := database.counts()
	if err != nil {
		return err
	}
	if err := idle.ask("CPU", &cpuBefore); err != nil {
		return err
	}
	began := time.Now()
	wait(ctx, loneQuiet)
	seconds := time.Since(began).Seconds()
	if err := idle.ask("CPU", &cpuAfter); err != nil {
		return err
	}
	after, err := database.counts()
	if err != nil {
		return err
	}
	r.Statements = rounded(float64(after.since(before).Statements) / seconds)
	r.CPU = rounded(100 * (cpuAfter - cpuBefore).Seconds() / seconds)
	return nil
}
