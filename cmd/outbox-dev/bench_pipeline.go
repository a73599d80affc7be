package main

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
)

// benchPipeline is outbox-worker itself, told to drain, save for its port. Its
// time begins before it has proved its rights on the tables.
func benchPipeline(ctx context.Context, t *benchTask) error {
	settings, err := service.DefaultSettings()
	if err != nil {
		return err
	}
	settings.SQL.DSN = t.DSN
	settings.ServiceBus.ConnectionString = t.Bus
	settings.ServiceBus.Entity, settings.ServiceBus.Source = local.Entity, source
	settings.Claim.Lanes, settings.Claim.Batch, settings.Claim.Drain = t.Lanes, t.Batch, true
	settings.Process.Listen = "off"
	settings.Observer = benchObserver{t.took, t}
	w, err := service.New(settings, zap.NewNop())
	if err != nil {
		return fmt.Errorf("make a worker: %w", err)
	}
	ctx, stop := context.WithDeadline(ctx, t.end)
	defer stop()
	return w.Run(ctx)
}
