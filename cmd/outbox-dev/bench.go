package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"azsqloutbox/worker"
)

// benchCmd measures each strategy on the same rows, each with engines and a
// worker in fresh processes of their own, one after the other.
type benchCmd struct {
	Strategies []string        `placeholder:"NAME,…" help:"Which of baseline, optimized, serial, output, pipeline, claim-only and publish-only to run. Default all."`
	Network    []string        `default:"local" placeholder:"NAME,…" help:"local, or azure: 1 ms to the database and back, 8 ms to the broker. Default local."`
	Backlog    int             `default:"100000" help:"Pending events that each strategy finds."`
	Payload    int             `default:"600" placeholder:"BYTES" help:"Bytes of each payload, 80 to 2000. Default 600."`
	Lanes      int             `default:"${lanes}" help:"Claim lanes of pipeline, claim-only and publish-only. The others have what their articles say."`
	Batch      int             `default:"${batch}" help:"Events a claim of those three takes at most."`
	Seconds    float64         `default:"15" help:"A strategy that has not emptied the backlog by then stops claiming, and is judged by what it moved."`
	Lone       int             `default:"30" help:"Single events for an idle pipeline afterwards, to see how long each is in the outbox."`
	IdlePoll   []time.Duration `default:"${idle_poll},50ms" placeholder:"DURATION,…" help:"What the pipeline that waits for them has as --idle-poll, once each. Default its own default, and 50ms."`
	Chart      string          `placeholder:"FILE" help:"Draw the figures into an SVG file."`
	JSON       bool            `name:"json" help:"Print the result as one JSON object."`
}

// benchNetworks are the round trips that the engines add to their own time.
var benchNetworks = map[string]struct{ sql, amqp time.Duration }{
	"local": {},
	"azure": {sql: time.Millisecond, amqp: 8 * time.Millisecond},
}

// Validate is called by the parser.
func (c *benchCmd) Validate() error {
	for _, name := range c.Strategies {
		if !slices.Contains(benchNames, name) {
			return fmt.Errorf("--strategies: there is no %q; there are %s", name, strings.Join(benchNames, ", "))
		}
	}
	for _, name := range c.Network {
		if _, ok := benchNetworks[name]; !ok {
			return fmt.Errorf("--network: there is no %q; there are local and azure", name)
		}
	}
	if c.Chart != "" { // it is drawn last, minutes from now
		if _, err := os.Stat(filepath.Dir(c.Chart)); err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
	}
	switch {
	case len(c.Network) == 0:
		return errors.New("--network is empty; there are local and azure")
	case len(c.IdlePoll) == 0 || slices.Min(c.IdlePoll) < time.Millisecond:
		return fmt.Errorf("--idle-poll is %v, it may be 1ms or more", c.IdlePoll)
	case !(c.Seconds > 0 && c.Seconds <= 3600): // not a number is neither
		return fmt.Errorf("--seconds is %g, it may be above 0 and up to 3600", c.Seconds)
	}
	return cmp.Or(
		within("--backlog", c.Backlog, 1, 5_000_000),
		within("--payload", c.Payload, smallestPayload, 2000),
		within("--lanes", c.Lanes, 1, worker.MaxLanes),
		within("--batch", c.Batch, 1, worker.MaxBatch),
		within("--lone", c.Lone, 0, 10_000),
	)
}

// Run measures and prints. It fails when a strategy lost, altered or repeated
// an event: nothing here goes wrong on purpose.
func (c *benchCmd) Run(ctx context.Context, s streams) error {
	names := c.Strategies
	if len(names) == 0 {
		names = benchNames
	}
	report := benchReport{
		Machine: thisMachine(), Backlog: c.Backlog, PayloadBytes: c.Payload, Lanes: c.Lanes, Batch: c.Batch,
		Results: []benchResult{},
	}
	var wrong []error
	for _, network := range c.Network {
		for _, name := range names {
			fmt.Fprintf(s.err, "%s, %s …\n", network, name)
			r, err := c.measure(ctx, network, name, s.err)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", network, name, err)
			}
			if err := r.proof(); err != nil {
				wrong = append(wrong, err)
			}
			report.Results = append(report.Results, r)
		}
	}
	report.compare()
	if c.Chart != "" {
		wrong = append(wrong, report.draw(c.Chart))
	}
	if err := printReport(s.out, c.JSON, report); err != nil {
		return err
	}
	return errors.Join(wrong...)
}

// measure runs one strategy on engines that have seen no other.
func (c *benchCmd) measure(ctx context.Context, network, strategy string, log io.Writer) (r benchResult, err error) {
	stack, err := openBenchStack(ctx, log, benchStackConfig{network: network, payload: c.Payload})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stack.close()) }()
	database, broker, table := stack.database, stack.broker, stack.table
	if strategy != publishOnly {
		if err := table.fill(ctx, 1, c.Backlog, c.Payload); err != nil {
			return r, err
		}
	}
	var done benchDone
	databaseUsed, brokerUsed, err := stack.during(func() (err error) {
		done, err = runBenchWorker(ctx, log, benchJob{
			Strategy: strategy, DSN: database.address, Bus: broker.address,
			Events: c.Backlog, PayloadBytes: c.Payload, Lanes: c.Lanes, Batch: c.Batch, Seconds: c.Seconds,
		})
		return err
	})
	if err != nil {
		return r, err
	}
	r = newBenchResult(strategy, network, done, databaseUsed, brokerUsed)
	if r.Processed, r.Receipts, err = table.count(ctx); err != nil {
		return r, err
	}
	if r.Altered, err = broker.altered(); err != nil {
		return r, err
	}
	fared, err := broker.waits(0)
	if err != nil {
		return r, err
	}
	r.Outbox = fared.Outbox
	if strategy == "pipeline" && c.Lone > 0 && r.Processed == int64(c.Backlog) {
		for i, poll := range c.IdlePoll {
			lone, err := c.lone(ctx, log, stack, poll, c.Backlog+1+i*(c.Lone+1))
			if err != nil {
				return r, fmt.Errorf("single events, --idle-poll %s: %w", poll, err)
			}
			r.Lone = append(r.Lone, lone)
		}
	}
	return r, nil
}

func (r benchReport) draw(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("--chart: %w", err)
	}
	return errors.Join(r.chart(f), f.Close())
}

// printReport prints what a bench command measured, as one JSON object or as text.
func printReport(w io.Writer, asJSON bool, r interface{ text(io.Writer) error }) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	return r.text(w)
}
