package program

import (
	"context"
	"fmt"
	"io"

	"azsqloutbox/cmd/outbox-worker/service"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// cli is what can be typed.
type cli struct {
	service.Settings
	Healthcheck bool                `env:"-" help:"Ask the worker that runs with the same --listen whether it is alive, and exit: 0 if it is, 1 if not. For container images, which hold no other client."`
	Version     service.VersionFlag `env:"-" help:"Print the version and the commit, and exit."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	code, ok := service.Parse(&c, Name, "Takes events from an Azure SQL outbox table to Azure Service Bus.", args, stdout, stderr)
	if !ok {
		return code
	}
	if c.Healthcheck {
		return healthcheck(ctx, c.Process.Listen, stdout, stderr)
	}
	log := service.NewLogger(c.Process, stderr)
	defer func() { _ = log.Sync() }()

	s, err := service.New(c.Settings, log)
	if err != nil {
		fmt.Fprintln(stderr, "outbox-worker:", err)
		return exitUsage
	}
	if err := s.Run(ctx); err != nil {
		fmt.Fprintln(stderr, "outbox-worker:", err)
		return exitFailed
	}
	return exitDone
}
