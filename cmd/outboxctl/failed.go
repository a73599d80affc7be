package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

type failedCmd struct {
	List    failedListCmd    `cmd:"" help:"FAILED events: those that come back by themselves and those that are parked."`
	Show    failedShowCmd    `cmd:"" help:"One failed event with its payload and headers."`
	Retry   failedRetryCmd   `cmd:"" help:"Give failed events back to the workers, with all their attempts."`
	Discard failedDiscardCmd `cmd:"" help:"Give failed events up, with a reason; the purge takes them in its time."`
}

// failedFilter chooses events.
type failedFilter struct {
	ID        []int64        `env:"-" name:"id" placeholder:"ID" help:"These events; may be given several times or as a list."`
	EventType string         `env:"-" placeholder:"NAME" help:"Events of this type."`
	OlderThan *time.Duration `env:"-" placeholder:"DURATION" help:"Events written before that, at least 1s ago."`
	Error     string         `env:"-" placeholder:"TEXT" help:"Events whose last error has this text."`
	Parked    bool           `env:"-" help:"Only those that wait for a person."`
	Waiting   bool           `env:"-" help:"Only those that come back by themselves."`
}

func (f failedFilter) filter() (maintenance.FailedFilter, error) {
	m := maintenance.FailedFilter{IDs: f.ID, EventType: f.EventType, Error: f.Error, Parked: f.Parked, Waiting: f.Waiting}
	if f.OlderThan != nil {
		if *f.OlderThan == 0 { // in the filter it would be any age
			return m, usageError{errors.New("--older-than is 0s, it must be at least 1s")}
		}
		m.OlderThan = *f.OlderThan
	}
	if err := m.Validate(); err != nil {
		return m, usageError{err}
	}
	return m, nil
}

// chosen says whether anything was chosen: an empty filter means every event.
func (f failedFilter) chosen() bool {
	return len(f.ID) > 0 || f.EventType != "" || f.OlderThan != nil || f.Error != "" || f.Parked || f.Waiting
}

type failedListCmd struct {
	failedFilter
	Limit int `env:"-" default:"100" help:"So many at most."`
}

// Validate is called by the parser.
func (c *failedListCmd) Validate() error {
	if c.Limit < 1 || c.Limit > maintenance.FailedCountCap {
		return fmt.Errorf("--limit is %d, it may be 1 to %d", c.Limit, maintenance.FailedCountCap)
	}
	return nil
}

// failedList is what list prints as JSON.
type failedList struct {
	Events []maintenance.FailedEvent `json:"events"`
	// Limited is true when there may be more.
	Limited bool `json:"limited"`
}

// Run lists.
func (c *failedListCmd) Run(ctx context.Context, a *app) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	events, err := maintenance.ListFailed(ctx, t, f, c.Limit)
	if err != nil {
		return err
	}
	list := failedList{Events: events, Limited: len(events) == c.Limit}
	return a.result(list, list.text)
}

func (l failedList) text(out io.Writer) error {
	if len(l.Events) == 0 {
		_, err := fmt.Fprintln(out, "no failed events")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "id\tevent type\taggregate\tcreated\tattempts\tcomes back\terror")
	for _, e := range l.Events {
		created, back := "unknown", "parked"
		if e.CreatedAt != nil {
			created = e.CreatedAt.UTC().Format(time.RFC3339)
		}
		if e.RetryAt != nil {
			back = e.RetryAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%d\t%s\t%s/%s\t%s\t%d\t%s\t%s\n", e.ID, maintenance.Printable(e.EventType), maintenance.Printable(e.AggregateType), maintenance.Printable(e.AggregateID),
			created, e.Attempts, back, maintenance.Printable(e.Error))
	}
	if l.Limited {
		fmt.Fprintln(w, "… there may be more: --limit")
	}
	return w.Flush()
}

type failedShowCmd struct {
	ID int64 `arg:"" help:"The event's id."`
}

// Run shows one event.
func (c *failedShowCmd) Run(ctx context.Context, a *app) error {
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	d, err := maintenance.ShowFailed(ctx, t, c.ID)
	if err != nil {
		return err
	}
	return a.result(d, func(w io.Writer) error {
		if err := (failedList{Events: []maintenance.FailedEvent{d.FailedEvent}}).text(w); err != nil {
			return err
		}
		headers := "none"
		if d.Headers != nil {
			headers = *d.Headers
		}
		_, err := fmt.Fprintf(w, "\nheaders: %s\npayload, %s in the table:\n%s\n", maintenance.Printable(headers), quantity.Of(d.PayloadBytes, "byte"), maintenance.Printable(d.Payload))
		return err
	})
}

// failedAct is what retry and discard share.
type failedAct struct {
	failedFilter
	All     bool   `env:"-" help:"Every failed event, where nothing else chooses."`
	Limit   *int   `env:"-" placeholder:"N" help:"So many at most. Default: no bound."`
	By      string `env:"-" placeholder:"NAME" help:"Who does it. Default: user@host."`
	Execute bool   `env:"-" help:"Do it. Without it only the plan is shown."`
}

type failedRetryCmd struct {
	failedAct
	PerSecond float64 `env:"-" default:"200" placeholder:"N" help:"Events a second, so that they do not come back as a flood. Default 200."`
}

type failedDiscardCmd struct {
	failedAct
	Reason string `env:"-" required:"" placeholder:"TEXT" help:"Why they are given up; it is written into last_error, before the error that is there."`
}

// Validate is called by the parser.
func (c *failedRetryCmd) Validate() error {
	if !(c.PerSecond >= 0.1 && c.PerSecond <= 1e6) { // not a number is neither
		return fmt.Errorf("--per-second is %g, it may be 0.1 to 1000000", c.PerSecond)
	}
	return nil
}

// Run gives events back.
func (c *failedRetryCmd) Run(ctx context.Context, a *app) error {
	return c.run(ctx, a, maintenance.SettleFailed{PerSecond: c.PerSecond})
}

// Run gives events up.
func (c *failedDiscardCmd) Run(ctx context.Context, a *app) error {
	return c.run(ctx, a, maintenance.SettleFailed{Discard: true, Reason: c.Reason})
}

func (c failedAct) run(ctx context.Context, a *app, s maintenance.SettleFailed) error {
	var err error
	if s.Filter, err = c.filter(); err != nil {
		return err
	}
	if c.chosen() && c.All {
		return usageError{errors.New("--all is every failed event: leave it out, or what chooses among them")}
	}
	if !c.chosen() && !c.All {
		return usageError{errors.New("choose events by --id, --event-type, --older-than, --error, --parked or --waiting, or say --all")}
	}
	if c.Limit != nil {
		if *c.Limit < 1 { // below, 0 is no bound
			return usageError{fmt.Errorf("--limit is %d, it must be 1 or more", *c.Limit)}
		}
		s.Limit = *c.Limit
	}
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	report, done := a.progress()
	t.Progress = report
	s.Target, s.By = t, cmp.Or(c.By, whoAmI())
	if err := s.Validate(); err != nil {
		return usageError{err}
	}
	do := s.Plan
	if c.Execute {
		do = s.Run
	}
	r, err := do(ctx)
	done()
	if err != nil && !r.Executed {
		return err
	}
	err = errors.Join(err, a.result(r, r.Text))
	if err == nil && r.Stopped == "interrupted" {
		err = errors.New("interrupted; what was settled stays so, and the same command goes on")
	}
	return err
}
