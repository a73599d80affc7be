package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/internal/quantity"
	"azsqloutbox/scripts"
	"azsqloutbox/worker"
)

// source is the first part of the demo's message ids.
const source = "demo"

const (
	// stall is how long the demo waits for the next message before it calls the
	// missing ones lost.
	stall = 30 * time.Second
	// echo is how long it listens for duplicates after the last one.
	echo = 300 * time.Millisecond
)

type demoCmd struct {
	Events  int  `default:"10000" help:"How many events to write."`
	Payload int  `default:"600" placeholder:"BYTES" help:"Bytes of each payload, 80 to 200000. Default 600."`
	Lanes   int  `default:"${lanes}" help:"Claim lanes of the worker."`
	Batch   int  `default:"${batch}" help:"Events a claim takes at most."`
	JSON    bool `name:"json" help:"Print the result as one JSON object."`
	Verbose bool `help:"Show the worker's log."`
}

// Validate is called by the parser.
func (c *demoCmd) Validate() error {
	return cmp.Or(
		within("--events", c.Events, 1, 10_000_000),
		within("--payload", c.Payload, smallestPayload, 200_000),
		within("--lanes", c.Lanes, 1, worker.MaxLanes),
		within("--batch", c.Batch, 1, worker.MaxBatch),
	)
}

// result is what the demo prints.
type result struct {
	Events          int     `json:"events"`
	Received        int     `json:"received"`
	Lost            int     `json:"lost"`
	Duplicates      int     `json:"duplicates"`
	Altered         int     `json:"altered"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	ClaimP50        float64 `json:"claim_ms_p50"`
	ClaimP99        float64 `json:"claim_ms_p99"`
	PublishP50      float64 `json:"publish_ms_p50"`
	PublishP99      float64 `json:"publish_ms_p99"`
	SettleP50       float64 `json:"settle_ms_p50"`
	OldestWait      float64 `json:"oldest_wait_ms"`
}

// Run writes, moves, receives and checks. It fails when an event was lost or
// altered.
func (c *demoCmd) Run(ctx context.Context, s streams) error {
	log := zap.NewNop()
	if c.Verbose {
		log = service.NewLogger(service.ProcessSettings{LogFormat: "console", LogLevel: "info"}, s.err)
	}
	schema := scripts.Options{}
	if c.Payload > 2000 {
		schema.Payload = "VARCHAR(MAX)"
	}
	stack, err := local.Start(ctx, local.Config{Schema: schema})
	if err != nil {
		return err
	}
	defer stack.Close()

	bars := newBars(s.err, c.Events)
	if c.Verbose {
		bars = newBars(io.Discard, c.Events) // the log has the terminal
	}
	made := samples{payloadBytes: c.Payload}
	in := newInspector(made, c.Events, bars.received)
	took := &latencies{}
	begun, err := c.move(ctx, stack, made, in, took, bars, log)
	bars.done()
	if ctx.Err() != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		return fmt.Errorf("interrupted after %d of %s", in.received, quantity.Of(c.Events, "event"))
	}
	if err != nil {
		return err
	}
	r := c.result(in, took, begun)
	if err := r.print(s.out, c.JSON); err != nil {
		return err
	}
	if in.problem != nil {
		return fmt.Errorf("altered: %d of %s, the first: %w", r.Altered, quantity.Of(r.Received+r.Altered, "message"), in.problem)
	}
	if r.Lost > 0 {
		return fmt.Errorf("lost: %d of %s", r.Lost, quantity.Of(r.Events, "event"))
	}
	return nil
}

// move runs writers, worker and receivers at the same time until every event
// has arrived or nothing moves any more. It returns when the first event was
// written.
func (c *demoCmd) move(ctx context.Context, stack *local.Stack, made samples, in *inspector, took *latencies, bars *bars, log *zap.Logger) (begun time.Time, err error) {
	mover, err := c.worker(stack, took, log)
	if err != nil {
		return begun, err
	}
	group, running := errgroup.WithContext(ctx)
	working, stopWorking := context.WithCancel(running)
	defer stopWorking()
	receiving, stopReceiving := context.WithCancel(running)
	defer stopReceiving()
	group.Go(func() error { return mover.Run(working) })
	group.Go(func() error { return in.receive(receiving, stack.Bus.ConnectionString()) })
	begun = time.Now()
	group.Go(func() error { return write(running, stack.SQL.DSN(), made, c.Events, bars.wrote) })
	group.Go(func() error {
		defer stopReceiving()
		defer stopWorking()
		return in.await(running)
	})
	return begun, group.Wait()
}

// worker is outbox-worker itself, save for its port.
func (c *demoCmd) worker(stack *local.Stack, took *latencies, log *zap.Logger) (*service.Service, error) {
	settings, err := service.DefaultSettings()
	if err != nil {
		return nil, err
	}
	settings.SQL.DSN = stack.SQL.DSN()
	settings.ServiceBus.ConnectionString = stack.Bus.ConnectionString()
	settings.ServiceBus.Entity, settings.ServiceBus.Source = local.Entity, source
	settings.Claim.Lanes, settings.Claim.Batch = c.Lanes, c.Batch
	settings.Process.Listen = "off"
	settings.Observer = took
	return service.New(settings, log)
}

// await returns nil when everything has arrived and no duplicate followed, or
// when nothing has moved for the stall time.
func (in *inspector) await(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	lastCount, lastMove := 0, time.Now()
	for {
		select {
		case <-in.complete:
			select {
			case <-time.After(echo):
			case <-ctx.Done():
			}
			return nil
		case <-tick.C:
			in.mu.Lock()
			count := in.received + in.altered
			in.mu.Unlock()
			if count != lastCount {
				lastCount, lastMove = count, time.Now()
			}
			if time.Since(lastMove) > stall {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *demoCmd) result(in *inspector, took *latencies, begun time.Time) result {
	in.mu.Lock()
	defer in.mu.Unlock()
	seconds := in.last.Sub(begun).Seconds()
	return result{
		Events: c.Events, Received: in.received, Duplicates: in.duplicates, Altered: in.altered,
		Lost:            c.Events - in.received,
		Seconds:         math.Round(seconds*1000) / 1000,
		EventsPerSecond: math.Round(float64(in.received) / max(seconds, 1e-9)),
		ClaimP50:        took.quantile(&took.claim, .5), ClaimP99: took.quantile(&took.claim, .99),
		PublishP50: took.quantile(&took.publish, .5), PublishP99: took.quantile(&took.publish, .99),
		SettleP50:  took.quantile(&took.settle, .5),
		OldestWait: milliseconds(in.oldestWait),
	}
}

func (r result) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, `%s written, %s received: %s lost, %s, %s altered
%.2f s, %s events/s; the longest wait was %.0f ms
claim p50 %.1f ms, p99 %.1f ms; publish p50 %.1f ms, p99 %.1f ms; settle p50 %.1f ms
`, quantity.Of(r.Events, "event"), quantity.Grouped(r.Received), quantity.Grouped(r.Lost), quantity.Of(r.Duplicates, "duplicate"), quantity.Grouped(r.Altered),
		r.Seconds, quantity.Grouped(int(r.EventsPerSecond+0.5)), r.OldestWait, r.ClaimP50, r.ClaimP99, r.PublishP50, r.PublishP99, r.SettleP50)
	return err
}
