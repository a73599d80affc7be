package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"azsqloutbox/worker"
)

// growthCmd shows that a batch costs the same however much waits and however
// much is done. It counts rows, which a busy machine does not change, and takes
// no times.
type growthCmd struct {
	Pending   []int `default:"10000,100000,1000000" placeholder:"N,…" help:"Pending events, fewest first. Default 10000,100000,1000000."`
	Processed []int `default:"0,1000000" placeholder:"N,…" help:"PROCESSED events that lie in the table beside them. Default 0,1000000. A row takes 1.6 KB of memory."`
	Batches   int   `default:"10" help:"Batches that are moved at each size."`
	Batch     int   `default:"${batch}" help:"Events of each."`
	Payload   int   `default:"600" placeholder:"BYTES" help:"Bytes of each payload, 80 to 2000. Default 600."`
	JSON      bool  `name:"json" help:"Print the result as one JSON object."`
}

// growthTolerance is how far the rows of a batch may be from those at the first
// size.
const growthTolerance = .1

// mostGrowthRows takes 16 GB of memory; docs/performance.md has 7 million.
const mostGrowthRows = 10_000_000

// growthSeconds is for the batches of one size, on a machine that is busy.
const growthSeconds = 300

// Validate is called by the parser.
func (c *growthCmd) Validate() error {
	if err := cmp.Or(
		within("--batch", c.Batch, 1, worker.MaxBatch),
		within("--batches", c.Batches, 1, 1000),
		within("--payload", c.Payload, smallestPayload, 2000),
	); err != nil {
		return err
	}
	switch {
	case len(c.Pending) == 0 || !slices.IsSorted(c.Pending) || c.Pending[0] < c.Batches*c.Batch:
		return fmt.Errorf("--pending is %v, it may be ascending numbers from %d on, which --batches of --batch take", c.Pending, c.Batches*c.Batch)
	case len(c.Processed) == 0 || slices.Min(c.Processed) < 0:
		return fmt.Errorf("--processed is %v, it may be numbers from 0 on", c.Processed)
	case slices.Max(c.Processed) > mostGrowthRows-slices.Max(c.Pending):
		return fmt.Errorf("--pending and --processed are up to %d and %d, together they may be %d", slices.Max(c.Pending), slices.Max(c.Processed), mostGrowthRows)
	}
	return nil
}

// Run measures and prints. It fails when a batch costs more, or less, at one
// size than at the first.
func (c *growthCmd) Run(ctx context.Context, s streams) error {
	report := growthReport{Machine: thisMachine(), PayloadBytes: c.Payload, Batch: c.Batch, Results: []growthResult{}}
	for _, processed := range c.Processed {
		results, err := c.measure(ctx, s.err, processed)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return fmt.Errorf("beside %d processed events: %w", processed, err)
		}
		report.Results = append(report.Results, results...)
	}
	report.compare()
	if err := printReport(s.out, c.JSON, report); err != nil {
		return err
	}
	return report.proof()
}

// measure lets a backlog grow in one database. The processed events have the
// lower ids, as in a table that has lived.
func (c *growthCmd) measure(ctx context.Context, log io.Writer, processed int) (results []growthResult, err error) {
	stack, err := openBenchStack(ctx, log, benchStackConfig{payload: c.Payload, large: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stack.close()) }()
	if err := stack.table.fillProcessed(ctx, processed, c.Payload); err != nil {
		return nil, err
	}
	last, pending := processed, 0 // id, and what is left
	for _, want := range c.Pending {
		fmt.Fprintf(log, "%d pending, %d processed …\n", want, processed)
		if err := stack.table.fill(ctx, last+1, last+want-pending, c.Payload); err != nil {
			return nil, err
		}
		last += want - pending
		r, err := c.batches(ctx, log, stack)
		if err != nil {
			return nil, fmt.Errorf("%d pending events: %w", want, err)
		}
		r.Pending, r.Processed = want, processed
		results = append(results, r)
		pending = want - c.Batches*c.Batch
	}
	return results, nil
}

