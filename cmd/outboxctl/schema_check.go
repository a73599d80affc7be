package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
)

// schemaFlags are what check and apply compare the table with.
type schemaFlags struct {
	tableTypes
	BlockSize int64 `env:"-" default:"50" placeholder:"N" help:"Ids that a writer takes with one value of the sequence: Hibernate's allocationSize. Default 50."`
	Scan      bool  `env:"-" help:"Count unknown values of status in a table of more than a million rows too, which reads all of it."`
}

func (f schemaFlags) schema(a *app) (s maintenance.Schema, closeDB func(), err error) {
	if f.BlockSize < 1 {
		return s, nil, usageError{fmt.Errorf("--block-size is %d, it must be 1 or more", f.BlockSize)}
	}
	types := f.options(a)
	if err := types.Validate(); err != nil {
		return s, nil, usageError{err}
	}
	target, closeDB, err := a.target()
	return maintenance.Schema{Target: target, Types: types, BlockSize: f.BlockSize, ScanStatus: f.Scan}, closeDB, err
}

type schemaCheckCmd struct{ schemaFlags }

// Run compares the table with what worker and writers need.
func (c *schemaCheckCmd) Run(ctx context.Context, a *app) error {
	schema, closeDB, err := c.schema(a)
	if err != nil {
		return err
	}
	defer closeDB()
	report, err := schema.Check(ctx)
	if err != nil {
		return err
	}
	if err := a.result(report, func(out io.Writer) error { return writeReport(out, report) }); err != nil {
		return err
	}
	if report.Must > 0 {
		return errFound
	}
	return nil
}

func writeReport(out io.Writer, r maintenance.SchemaReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, on %s\n", r.Table, quantity.Of(r.Rows, "row"), r.Edition)
	writeFindings(&b, r.Findings)
	if len(r.Findings) == 0 {
		b.WriteString("\nNothing to mend.\n")
	} else {
		fmt.Fprintf(&b, "\n%d must be mended, %d should.\n", r.Must, r.Should)
	}
	writeNotes(&b, r.Notes)
	_, err := io.WriteString(out, b.String())
	return err
}

func writeFindings(b *strings.Builder, findings []sqlserver.Finding) {
	for _, f := range findings {
		fmt.Fprintf(b, "\n%-6s  %s\n        %s.\n", strings.ToUpper(string(f.Severity)), f.Object, f.Problem)
		if f.Advice != "" {
			fmt.Fprintf(b, "        %s.\n", f.Advice)
		}
		writeSQL(b, f.SQL)
	}
}

func writeSQL(b *strings.Builder, sql string) {
	if sql = strings.TrimSpace(sql); sql == "" {
		return
	}
	for line := range strings.SplitSeq(sql, "\n") {
		fmt.Fprintf(b, "          %s\n", line)
	}
}

type schemaApplyCmd struct {
	schemaFlags
	Execute bool `env:"-" help:"Do it. Without it only the plan is shown."`
}

// Run adds what is missing.
func (c *schemaApplyCmd) Run(ctx context.Context, a *app) error {
	schema, closeDB, err := c.schema(a)
	if err != nil {
		return err
	}
	defer closeDB()
	if !c.Execute {
		plan, err := schema.Plan(ctx)
		if err != nil {
			return err
		}
		if err := a.result(plan, func(out io.Writer) error { return writeChange(out, plan) }); err != nil {
			return err
		}
		if plan.Must > 0 {
			return errFound
		}
		return nil
	}
	report, done := a.progress()
	schema.Progress = report
	change, failed := schema.Apply(ctx)
	done()
	refused := refusal(failed)
	if failed != nil && len(change.Steps) == 0 && (refused == "" || !a.json) {
		return failed
	}
	printed := struct {
		maintenance.SchemaChange
		Refused string `json:"refused,omitempty"`
	}{change, refused}
	// What was done is said, whatever came after it.
	err = a.result(printed, func(out io.Writer) error { return writeChange(out, change) })
	switch {
	case failed != nil:
		return failed
	case err == nil && change.Must > 0:
		return errFound
	}
	return err
}

func writeChange(out io.Writer, c maintenance.SchemaChange) error {
	var b strings.Builder
	switch {
	case len(c.Steps) == 0:
		fmt.Fprintf(&b, "%s: nothing is missing.\n", c.Table)
	case c.Executed:
		fmt.Fprintf(&b, "%s: what was missing\n", c.Table)
	default:
		fmt.Fprintf(&b, "%s: what --execute would add\n", c.Table)
	}
	for _, s := range c.Steps {
		state := ""
		switch {
		case s.Done:
			state = "  added"
		case c.Executed:
			state = "  NOT added"
		}
		fmt.Fprintf(&b, "\n%s%s\n", s.Object, state)
		if s.Advice != "" {
			fmt.Fprintf(&b, "        %s.\n", s.Advice)
		}
		writeSQL(&b, s.SQL)
	}
	if len(c.Left) > 0 {
		b.WriteString("\nLeft to you:\n")
		writeFindings(&b, c.Left)
	}
	writeNotes(&b, c.Notes)
	_, err := io.WriteString(out, b.String())
	return err
}
