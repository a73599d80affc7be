package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/diagnose"
)

type diagnoseCmd struct {
	Top   int       `env:"-" default:"20" help:"Rows of the longer tables."`
	HTML  string    `env:"-" name:"html" placeholder:"FILE" help:"Also write the report as one HTML file that needs no network."`
	Since sinceFlag `env:"-" default:"24h" placeholder:"24h|2026-01-31|2026-01-31T08:00:00Z" help:"How far back Query Store is read: a duration, a day or a time (UTC). Other counters cannot be cut at a time."`
}

// sinceFlag is a duration back from now, or a point in time.
type sinceFlag struct {
	ago time.Duration
	at  time.Time
}

// UnmarshalText reads 36h, 2026-01-31 or an RFC 3339 time.
func (s *sinceFlag) UnmarshalText(text []byte) error {
	value := string(text)
	if d, err := time.ParseDuration(value); err == nil {
		if d <= 0 {
			return fmt.Errorf("%q must be more than 0", value)
		}
		*s = sinceFlag{ago: d}
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			*s = sinceFlag{at: at.UTC()}
			return nil
		}
	}
	return fmt.Errorf("%q is neither a duration (24h) nor a day (2026-01-31) nor a time (2026-01-31T08:00:00Z)", value)
}

// Validate is for kong.
func (c *diagnoseCmd) Validate() error {
	if c.Top < 1 || c.Top > 1000 {
		return fmt.Errorf("--top is %d, must be 1 to 1000", c.Top)
	}
	return nil
}

// Run asks the database and prints what it says. It exits 0 whatever it found:
// a report is not a check.
func (c *diagnoseCmd) Run(ctx context.Context, a *app) error {
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	report, done := a.progress()
	r, err := diagnose.Run(ctx, diagnose.Config{
		DB: t.DB, Names: t.Names, Top: c.Top, Since: c.Since.ago, SinceTime: c.Since.at,
		Progress: func(n, total int, title string) {
			report(maintenance.Progress{Stage: "diagnose", Done: int64(n), Total: int64(total), Unit: "sections"})
		},
	})
	done()
	if err != nil {
		return err
	}
	if c.HTML != "" {
		if err := writeHTML(c.HTML, r); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "the report is in %s\n", c.HTML)
	}
	return a.result(r, func(w io.Writer) error { return r.WriteText(w, colorful(w)) })
}

func writeHTML(path string, r *diagnose.Report) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := r.WriteHTML(f); err != nil {
		f.Close()
		return fmt.Errorf("write the report to %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the report to %s: %w", path, err)
	}
	return nil
}

// colorful is true on a terminal, unless NO_COLOR says no (no-color.org).
func colorful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && isatty.IsTerminal(f.Fd())
}
