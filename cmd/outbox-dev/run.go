package main

import (
	"context"
	"fmt"
	"io"

	"azsqloutbox/cmd/outbox-worker/service"
)

type cli struct {
	Serve serveCmd `cmd:"" help:"Both engines, until Ctrl-C: prints the settings of a worker as export lines."`
	Demo  demoCmd  `cmd:"" help:"Write events, move them with a real worker, receive and check every one."`

	Write   writeCmd   `cmd:"" help:"Write an event or a few into a database, as a program would."`
	Receive receiveCmd `cmd:"" help:"Receive messages and print them: they are gone from their queue then."`

	Chaos chaosCmd `cmd:"" help:"Real workers against kills, outages and every other fault; proves by data that nothing was lost."`

	Bench struct {
		Strategies benchCmd    `cmd:"" default:"withargs" help:"The worker beside the strategies of the articles it started from, on the same rows. What bench alone does."`
		Growth     growthCmd   `cmd:"" help:"Rows touched a batch, the larger the backlog and the table."`
		Workers    workersCmd  `cmd:"" help:"Whether several workers on one table stand in each other's way."`
		Fairness   fairnessCmd `cmd:"" help:"How long new events of other types wait while a fresh worker drains a backlog of one."`
	} `cmd:"" help:"What an event costs."`

	Worker workerCmd `cmd:"" hidden:"" help:"outbox-worker, for the commands that need processes."`

	BenchEngine benchEngineCmd `cmd:"" hidden:"" help:"One engine, for bench."`
	BenchWorker benchWorkerCmd `cmd:"" hidden:"" help:"One strategy, for bench."`

	Version service.VersionFlag `env:"-" help:"Print the version and exit."`
}

// streams are where a command writes: results to out, all else to err.
type streams struct {
	out, err io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	command, code, ok := service.ParseCommand(&c, "outbox-dev", "A local outbox on two embedded engines.", nil, args, stdout, stderr)
	if !ok {
		return code
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(streams{out: stdout, err: stderr}); err != nil {
		fmt.Fprintln(stderr, "outbox-dev:", err)
		return 1
	}
	return 0
}
