package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

type migrateCmd struct {
	Column    string        `env:"-" default:"payload" help:"payload, headers, aggregate_type, aggregate_id or last_error."`
	Length    string        `env:"-" placeholder:"N" help:"n of VARCHAR(n) in bytes, or MAX. Default: the column's own number."`
	Collation string        `env:"-" placeholder:"NAME" help:"Collation of the column from then on; database_default for the database's. A …_UTF8 one loses nothing. Default: the column's own."`
	Guard     string        `env:"-" default:"trigger" enum:"trigger,lock" help:"What keeps rows that are written meanwhile from losing text: a trigger, with the change online where the edition can; or one transaction that locks the table."`
	FromID    *int64        `env:"-" placeholder:"ID" help:"Go on with a check that was interrupted. Not with --execute."`
	LockWait  time.Duration `env:"-" default:"1m" help:"Longest wait for the locks of the change and of the indexes, with everybody behind it."`

	ShowPayload bool `env:"-" help:"Show the text of the samples: it may be personal data."`
	PrintSQL    bool `env:"-" name:"print-sql" help:"Print the whole migration as a script for a DBA, and do nothing."`
	Execute     bool `env:"-" help:"Migrate, when the check finds nothing."`
}

// Run checks, prints or migrates.
func (c *migrateCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.FromID != nil && (c.Execute || c.PrintSQL):
		return usageError{errors.New("--from-id goes on with a check; a migration needs the whole one")}
	case c.PrintSQL && c.Execute:
		return usageError{errors.New("--print-sql and --execute exclude each other")}
	case c.LockWait <= 0:
		return usageError{fmt.Errorf("--lock-wait is %s, it must be positive", c.LockWait)}
	}
	t, closeDB, err := a.target()
	if err != nil {
		return err
	}
	defer closeDB()
	report, done := a.progress()
	done = sync.OnceFunc(done)
	defer done()
	t.Progress = report
	m := maintenance.Migration{
		Target: t, Column: c.Column, Length: c.Length, Collation: c.Collation,
		Guard: maintenance.Guard(c.Guard), FromID: c.FromID, ShowPayload: c.ShowPayload, FinalLockWait: c.LockWait,
	}
	if err := m.Validate(); err != nil {
		return usageError{err}
	}
	if c.PrintSQL {
		text, err := m.Script(ctx)
		if err != nil {
			return err
		}
		return a.result(map[string]string{"script": text}, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	task := m.Check
	if c.Execute {
		task = m.Run
	}
	r, err := task(ctx)
	done()
	if r == nil {
		return err
	}
	if printed := a.result(r, func(w io.Writer) error { return migrationText(w, r, c.Execute) }); printed != nil {
		return errors.Join(err, printed)
	}
	if err == nil && r.Found() {
		return errFound
	}
	return err
}

// migrationText is the report for a person.
func migrationText(w io.Writer, r *maintenance.MigrationReport, executed bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s\n  from  %s\n  to    %s\n", r.Table, r.Column, r.From, r.To)
	if r.State == maintenance.MigrationAlready {
		b.WriteString("\nThe column is VARCHAR already: there is nothing to migrate.\n")
		writeNotes(&b, r.Notes)
		return flush(w, &b)
	}
	writeCheck(&b, r)
	for _, s := range r.Samples {
		writeSample(&b, s)
	}
	if advice := r.Advice(); advice != "" {
		fmt.Fprintf(&b, "\n%s.\n", advice)
	}
	if len(r.Blockers) > 0 {
		b.WriteString("\nWhat stands against it, nothing was changed:\n")
		for _, k := range r.Blockers {
			fmt.Fprintf(&b, "  %s %s %s\n      %s\n", k.Kind, k.Name, k.Problem, k.Remedy)
		}
	}
	if !executed && len(r.Plan) > 0 {
		fmt.Fprintf(&b, "\nPlan (--guard %s):\n", r.Guard)
		for n, s := range r.Plan {
			fmt.Fprintf(&b, "  %d. %s\n", n+1, s.Step)
			for line := range strings.Lines(s.SQL) {
				b.WriteString("       " + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	writeNotes(&b, r.Notes)
	writeEnd(&b, r, executed)
	return flush(w, &b)
}

func writeCheck(b *strings.Builder, r *maintenance.MigrationReport) {
	checked := "all rows"
	switch {
	case r.ThroughID == "" && !r.Complete:
		b.WriteString("\nNo row was checked.\n")
		return
	case !r.Complete && r.FromID != "":
		checked = fmt.Sprintf("ids %s to %s", r.FromID, r.ThroughID)
	case !r.Complete:
		checked = "ids up to " + r.ThroughID
	}
	fmt.Fprintf(b, "\nChecked %s:\n", checked)
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"rows", r.Rows},
		{"max_chars", r.MaxChars},
		{"max_bytes", r.MaxBytes},
		{"lossy_rows", r.LossyRows},
		{"too_long_rows", r.TooLongRows},
		{"bytes before", r.BytesBefore},
		{"bytes after", r.BytesAfter},
	} {
		fmt.Fprintf(b, "  %-14s %d\n", n.name, n.value)
	}
}

func writeSample(b *strings.Builder, s maintenance.MigrationSample) {
	fmt.Fprintf(b, "  id %s, %s", s.ID, quantity.Of(s.Bytes, "byte"))
	if s.TooLong {
		b.WriteString(", too long")
	}
	for _, c := range s.Characters {
		fmt.Fprintf(b, "; %s becomes %s", c.CodePoint, c.Becomes)
		if c.Times > 1 {
			fmt.Fprintf(b, " (%s)", quantity.Of(c.Times, "time"))
		}
	}
	b.WriteString("\n")
	if s.Payload != nil {
		fmt.Fprintf(b, "    %s\n", *s.Payload)
	}
}

func writeNotes(b *strings.Builder, notes []string) {
	if len(notes) == 0 {
		return
	}
	b.WriteString("\nNotes:\n")
	for _, n := range notes {
		b.WriteString("  * " + n + "\n")
	}
}

func writeEnd(b *strings.Builder, r *maintenance.MigrationReport, executed bool) {
	switch {
	case r.State == maintenance.MigrationDone:
		fmt.Fprintf(b, "\nMigrated in %s. Its indexes are as they were.\n", time.Duration(r.Seconds*float64(time.Second)).Round(10*time.Millisecond))
	case r.Stands != "":
		fmt.Fprintf(b, "\nWhere it stands: %s\n", r.Stands)
	case r.State == maintenance.MigrationInterrupted:
	case r.Found():
		b.WriteString("\nNot migrated: see above. Nothing was changed.\n")
	case !executed && r.Complete:
		b.WriteString("\nNothing would be lost. --execute migrates, after the same check.\n")
	}
}

func flush(w io.Writer, b *strings.Builder) error {
	_, err := io.WriteString(w, b.String())
	return err
}
