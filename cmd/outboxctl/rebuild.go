package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

type rebuildCmd struct {
	Index           string        `env:"-" placeholder:"NAME" help:"Only this index. Default: all of the table."`
	FillFactor      int           `env:"-" name:"fillfactor" default:"98" placeholder:"PERCENT" help:"How full the pages are made, 1 to 100. Default 98: rows do not grow. Below 95 the plan has a warning."`
	Online          bool          `env:"-" xor:"online" help:"While others work: the default."`
	Offline         bool          `env:"-" xor:"online" help:"While nobody can use the table, for editions that cannot do it online."`
	MaxDuration     time.Duration `env:"-" default:"60m" help:"Pause a resumable rebuild after so long, and begin no other; whole minutes to 168h. One that is not resumable runs to its end."`
	LowPriorityWait time.Duration `env:"-" default:"1m" help:"How long an online rebuild lets others pass before it gives up; whole minutes. 0 lets nobody pass, for the two seconds of a lock."`
	MaxDOP          *int          `env:"-" name:"maxdop" placeholder:"N" help:"Threads of a rebuild at most, 1 to 64. Default: the server's."`
	Force           bool          `env:"-" help:"Rebuild what gains nothing too."`
	Abort           bool          `env:"-" help:"Give paused rebuilds up instead: what they have built is dropped."`
	Execute         bool          `env:"-" help:"Do it. Without it only the plan is shown."`
}

// Run rebuilds the indexes that gain.
func (c *rebuildCmd) Run(ctx context.Context, a *app) error {
	target, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	r := maintenance.Rebuild{
		Target: target, Index: c.Index, FillFactor: c.FillFactor, Offline: c.Offline,
		MaxDuration: c.MaxDuration, LowPriorityWait: c.LowPriorityWait, Force: c.Force,
	}
	if c.MaxDOP != nil {
		r.MaxDOP = *c.MaxDOP
	}
	if err := c.check(r); err != nil {
		return usageError{err}
	}
	if !c.Execute || c.Abort {
		look := r.Plan
		if c.Abort {
			look = func(ctx context.Context) (maintenance.RebuildReport, error) { return r.Abort(ctx, c.Execute) }
		}
		report, err := look(ctx)
		return a.rebuilt(report, err)
	}
	progress, done := a.progress()
	r.Progress = progress
	report, err := r.Run(ctx)
	done()
	return a.rebuilt(report, err)
}

// check refuses a zero that was typed: below it would be the default.
func (c *rebuildCmd) check(r maintenance.Rebuild) error {
	switch {
	case c.FillFactor == 0:
		return errors.New("--fillfactor is 0, it may be 1 to 100")
	case c.MaxDuration == 0:
		return errors.New("--max-duration is 0, it may be 1m to 168h")
	case c.MaxDOP != nil && *c.MaxDOP == 0:
		return errors.New("--maxdop is 0, it may be 1 to 64")
	case c.Abort && c.Force:
		return errors.New("--abort and --force exclude each other")
	}
	return r.Validate()
}

// rebuilt prints a report, which is there with an error too, and returns the
// error.
func (a *app) rebuilt(r maintenance.RebuildReport, failed error) error {
	refused := refusal(failed)
	if failed != nil && r.Edition == "" && (refused == "" || !a.json || r.Table == "") {
		return failed
	}
	out := struct {
		maintenance.RebuildReport
		Refused string `json:"refused,omitempty"`
	}{r, refused}
	if err := a.result(out, func(out io.Writer) error { return writeRebuild(out, r, failed != nil) }); failed == nil {
		return err
	}
	return failed
}

func writeRebuild(out io.Writer, r maintenance.RebuildReport, refused bool) error {
	var b strings.Builder
	how := "online"
	if !r.Online {
		how = "offline"
	}
	fmt.Fprintf(&b, "%s on %s: %s, fill factor %d\n\n", r.Table, r.Edition, how, r.FillFactor)
	rebuildTable(&b, r)
	for _, i := range r.Indexes {
		rebuildIndex(&b, i)
	}
	rebuildLog(&b, r)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s.\n", w)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNot seen: %s\n", n)
	}
	switch something := slices.ContainsFunc(r.Indexes, func(i maintenance.RebuildIndex) bool { return len(i.SQL) > 0 }); {
	case refused:
	case !something:
		b.WriteString("\nNothing to rebuild.\n")
	case !r.Executed:
		b.WriteString("\nNothing was changed; add --execute to do it.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func rebuildTable(b *strings.Builder, r maintenance.RebuildReport) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "index\trows\tsize\tfill factor\tdensity\tfragmented\tghosts\tsequential key\taction\tfrees\tlog")
	for _, i := range r.Indexes {
		sequential := "-"
		if i.ForSequentialKey != nil {
			sequential = map[bool]string{true: "on", false: "off"}[*i.ForSequentialKey]
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.Name, i.Rows, sizeText(i.Bytes), i.FillFactor,
			percentText(i.Density), percentText(i.Fragmentation), countText(i.Ghosts), sequential, i.Action, sizeText(i.FreesBytes), sizeText(i.LogBytes))
	}
	_ = t.Flush() // into memory
}

func rebuildIndex(b *strings.Builder, i maintenance.RebuildIndex) {
	fmt.Fprintf(b, "\n%s: %s, %s", i.Name, i.Action, i.Reason)
	switch {
	case i.Resumable:
		b.WriteString("; resumable")
	case i.NotResumable != "":
		fmt.Fprintf(b, "; not resumable: %s", i.NotResumable)
	}
	b.WriteString(".\n")
	for _, sql := range i.SQL {
		_, statement, _ := strings.Cut(sql, "\n") // its name is for Query Store
		writeSQL(b, statement)
	}
	if i.Outcome == "" {
		return
	}
	fmt.Fprintf(b, "        %s", strings.ToUpper(string(i.Outcome)))
	if i.Outcome == maintenance.RebuildPaused && i.Operation != nil {
		fmt.Fprintf(b, " at %.0f %%: run the command again to go on, --abort gives it up", i.Operation.PercentComplete)
	}
	if i.Seconds > 0 {
		fmt.Fprintf(b, " in %s", time.Duration(i.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	if i.Bytes != nil && i.BytesAfter != nil {
		fmt.Fprintf(b, ", %s before, %s now, %s full", quantity.Bytes(*i.Bytes), quantity.Bytes(*i.BytesAfter), percentText(i.DensityAfter))
	}
	b.WriteString(".\n")
}

func rebuildLog(b *strings.Builder, r maintenance.RebuildReport) {
	if r.LogBytes != nil && *r.LogBytes == 0 {
		return
	}
	fmt.Fprintf(b, "\nTogether about %s freed, for about %s written to the log", sizeText(r.FreesBytes), sizeText(r.LogBytes))
	if r.Log.MaxBytesPerSecond != nil && r.Log.LeastSeconds != nil {
		fmt.Fprintf(b, ": %s at least, at the %s/s that this database may write", time.Duration(*r.Log.LeastSeconds*float64(time.Second)).Round(time.Second), quantity.Bytes(*r.Log.MaxBytesPerSecond))
	}
	b.WriteString(".\n")
}

func sizeText(n *int64) string {
	if n == nil {
		return "?"
	}
	return quantity.Bytes(*n)
}

func percentText(p *float64) string {
	if p == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f %%", *p)
}

func countText(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}
