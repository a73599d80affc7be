package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"azsqloutbox/worker"
)

// workersCmd has one, two and more workers, each in a process of its own, empty
// the same backlog of one event type, where claims meet most, and counts what
// they wait for.
type workersCmd struct {
	Workers []int  `default:"1,2,3,4" placeholder:"N,…" help:"Numbers of workers. Default 1,2,3,4."`
	Backlog int    `default:"100000" help:"Pending events that they find each time."`
	Batch   int    `default:"${batch}" help:"Events a claim takes at most."`
	Lanes   int    `default:"${lanes}" help:"Claim lanes of each worker."`
	Payload int    `default:"600" placeholder:"BYTES" help:"Bytes of each payload, 80 to 2000. Default 600."`
	Network string `default:"local" enum:"local,azure" help:"local, or azure: 1 ms to the database and back, 8 ms to the broker. Default local."`
	JSON    bool   `name:"json" help:"Print the result as one JSON object."`
}

// workersSeconds is for one backlog, on a machine that is busy.
const workersSeconds = 600

// Validate is called by the parser.
func (c *workersCmd) Validate() error {
	if len(c.Workers) == 0 || slices.Min(c.Workers) < 1 || slices.Max(c.Workers) > 16 {
		return fmt.Errorf("--workers is %v, it may be numbers from 1 to 16", c.Workers)
	}
	return cmp.Or(
		within("--backlog", c.Backlog, 1, 5_000_000),
		within("--batch", c.Batch, 1, worker.MaxBatch),
		within("--lanes", c.Lanes, 1, worker.MaxLanes),
		within("--payload", c.Payload, smallestPayload, 2000),
	)
}

// Run measures and prints. It fails when a worker waited for a lock, or an event
// was lost or sent twice.
func (c *workersCmd) Run(ctx context.Context, s streams) error {
	report := workersReport{Machine: thisMachine(), Backlog: c.Backlog, PayloadBytes: c.Payload, Lanes: c.Lanes, Batch: c.Batch, Network: c.Network, Results: []workersResult{}}
	var wrong []error
	for _, n := range c.Workers {
		fmt.Fprintf(s.err, "%d …\n", n)
		r, err := c.measure(ctx, s.err, n)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return fmt.Errorf("%d workers: %w", n, err)
		}
		wrong = append(wrong, r.proof(c.Backlog))
		report.Results = append(report.Results, r)
	}
	return errors.Join(append([]error{printReport(s.out, c.JSON, report)}, wrong...)...)
}

func (c *workersCmd) measure(ctx context.Context, log io.Writer, workers int) (r workersResult, err error) {
	stack, err := openBenchStack(ctx, log, benchStackConfig{network: c.Network, payload: c.Payload})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stack.close()) }()
	if err := stack.table.fill(ctx, 1, c.Backlog, c.Payload); err != nil {
		return r, err
	}
	waits, err := stack.table.lockWaits(ctx)
	if err != nil {
		return r, err
	}
	all := make([]benchDone, workers)
	database, broker, err := stack.during(func() error {
		group, running := errgroup.WithContext(ctx)
		for i := range all {
			group.Go(func() (err error) {
				all[i], err = runBenchWorker(running, log, benchJob{
					Strategy: "pipeline", DSN: stack.database.address, Bus: stack.broker.address,
					Lanes: c.Lanes, Batch: c.Batch, Seconds: workersSeconds,
				})
				return err
			})
		}
		return group.Wait()
	})
	if err != nil {
		return r, err
	}
	waitsAfter, err := stack.table.lockWaits(ctx)
	if err != nil {
		return r, err
	}
	r = newWorkersResult(all, database, broker)
	r.LockWaits, r.LockWaitMS = waitsAfter.Count-waits.Count, waitsAfter.Milliseconds-waits.Milliseconds
	r.Processed, r.Receipts, err = stack.table.count(ctx)
	return r, err
}

// workersReport is what bench workers prints.
type workersReport struct {
	Machine      benchMachine    `json:"machine"`
	Backlog      int             `json:"backlog"`
	PayloadBytes int             `json:"payload_bytes"`
	Lanes        int             `json:"lanes"`
	Batch        int             `json:"batch"`
	Network      string          `json:"network"`
	Results      []workersResult `json:"results"`
}

