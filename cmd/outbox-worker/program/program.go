// Package program is outbox-worker as a whole, from its arguments to its exit
// code. It is not in package main, so that outboxctl can be the worker as well:
// the image holds both programs in one file (infra/Dockerfile).
package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"azsqloutbox/cmd/outbox-worker/service"
)

// Name is what the program is called, on disk and in what it writes.
const Name = "outbox-worker"

// Main runs the worker with the process's arguments and ends the process. It
// exits 0 after a stop (SIGTERM, Ctrl-C) or a finished --drain, 1 when it cannot
// work (a table or a login that is not there), and 2 when a setting is wrong;
// then it has touched nothing.
func Main() {
	service.Economize()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A log whose reader has gone must not end the process.
	signal.Ignore(syscall.SIGPIPE)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
