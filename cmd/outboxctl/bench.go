package main

import (
	"context"
	"errors"
	"fmt"

	"azsqloutbox/maintenance/claimbench"
)

type benchCmd struct {
	Claim benchClaimCmd `cmd:"" help:"Measure ways to claim on this database, in scratch tables: show the plan, or do it with --execute."`
}

type benchClaimCmd struct {
	Rows       int      `env:"-" default:"20000" help:"Rows of a scratch table; each strategy has its share."`
	Batch      int      `env:"-" default:"${batch}" help:"Events a claim takes."`
	Rounds     int      `env:"-" default:"8" help:"Batches of each strategy that are measured, behind one that is not."`
	Payload    int      `env:"-" default:"600" help:"Characters of each payload, at most what the column takes."`
	Strategies []string `env:"-" placeholder:"NAME,…" help:"Of pipeline, update-output, update-top and delete-output. Default: all."`
	Execute    bool     `env:"-" help:"Do it. Without it only the plan is shown."`
}

// Run shows the plan or measures.
func (c *benchClaimCmd) Run(ctx context.Context, a *app) error {
	b, err := c.bench()
	if err != nil {
		return usageError{err}
	}
	target, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	b.Target = target
	if err := b.Validate(); err != nil {
		return usageError{err}
	}
	if !c.Execute {
		report, err := b.Plan(ctx)
		return a.benched(report, err)
	}
	progress, done := a.progress()
	b.Progress = progress
	report, err := b.Run(ctx)
	done()
	return a.benched(report, err)
}

// bench refuses a zero that was typed: below it would be the default.
func (c *benchClaimCmd) bench() (claimbench.Bench, error) {
	for _, f := range []struct {
		flag  string
		value int
	}{{"rows", c.Rows}, {"batch", c.Batch}, {"rounds", c.Rounds}, {"payload", c.Payload}} {
		if f.value == 0 {
			return claimbench.Bench{}, fmt.Errorf("--%s is 0, it must be 1 or more", f.flag)
		}
	}
	for _, s := range c.Strategies {
		if s == "" {
			return claimbench.Bench{}, errors.New("--strategies has an empty name")
		}
	}
	return claimbench.Bench{Rows: c.Rows, Batch: c.Batch, Rounds: c.Rounds, Payload: c.Payload, Strategies: c.Strategies}, nil
}

// benchResult is what is printed as JSON.
type benchResult struct {
	claimbench.Report
	Refused string `json:"refused,omitempty"`
}

// benched prints a report and returns the error. Of a run that failed there is
// nothing to print; of one that is refused the plan, as JSON.
func (a *app) benched(r claimbench.Report, failed error) error {
	refused := refusal(failed)
	if failed != nil && (refused == "" || !a.json) {
		return failed
	}
	if err := a.result(benchResult{r, refused}, r.Text); failed == nil {
		return err
	}
	return failed
}