// workersResult is what so many workers did together.
type workersResult struct {
	Workers         int     `json:"workers"`
	EventsPerSecond float64 `json:"events_per_second"`
	// Shares are the events of each worker, most first.
	Shares    []int64 `json:"events_of_each"`
	CPUMicros float64 `json:"cpu_us_per_event"`

	// LockWaits are those of sys.dm_db_wait_stats, LockTimeouts and Deadlocks the
	// errors 1222 and 1205, which the store tries again.
	LockWaits    int64 `json:"lock_waits"`
	LockWaitMS   int64 `json:"lock_wait_ms"`
	LockTimeouts int64 `json:"lock_timeouts"`
	Deadlocks    int64 `json:"deadlocks"`
	Escalations  int64 `json:"lock_escalations"`
	// Skipped are rows of other claims that READPAST passed by instead of waiting.
	Skipped    float64 `json:"skipped_rows_per_1000_events"`
	Statements float64 `json:"statements_per_1000_events"`

	Processed  int64 `json:"processed"`
	Receipts   int64 `json:"receipts_left"`
	Received   int64 `json:"received"`
	Duplicates int64 `json:"duplicates"`
}

func newWorkersResult(all []benchDone, database, broker benchCounts) workersResult {
	r := workersResult{
		Workers:      len(all),
		LockTimeouts: database.LockTimeouts, Deadlocks: database.Deadlocks, Escalations: database.Escalations,
		Received: broker.Received, Duplicates: broker.Duplicates,
	}
	var moved, longest, cpu float64
	for _, d := range all {
		r.Shares = append(r.Shares, d.Moved)
		moved += float64(d.Moved)
		cpu += float64(d.CPU.Microseconds())
		if d.Moved > 0 { // who came too late for any has no time of a last one
			longest = max(longest, d.Took.Seconds())
		}
	}
	slices.SortFunc(r.Shares, func(a, b int64) int { return int(b - a) })
	events := max(moved, 1)
	r.EventsPerSecond, r.CPUMicros = rounded(moved/max(longest, 1e-9)), rounded(cpu/events)
	r.Skipped = rounded(1000 * float64(database.Skipped) / events)
	r.Statements = rounded(1000 * float64(database.Statements) / events)
	return r
}

// proof says what went wrong: workers that do not share rows have no reason to
// wait for each other.
func (r workersResult) proof(backlog int) error {
	want := int64(backlog)
	if r.Processed != want || r.Received != want || r.Duplicates != 0 || r.Receipts != 0 {
		return fmt.Errorf("%d workers found %d events, but %d are PROCESSED and %d were received, %d of them twice; %d receipts are left",
			r.Workers, backlog, r.Processed, r.Received, r.Duplicates, r.Receipts)
	}
	if r.LockWaits+r.LockTimeouts+r.Deadlocks+r.Escalations != 0 {
		return fmt.Errorf("%d workers waited for locks %d times, %d ms in all; %d lock timeouts, %d deadlocks and %d lock escalations",
			r.Workers, r.LockWaits, r.LockWaitMS, r.LockTimeouts, r.Deadlocks, r.Escalations)
	}
	return nil
}

func (r workersReport) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workers\tlock waits\t1222\tdeadlocks\tskipped\tstatements\tduplicates\tCPU µs\tevents/s\tof each worker\t")
	for _, x := range r.Results {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%.1f\t%.1f\t%d\t%.1f\t%.0f\t%d to %d\t\n", x.Workers, x.LockWaits, x.LockTimeouts, x.Deadlocks,
			x.Skipped, x.Statements, x.Duplicates, x.CPUMicros, x.EventsPerSecond, x.Shares[len(x.Shares)-1], x.Shares[0])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
%d events of one type and %d bytes waited; each worker is a process with %d lanes
and batches of %d; network %s. Lock waits are those of sys.dm_db_wait_stats; skipped
rows, which READPAST passed by, and statements are for 1,000 events, CPU is the
workers' for one. Rates share the processors with the engines.
`, r.Backlog, r.PayloadBytes, r.Lanes, r.Batch, r.Network)
	return err
}
