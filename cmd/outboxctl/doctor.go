package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/doctor"
	"azsqloutbox/scripts"
	"azsqloutbox/worker"
)

type doctorCmd struct {
	ServiceBus service.ServiceBusSettings `embed:"" group:"Service Bus"`

	Lease           time.Duration  `default:"${lease}" help:"The workers' lease."`
	PublishDeadline *time.Duration `placeholder:"DURATION" help:"The workers' publish deadline. Default: ${publish_deadline}, or half the lease where that is less."`
	BlockSize       int64          `env:"-" default:"50" help:"How many ids a writer takes with one value of the sequence."`
	Grants          bool           `env:"-" xor:"grants" help:"Print only the script that gives a worker what it needs."`
	JobGrants       bool           `env:"-" xor:"grants" help:"Print only the script that gives the jobs, purge and rebuild, what they need."`
}

// Validate is called by the parser. A zero would be the default further down, and
// what no worker may have says nothing about one.
func (c *doctorCmd) Validate() error {
	const day = 24 * time.Hour
	switch {
	case c.BlockSize < 1:
		return fmt.Errorf("--block-size is %d, it must be 1 or more", c.BlockSize)
	case c.Lease < time.Second || c.Lease > day:
		return fmt.Errorf("--lease is %s, it may be 1s to 24h", c.Lease)
	case c.PublishDeadline != nil && *c.PublishDeadline < time.Millisecond:
		return fmt.Errorf("--publish-deadline is %s, it may be 1ms and more", *c.PublishDeadline)
	case c.ServiceBus.SendTimeout < time.Second || c.ServiceBus.SendTimeout > day:
		return fmt.Errorf("--servicebus-send-timeout is %s, it may be 1s to 24h", c.ServiceBus.SendTimeout)
	}
	return nil
}

// Run examines database and broker.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.Grants:
		return printGrants(a, scripts.Grants)
	case c.JobGrants:
		return printGrants(a, scripts.JobGrants)
	}
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	b, err := c.broker()
	if err != nil {
		return usageError{err}
	}
	defer b.close(ctx)
	r, err := doctor.Examine(ctx, c.config(t))
	if err != nil {
		return err
	}
	r.Add(b.look(ctx, c.Lease, r.EventsPerSecond)...)
	if err := a.result(r, r.Text); err != nil {
		return err
	}
	if !r.Go {
		return errFound
	}
	return nil
}

// grantsOnly is what --grants and --job-grants print as JSON.
type grantsOnly struct {
	Grants string `env:"-" json:"grants"`
}

// printGrants prints a script, which needs no database.
func printGrants(a *app, render func(scripts.Options) (string, error)) error {
	if err := a.database.CheckNames(); err != nil {
		return usageError{err}
	}
	text, err := render(scripts.Options{Schema: a.database.Schema, Table: a.database.Table})
	if err != nil {
		return err
	}
	return a.result(grantsOnly{text}, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func (c *doctorCmd) config(t maintenance.Target) doctor.Config {
	deadline := min(worker.DefaultPublishDeadline, c.Lease/2)
	if c.PublishDeadline != nil {
		deadline = *c.PublishDeadline
	}
	return doctor.Config{
		DB: t.DB, Names: t.Names, Logger: zap.NewNop(),
		Lease: c.Lease, PublishDeadline: deadline, SendTimeout: c.ServiceBus.SendTimeout, BlockSize: c.BlockSize,
	}
}
