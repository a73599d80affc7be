package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

type purgeCmd struct {
	Retention   time.Duration `env:"OUTBOX_PURGE_RETENTION" default:"72h" help:"How long an event stays after it was processed: at least 1m, and twice the lease of the workers."`
	Batch       int           `env:"OUTBOX_PURGE_BATCH" default:"2000" help:"The most rows a statement deletes, up to 2000. A slow database gets smaller ones."`
	Pause       time.Duration `env:"OUTBOX_PURGE_PAUSE" default:"20ms" help:"The least pause between two batches. It grows while the database is short of log rate."`
	MaxDuration time.Duration `env:"OUTBOX_PURGE_MAX_DURATION" default:"30m" help:"End after so long; 0 for no limit."`
	Window      string        `env:"OUTBOX_PURGE_WINDOW" placeholder:"HH:MM-HH:MM" help:"Work in these hours of the day only, UTC by the database's clock, also over midnight: 01:00-05:00. Outside of them it does nothing."`
	Execute     bool          `env:"-" help:"Delete. Without it the plan is shown."`
}

// Run shows the plan and, with --execute, deletes.
func (c *purgeCmd) Run(ctx context.Context, a *app) error {
	if c.Batch == 0 { // below, 0 is the default
		return usageError{errors.New("--batch is 0, it may be 1 to 2000")}
	}
	purge := maintenance.Purge{Retention: c.Retention, Batch: c.Batch, Pause: c.Pause, MaxDuration: c.MaxDuration}
	if c.Window != "" {
		window, err := maintenance.ParseHours(c.Window)
		if err != nil {
			return usageError{fmt.Errorf("--window: %w", err)}
		}
		purge.Window = window
	}
	target, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	purge.Target = target
	if err := purge.Validate(); err != nil {
		return usageError{err}
	}
	if !a.json || !c.Execute {
		plan, err := purge.Plan(ctx)
		if err != nil {
			if refusal(err) == "" || !a.json {
				return err
			}
			return a.purged(maintenance.PurgeResult{PurgePlan: plan, Notes: []string{}, Stopped: maintenance.StopRefused}, false, err)
		}
		out := struct {
			Executed bool `json:"executed"`
			maintenance.PurgePlan
		}{PurgePlan: plan}
		err = a.result(out, func(w io.Writer) error { return purgePlanText(w, plan, purge, c.Execute) })
		if err == nil && !c.Execute {
			err = doubts(plan)
		}
		if err != nil || !c.Execute {
			return err
		}
	}
	report, done := a.progress()
	purge.Progress = report
	result, err := purge.Run(ctx)
	done()
	if err != nil && result.Now.IsZero() && (refusal(err) == "" || !a.json) {
		return err // there was no plan even
	}
	return a.purged(result, !result.Now.IsZero(), err)
}

// purged prints a result, which is there with an error too, and returns the
// error.
func (a *app) purged(result maintenance.PurgeResult, executed bool, err error) error {
	if err == nil && result.Stopped != maintenance.StopOutside {
		err = doubts(result.PurgePlan)
	}
	out := struct {
		Executed bool `json:"executed"`
		maintenance.PurgeResult
		Refused string `json:"refused,omitempty"`
	}{executed, result, refusal(err)}
	if failed := a.result(out, func(w io.Writer) error { return purgeResultText(w, result) }); failed != nil && err == nil {
		return failed
	}
	return err
}

// doubts is the error for events that stay until a person has seen to it: their times
// cannot be, or a claim that nobody gives back may still name them.
func doubts(p maintenance.PurgePlan) error {
	var found []string
	if stray := p.Doubtful.Stray(); stray != "" {
		found = append(found, fmt.Sprintf("purge of %s found %s; %s", p.Table, stray, p.Doubtful.Remedy))
	}
	if h := p.HeldBackBy; h != nil {
		found = append(found, fmt.Sprintf("the purge of %s is held back by the claim %s of %s: its lease ended %s, and nobody has given its events back, so that all that was processed since %s stays. Start a worker, which gives them back; where one runs, its log says why it cannot",
			p.Table, h.ClaimID, h.Owner, clock(h.LeaseUntil), clock(h.ClaimedAt)))
	}
	if len(found) == 0 {
		return nil
	}
	return finding{errors.New(strings.Join(found, "; "))}
}

