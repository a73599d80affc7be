// outbox-dev runs the whole path from a row to a message on one machine, on two
// embedded engines: serve offers them to programs, demo proves the path.
//
// It exits 0 when all went well, 1 when something failed (a lost or altered
// event in demo), 2 after wrong usage.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A log whose reader has gone must not end the process.
	signal.Ignore(syscall.SIGPIPE)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