// batches has a worker in a process of its own move so many. It has one lane:
// two would now and then meet each other's rows, at any size.
func (c *growthCmd) batches(ctx context.Context, log io.Writer, stack *benchStack) (r growthResult, err error) {
	before, err := stack.table.rowsTouched(ctx)
	if err != nil {
		return r, err
	}
	var done benchDone
	database, broker, err := stack.during(func() (err error) {
		done, err = runBenchWorker(ctx, log, benchJob{
			Strategy: "pipeline", DSN: stack.database.address, Bus: stack.broker.address,
			Lanes: 1, Batch: c.Batch, Seconds: growthSeconds, Claims: c.Batches,
		})
		return err
	})
	if err != nil {
		return r, err
	}
	after, err := stack.table.rowsTouched(ctx)
	if err != nil {
		return r, err
	}
	if want := int64(c.Batches * c.Batch); done.Moved != want || broker.Received != want || broker.Duplicates != 0 {
		return r, fmt.Errorf("%d events were moved and %d received, %d of them twice, want %d", done.Moved, broker.Received, broker.Duplicates, want)
	}
	return newGrowthResult(c.Batches, after.since(before), database, done.PeakBytes), nil
}

// growthReport is what bench growth prints.
type growthReport struct {
	Machine      benchMachine   `json:"machine"`
	PayloadBytes int            `json:"payload_bytes"`
	Batch        int            `json:"batch"`
	Results      []growthResult `json:"results"`
	// Deviation is the furthest of any size from the first, in percent.
	Deviation float64 `json:"deviation_percent"`
}

// growthResult is one size of backlog and table. Rows are those that the
// database touched for the worker, a batch: logical_reads of
// sys.dm_exec_query_stats, which are rows on the embedded engine.
type growthResult struct {
	Pending   int `json:"pending"`
	Processed int `json:"processed"`
	Batches   int `json:"batches"`
	// Rows are of all statements but Metrics, and Claim, Flip and Settle parts of
	// them: what a start and the clock ask for is in it, spread over the batches.
	Rows   float64 `json:"rows_touched_per_batch"`
	Claim  float64 `json:"claim_rows_per_batch"`
	Flip   float64 `json:"flip_rows_per_batch"`
	Settle float64 `json:"settle_rows_per_batch"`
	// Metrics are the rows that counting the backlog for the gauges touched, in
	// all: four times a minute, and bounded whatever waits.
	Metrics    int64   `json:"metrics_rows"`
	Statements float64 `json:"statements_per_batch"`
	PeakMiB    float64 `json:"rss_mib"`
}

func newGrowthResult(batches int, rows rowsTouched, database benchCounts, peak int64) growthResult {
	a := func(n int64) float64 { return rounded(float64(n) / float64(batches)) }
	r := growthResult{
		Batches: batches, Claim: a(rows["ClaimEvents"]), Flip: a(rows["FlipClaim"]), Settle: a(rows["SettleSent"]),
		Statements: a(database.Statements), PeakMiB: rounded(float64(peak) / (1 << 20)),
	}
	var all int64
	for name, n := range rows {
		if slices.Contains(metricsStatements, name) {
			r.Metrics += n
		} else {
			all += n
		}
	}
	r.Rows = a(all)
	return r
}

// metricsStatements are what the worker counts for its gauges.
var metricsStatements = []string{"BacklogTotal", "BacklogTypes", "BacklogFailed", "OpenReceipts"}

// compare says how far the results are from the first one.
func (r *growthReport) compare() {
	for _, x := range r.Results {
		first := r.Results[0].Rows
		r.Deviation = max(r.Deviation, rounded(100*max(x.Rows-first, first-x.Rows)/first))
	}
}

// proof fails where a batch costs more at one size than at another.
func (r growthReport) proof() error {
	if r.Deviation > 100*growthTolerance {
		return fmt.Errorf("the rows that a batch touches differ by %.1f %% between the sizes, %.0f %% are allowed", r.Deviation, 100*growthTolerance)
	}
	return nil
}

func (r growthReport) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "pending\tprocessed\trows a batch\tclaim\tflip\tsettle\tstatements a batch\tMiB\t")
	for _, x := range r.Results {
		fmt.Fprintf(t, "%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", x.Pending, x.Processed, x.Rows, x.Claim, x.Flip, x.Settle, x.Statements, x.PeakMiB)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
Rows that the database touched for a worker of one lane, for each of %d batches
of %d events: logical_reads of sys.dm_exec_query_stats. Its start and what it asks
by the clock are in them, and in the statements, but for the counts of its
metrics, which stop at %d rows of a type. MiB is its peak.
The furthest from the first line is %.2f %%.
`, r.Results[0].Batches, r.Batch, worker.BacklogCountCap, r.Deviation)
	return err
}
