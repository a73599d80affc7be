// outbox-worker takes events from an Azure SQL outbox table to Azure Service
// Bus until it is told to stop.
//
// It exits 0 after a stop (SIGTERM, Ctrl-C) or a finished --drain, 1 when it
// cannot work (a table or a login that is not there), and 2 when a setting is
// wrong; then it has touched nothing.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	keepHeapFloor()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A log whose reader has gone must not end the process.
	signal.Ignore(syscall.SIGPIPE)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
