package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/worker"
)

// benchPipeline is outbox-worker, told to drain. Its time begins before it has
// proved its rights on the tables.
func benchPipeline(ctx context.Context, t *benchTask) error {
	ctx, t.stop = context.WithDeadline(ctx, t.end)
	defer t.stop()
	return timeIsUp(t.runService(ctx, true))
}

// timeIsUp takes a drain that is stopped when its time, or its number of events, is
// reached for the end that it is.
func timeIsUp(err error) error {
	if errors.Is(err, worker.ErrNotDrained) {
		return nil
	}
	return err
}

// benchIdle is outbox-worker until the parent has seen enough and ends ctx.
func benchIdle(ctx context.Context, t *benchTask) error {
	return t.runService(ctx, false)
}

// runService runs outbox-worker itself, save for its port.
func (t *benchTask) runService(ctx context.Context, drain bool) error {
	settings, err := service.DefaultSettings()
	if err != nil {
		return err
	}
	settings.SQL.DSN = t.DSN
	settings.ServiceBus.ConnectionString = t.Bus
	settings.ServiceBus.Entity, settings.ServiceBus.Source = local.Entity, source
	settings.Claim.Lanes, settings.Claim.Batch, settings.Claim.Drain = t.Lanes, t.Batch, drain
	settings.Claim.IdlePoll = cmp.Or(t.IdlePoll, settings.Claim.IdlePoll)
	settings.Process.Listen = "off"
	settings.Observer = benchObserver{t.took, t}
	w, err := service.New(settings, zap.NewNop())
	if err != nil {
		return fmt.Errorf("make a worker: %w", err)
	}
	return w.Run(ctx)
}
