// outboxctl looks after an outbox table: it shows it, keeps it small, and mends
// what can be mended. It only reads, unless it is told to --execute.
//
// It exits 0 when done, 1 when something failed or was interrupted, 2 after
// wrong usage, 3 when a check found something.
//
// Called outbox-worker it is the worker: the image holds this file under both
// names. The two link nearly the same code, so that one file is about half of
// two, and it is the only one that a node pulls and keeps.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"azsqloutbox/cmd/outbox-worker/program"
)

func main() {
	if filepath.Base(os.Args[0]) == program.Name {
		program.Main() // does not return
	}
	// SIGHUP is how a lost terminal ends a command that runs for hours: it cleans up
	// like any other stop.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Output that nobody reads any more must not end it in the middle either.
	signal.Ignore(syscall.SIGPIPE)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
