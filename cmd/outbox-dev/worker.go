package main

import (
	"context"

	"azsqloutbox/cmd/outbox-worker/service"
)

// workerCmd is outbox-worker inside this program, for those commands that need
// workers as processes of their own.
type workerCmd struct {
	service.Settings
}

// Run works until ctx ends.
func (c *workerCmd) Run(ctx context.Context, s streams) error {
	log := service.NewLogger(c.Process, s.err)
	defer func() { _ = log.Sync() }()
	w, err := service.New(c.Settings, log)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
