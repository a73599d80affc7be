package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/user"

	"azsqloutbox/maintenance"
	"azsqloutbox/worker"
)

// what of a table is paused or resumed.
type pauseScope struct {
	EventType string `env:"-" placeholder:"NAME" xor:"scope" help:"One event type, by the name that its route has."`
	Entity    string `env:"-" placeholder:"NAME" xor:"scope" help:"All event types of one queue or topic."`
	All       bool   `env:"-" xor:"scope" help:"Everything: the claims, reaping and retries of all workers."`

	By      string `env:"-" placeholder:"NAME" help:"Who says so. Default: user@host."`
	Execute bool   `env:"-" help:"Do it. Without it only the plan is shown."`
}

type pauseCmd struct {
	pauseScope
	Reason string `env:"-" placeholder:"TEXT" help:"Why, for those who look at the status."`
}

type resumeCmd struct {
	pauseScope
}

// Run pauses.
func (c *pauseCmd) Run(ctx context.Context, a *app) error {
	return c.run(ctx, a, maintenance.Pause{Reason: c.Reason})
}

// Run resumes.
func (c *resumeCmd) Run(ctx context.Context, a *app) error {
	return c.run(ctx, a, maintenance.Pause{Resume: true})
}

func (c pauseScope) run(ctx context.Context, a *app, p maintenance.Pause) error {
	switch {
	case c.All:
		p.Scope = worker.ScopeAll
	case c.EventType != "":
		p.Scope, p.Name = worker.ScopeEventType, c.EventType
	case c.Entity != "":
		p.Scope, p.Name = worker.ScopeEntity, c.Entity
	default:
		return usageError{errors.New("one of --event-type, --entity and --all is needed")}
	}
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	p.Target, p.By = t, cmp.Or(c.By, whoAmI())
	if err := p.Validate(); err != nil {
		return usageError{err}
	}
	do := p.Plan
	if c.Execute {
		do = p.Run
	}
	r, err := do(ctx)
	if err != nil {
		return err
	}
	return a.result(r, r.Text)
}

// whoAmI is user@host, as far as the system knows.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return name + "@" + host
}