// shiftedText is the line for events that only go later.
func shiftedText(w io.Writer, p maintenance.PurgePlan) {
	if shifted := p.Doubtful.Shifted(); shifted != "" {
		fmt.Fprintf(w, "  wrong clock\t%s\n", shifted)
	}
}

func purgePlanText(out io.Writer, p maintenance.PurgePlan, purge maintenance.Purge, execute bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "purge of %s\n", p.Table)
	fmt.Fprintf(w, "  database clock\t%s\n", clock(p.Now))
	fmt.Fprintf(w, "  deletes\tPROCESSED events older than %s: processed before %s\n", quantity.Span(purge.Retention), clock(p.Cutoff))
	if h := p.HeldBackBy; h != nil {
		fmt.Fprintf(w, "  held back by\tthe claim %s of %s, claimed %s, lease until %s: what was processed since may be its\n", h.ClaimID, h.Owner, clock(h.ClaimedAt), clock(h.LeaseUntil))
	}
	fmt.Fprintf(w, "  open claims\t%s, longest lease %s\n", quantity.Grouped(int64(p.OpenReceipts)), quantity.Span(time.Duration(p.LeaseSeconds*float64(time.Second))))
	if o := p.Oldest; o != nil {
		fmt.Fprintf(w, "  table\tabout %s; the first has the id %d and was created %s\n", quantity.Of(p.TableRows, "row"), o.ID, clock(o.CreatedAt))
	} else {
		fmt.Fprintf(w, "  table\tempty\n")
	}
	how := "estimated from samples"
	if p.Exact {
		how = "counted"
	}
	fmt.Fprintf(w, "  to delete\t%s, %s (%s)\n", quantity.Of(p.EstimatedRows, "row"), quantity.Bytes(p.EstimatedBytes), how)
	if !execute {
		shiftedText(w, p)
	}
	if purge.Window != (maintenance.Hours{}) {
		state := "open now"
		if !p.InWindow {
			state = "closed now"
		}
		fmt.Fprintf(w, "  window\t%s, %s\n", purge.Window, state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if execute {
		return nil
	}
	_, err := fmt.Fprintln(out, "Nothing was deleted; --execute does it.")
	return err
}

// stops are the ends of a purge as a person reads them.
var stops = map[maintenance.Stop]string{
	maintenance.StopDone:        "nothing is left that is old enough",
	maintenance.StopMaxDuration: "--max-duration is over; the next run goes on",
	maintenance.StopWindow:      "the window closed; the next run goes on",
	maintenance.StopOutside:     "the window is closed, nothing was done",
	maintenance.StopInterrupted: "interrupted; the next run goes on",
	maintenance.StopRefused:     "refused, see the error",
	maintenance.StopFailed:      "failed, see the error",
}

func purgeResultText(out io.Writer, r maintenance.PurgeResult) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  deleted\t%s in %.1f s, %s rows/s; %s freed for new rows\n", quantity.Of(r.Rows, "row"), r.Seconds, quantity.Grouped(int64(r.RowsPerSecond)), quantity.Bytes(r.BytesFreed))
	fmt.Fprintf(w, "  work\t%s looked at, %s, %s\n", quantity.Of(r.Windows, "window"), quantity.Of(r.Batches, "batch"), quantity.Of(r.Retries, "retry"))
	if r.PendingRows+r.FailedRows > 0 {
		fmt.Fprintf(w, "  left there\t%s PENDING, %s FAILED\n", quantity.Grouped(r.PendingRows), quantity.Grouped(r.FailedRows))
	}
	if r.UnstampedRows > 0 {
		fmt.Fprintf(w, "  left there\t%s PROCESSED without a processed_at, which no worker writes: find out who did\n", quantity.Grouped(r.UnstampedRows))
	}
	shiftedText(w, r.PurgePlan)
	if r.LockedWindows > 0 {
		fmt.Fprintf(w, "  left there\tall of %s that someone held: left to the next run\n", quantity.Of(r.LockedWindows, "window"))
	}
	if r.LogShortages > 0 {
		fmt.Fprintf(w, "  slowed\tthe database was short of log rate at %s\n", quantity.Of(r.LogShortages, "look"))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  note\t%s\n", note)
	}
	fmt.Fprintf(w, "  stopped\t%s\n", stops[r.Stopped])
	return w.Flush()
}
