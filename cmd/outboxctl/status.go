package main

import (
	"context"
	"fmt"
	"time"

	"azsqloutbox/maintenance"
)

type statusCmd struct {
	Watch    bool          `env:"-" help:"Draw it again and again until Ctrl-C."`
	Interval time.Duration `env:"-" default:"2s" help:"Pause between two drawings."`
}

// Validate is called by the parser.
func (c *statusCmd) Validate() error {
	if c.Interval < 100*time.Millisecond || c.Interval > time.Hour {
		return fmt.Errorf("--interval is %s, it may be 100ms to 1h", c.Interval)
	}
	return nil
}

// Run prints the status, once or until the end.
func (c *statusCmd) Run(ctx context.Context, a *app) error {
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	for {
		s, err := maintenance.ReadStatus(ctx, t)
		switch {
		case c.Watch && ctx.Err() != nil:
			return nil
		case err != nil && !c.Watch:
			return err
		case err != nil:
			fmt.Fprintln(a.err, "outboxctl:", err) // it may come back
		default:
			if err := a.draw(s, c.Watch); err != nil {
				return err
			}
		}
		if !c.Watch {
			return nil
		}
		select {
		case <-time.After(c.Interval):
		case <-ctx.Done():
			return nil
		}
	}
}
