package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/servicebus"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// sentByNobody calls every event sent.
type sentByNobody struct{}

// Publish implements worker.Publisher.
func (sentByNobody) Publish(_ context.Context, events []worker.Event) []worker.Outcome {
	outcomes := make([]worker.Outcome, len(events))
	for i := range outcomes {
		outcomes[i].Verdict = worker.Sent
	}
	return outcomes
}

// benchClaimOnly is the pipeline with a broker that takes no time: claiming and
// settling, which is all that the database allows.
func benchClaimOnly(ctx context.Context, t *benchTask) error {
	store, err := sqlserver.New(sqlserver.Config{DB: t.db, Owner: "bench", Source: source})
	if err != nil {
		return err
	}
	defer store.Close()
	w, err := worker.New(worker.Config{
		Store: store, Publisher: sentByNobody{}, Observer: benchObserver{t.took, t},
		EventTypes: []string{benchType}, Lanes: t.Lanes, Batch: t.Batch, Drain: true,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithDeadline(ctx, t.end)
	defer stop()
	if err := timeIsUp(w.Run(ctx)); err != nil {
		return err
	}
	t.took.publish = nil
	return nil
}

// benchPublishOnly is the pipeline's publisher with events that are there
// already: as many batches under way as the pipeline has by default, which is
// all that the broker allows.
func benchPublishOnly(ctx context.Context, t *benchTask) error {
	routes, err := servicebus.NewRoutes(servicebus.Route{Entity: local.Entity})
	if err != nil {
		return err
	}
	publisher, err := servicebus.New(servicebus.Config{ConnectionString: t.Bus, Routes: routes, Source: source})
	if err != nil {
		return err
	}
	defer func() { _ = publisher.Close(context.WithoutCancel(ctx)) }()
	var next atomic.Int64
	created := time.Now().UTC().Truncate(time.Millisecond)
	group, ctx := errgroup.WithContext(ctx)
	for range 2 * t.Lanes {
		group.Go(func() error {
			for !t.over() && ctx.Err() == nil {
				last := next.Add(int64(t.Batch))
				first, last := last-int64(t.Batch)+1, min(last, int64(t.Events))
				if first > last {
					return nil
				}
				events := benchEvents(first, last, t.PayloadBytes, created)
				var outcomes []worker.Outcome
				_ = t.timed(&t.took.publish, func() error {
					outcomes = publisher.Publish(ctx, events)
					return nil
				})
				for _, outcome := range outcomes {
					if outcome.Verdict != worker.Sent {
						return fmt.Errorf("publish: %w", outcome.Err)
					}
				}
				t.done(len(events))
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// benchEvents are the events first to last as a claim would bring them: with
// payloads in one piece of memory.
func benchEvents(first, last int64, payload int, created time.Time) []worker.Event {
	events := make([]worker.Event, 0, last-first+1)
	bodies := make([]byte, 0, int(last-first+1)*payload)
	for n := first; n <= last; n++ {
		from := len(bodies)
		bodies = benchPayload(bodies, n, payload)
		events = append(events, worker.Event{
			ID: n, Type: benchType, AggregateType: "order", AggregateID: fmt.Sprint("customer-", n/3),
			Payload: bodies[from:len(bodies):len(bodies)], CreatedAt: created,
		})
	}
	return events
}
