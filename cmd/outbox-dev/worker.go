package main

import (
	"context"
	"io"
	"os"

	"azsqloutbox/cmd/outbox-worker/service"
)

// workerCmd is outbox-worker inside this program, for those commands that need
// workers as processes of their own.
type workerCmd struct {
	service.Settings
	WithInput bool `env:"-" help:"Stop when the input ends: with the process that has started this one, however that ended."`
}

// Run works until ctx ends.
func (c *workerCmd) Run(ctx context.Context, s streams) error {
	log := service.NewLogger(c.Process, s.err)
	defer func() { _ = log.Sync() }()
	w, err := service.New(c.Settings, log)
	if err != nil {
		return err
	}
	if c.WithInput {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	return w.Run(ctx)
}
