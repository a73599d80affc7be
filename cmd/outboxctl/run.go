package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitFound  = 3
)

type cli struct {
	Status statusCmd `cmd:"" help:"Backlog, claims, workers and destinations."`
	Doctor doctorCmd `cmd:"" help:"Go or no-go: everything that a worker relies on, with what to do about it."`
	Failed failedCmd `cmd:"" help:"Failed events: list, show, retry, discard."`
	Pause  pauseCmd  `cmd:"" help:"Tell all workers to stop claiming everything, an event type or what goes to an entity: one of --all, --event-type and --entity."`
	Resume resumeCmd `cmd:"" help:"End a pause, the one of --all, --event-type or --entity."`
	Schema schemaCmd `cmd:"" help:"The table and its indexes: print the script, check them, add what is missing."`

	MigrateVarchar migrateCmd `cmd:"" help:"Check that an NVARCHAR column would lose nothing as VARCHAR, and migrate it."`
	Purge          purgeCmd   `cmd:"" help:"Delete PROCESSED events that are older than the retention, in small paced batches."`
	Rebuild        rebuildCmd `cmd:"" help:"Make the indexes dense again: FILLFACTOR 98, OPTIMIZE_FOR_SEQUENTIAL_KEY. Show the plan, or do it with --execute."`

	Diagnose diagnoseCmd `cmd:"" help:"What the database says: costs, plans, size, indexes, waits."`
	Size     sizeCmd     `cmd:"" help:"What a rate of events needs: vCores, log, storage, Service Bus, replicas. Asks no database."`
	Bench    benchCmd    `cmd:"" help:"Measurements on this database."`

	Database service.DatabaseSettings `embed:"" group:"Database"`
	JSON     bool                     `name:"json" help:"Print the result as one JSON object; docs/json.md lists the keys."`
	Version  service.VersionFlag      `env:"-" help:"Print the version and the commit, and exit."`
}

// unused are the flags that these commands do not look at: they ask no database.
var unused = map[string][]string{
	"size":         {"sql-dsn", "schema", "table", "claim-index", "retry-index"},
	"schema print": {"sql-dsn"},
}

// errFound ends a command whose check found something; what it found is in the
// command's output already.
var errFound = errors.New("the check found something")

// finding is what a command found and could work around; its output does not have
// it.
type finding struct{ error }

// usageError is a setting that cannot be, seen after the flags were parsed.
type usageError struct{ error }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	command, code, ok := service.ParseCommand(&c, "outboxctl", "Looks after an outbox table in Azure SQL. Reads only, unless told to --execute.", unused, args, stdout, stderr)
	if !ok {
		return code
	}
	command.BindTo(ctx, (*context.Context)(nil))
	err := command.Run(&app{out: stdout, err: stderr, json: c.JSON, database: c.Database})
	if err != nil && !errors.Is(err, errFound) {
		fmt.Fprintln(stderr, "outboxctl:", said(err))
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var refusal *maintenance.Refusal
	var usage usageError
	var found finding
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.Is(err, maintenance.ErrSetting):
		return exitUsage
	case errors.Is(err, errFound), errors.As(err, &refusal), errors.As(err, &found):
		return exitFound
	default:
		return exitFailed
	}
}
