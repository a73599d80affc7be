package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"azsqloutbox/worker"
)

// fairnessCmd starts a worker in front of a backlog of one event type, goes on
// writing events of other types until it is drained, and measures how long those
// are in the outbox. All go to one queue, so that nothing but the worker's
// schedule lets them by.
type fairnessCmd struct {
	Backlog int           `default:"1000000" help:"Pending events of one type that the worker finds; 1000000 take 3 GB of memory in all."`
	Types   int           `default:"3" help:"Other types, of which one event is written after the other."`
	Every   time.Duration `default:"20ms" help:"Pause between two of them."`
	Lanes   int           `default:"${lanes}" help:"Claim lanes."`
	Batch   int           `default:"${batch}" help:"Events a claim takes at most."`
	Payload int           `default:"600" placeholder:"BYTES" help:"Bytes of each payload, 80 to 2000. Default 600."`
	Network string        `default:"local" enum:"local,azure" help:"local, or azure: 1 ms to the database and back, 8 ms to the broker. Default local."`
	JSON    bool          `name:"json" help:"Print the result as one JSON object."`
}

// fairnessPatience is for the drain, on a machine that is busy.
const fairnessPatience = 10 * time.Minute

// Validate is called by the parser.
func (c *fairnessCmd) Validate() error {
	if c.Every < time.Millisecond || c.Every > time.Minute {
		return fmt.Errorf("--every is %s, it may be 1ms to 1m", c.Every)
	}
	return cmp.Or(
		within("--backlog", c.Backlog, 1, 5_000_000),
		within("--types", c.Types, 1, 100),
		within("--lanes", c.Lanes, 1, worker.MaxLanes),
		within("--batch", c.Batch, 1, worker.MaxBatch),
		within("--payload", c.Payload, smallestPayload, 2000),
	)
}

// Run measures and prints. It fails when an event was lost or sent twice.
func (c *fairnessCmd) Run(ctx context.Context, s streams) error {
	r, err := c.measure(ctx, s.err)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	return errors.Join(printReport(s.out, c.JSON, r), r.proof())
}

func (c *fairnessCmd) measure(ctx context.Context, log io.Writer) (r fairnessReport, err error) {
	r = fairnessReport{Machine: thisMachine(), Backlog: c.Backlog, PayloadBytes: c.Payload, Lanes: c.Lanes, Batch: c.Batch, Network: c.Network, Types: c.Types}
	stack, err := openBenchStack(ctx, log, benchStackConfig{network: c.Network, payload: c.Payload, large: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stack.close()) }()
	if err := stack.table.fill(ctx, 1, c.Backlog, c.Payload); err != nil {
		return r, err
	}
	began := time.Now()
	p, err := startBenchWorker(ctx, log, benchJob{
		Strategy: idleWorker, DSN: stack.database.address, Bus: stack.broker.address, Lanes: c.Lanes, Batch: c.Batch,
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for pending := true; pending; wait(ctx, c.Every) {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if time.Since(began) > fairnessPatience {
			return r, fmt.Errorf("the backlog is not drained after %s", fairnessPatience)
		}
		id := c.Backlog + 1 + r.Events
		if err := stack.table.insert(ctx, fillBenchSQL, fmt.Sprint("other-", r.Events%c.Types), id, id, c.Payload); err != nil {
			return r, err
		}
		r.Events++
		if pending, err = stack.table.pending(ctx, benchType); err != nil {
			return r, err
		}
	}
	r.Seconds = rounded(time.Since(began).Seconds())
	r.EventsPerSecond = rounded(float64(c.Backlog) / r.Seconds)
	if err := stack.broker.awaitReceived(ctx, int64(c.Backlog+r.Events), lonePatience); err != nil {
		return r, err
	}
	fared, err := stack.broker.waits(c.Backlog + 1)
	if err != nil {
		return r, err
	}
	r.Outbox, r.Behind = fared.Outbox, fared.Behind
	now, err := stack.broker.counts()
	r.Received, r.Duplicates = now.Received, now.Duplicates
	return r, err
}

// fairnessReport is what bench fairness prints.
type fairnessReport struct {
	Machine      benchMachine `json:"machine"`
	Backlog      int          `json:"backlog"`
	PayloadBytes int          `json:"payload_bytes"`
	Lanes        int          `json:"lanes"`
	Batch        int          `json:"batch"`
	Network      string       `json:"network"`

	// The drain, from the start of the worker's process.
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	// Types of the new events, and how many were written meanwhile.
	Types  int `json:"types"`
	Events int `json:"events"`
	// Outbox is how long they were in the outbox, and Behind how many other events
	// went out between their insert and them.
	Outbox     benchTimes `json:"outbox_ms"`
	Behind     benchRanks `json:"events_before_them"`
	Received   int64      `json:"received"`
	Duplicates int64      `json:"duplicates"`
}

func (r fairnessReport) proof() error {
	if want := int64(r.Backlog + r.Events); r.Received != want || r.Duplicates != 0 {
		return fmt.Errorf("%d events were written, but %d were received and %d twice", want, r.Received, r.Duplicates)
	}
	return nil
}

func (r fairnessReport) text(w io.Writer) error {
	_, err := fmt.Fprintf(w, `A fresh worker drained a backlog of %d events of one type in %.1f s, %.0f a second.
Meanwhile %d events of %d other types were written one by one. They were %s ms
(p50/p99) in the outbox; %d, %d and at most %d other events (p50, p99, all) went
out before them. %d lanes, batches of %d, %d bytes, network %s.
`, r.Backlog, r.Seconds, r.EventsPerSecond, r.Events, r.Types, r.Outbox, r.Behind.P50, r.Behind.P99, r.Behind.Max, r.Lanes, r.Batch, r.PayloadBytes, r.Network)
	return err
}
