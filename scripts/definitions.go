package scripts

import (
	"fmt"
	"regexp"
	"strings"
)

// Definitions are the parts of 001_outbox.sql, for programs that compare a table
// with it and add what is missing. Each batch may run again.
type Definitions struct {
	Sequence                            string
	Events, Receipts, Workers, Controls TableDefinition
	ClaimIndex, RetryIndex              string
}

// TableDefinition is one table of the script.
type TableDefinition struct {
	// Create is the batch that makes the table where it is missing.
	Create  string
	Columns []ColumnDefinition
}

// ColumnDefinition is one line of a CREATE TABLE.
type ColumnDefinition struct {
	Name string
	// Definition is what ALTER TABLE … ADD takes: name, type, nullability, and
	// the default with its name.
	Definition string
}

// Define takes 001_outbox.sql apart.
func Define(o Options) (Definitions, error) {
	var d Definitions
	batches := Batches(outbox)
	table := func(name string) (t TableDefinition, err error) {
		raw, err := batchThat(batches, "CREATE TABLE [dbo].["+name+"] (")
		if err != nil {
			return t, err
		}
		if t.Create, err = o.render(raw); err != nil {
			return t, err
		}
		for line := range strings.Lines(raw) {
			c, ok, err := o.column(line)
			if err != nil {
				return t, err
			}
			if ok {
				t.Columns = append(t.Columns, c)
			}
		}
		return t, nil
	}
	batch := func(mark string) (string, error) {
		raw, err := batchThat(batches, mark)
		if err != nil {
			return "", err
		}
		return o.render(raw)
	}
	var err error
	for _, part := range []struct {
		table *TableDefinition
		batch *string
		mark  string
	}{
		{table: &d.Events, mark: "outbox_event"},
		{table: &d.Receipts, mark: "outbox_event_claim"},
		{table: &d.Workers, mark: "outbox_event_worker"},
		{table: &d.Controls, mark: "outbox_event_control"},
		{batch: &d.Sequence, mark: "CREATE SEQUENCE "},
		{batch: &d.ClaimIndex, mark: "CREATE NONCLUSTERED INDEX [IX_outbox_claim]"},
		{batch: &d.RetryIndex, mark: "CREATE NONCLUSTERED INDEX [IX_outbox_retry]"},
	} {
		if part.table != nil {
			*part.table, err = table(part.mark)
		} else {
			*part.batch, err = batch(part.mark)
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// batchThat finds the batch of the script that holds mark, without the comment
// in front of it.
func batchThat(batches []string, mark string) (string, error) {
	for _, b := range batches {
		if !strings.Contains(b, mark) {
			continue
		}
		b = strings.TrimSpace(b)
		for strings.HasPrefix(b, "--") {
			_, b, _ = strings.Cut(b, "\n")
			b = strings.TrimSpace(b)
		}
		return b, nil
	}
	return "", fmt.Errorf("001_outbox.sql has no batch with %q", mark)
}

var (
	columnLine = regexp.MustCompile(`^        ([a-z_]+) +(.+?),?\n$`)
	marker     = regexp.MustCompile(`/\*\w+\*/ `)
	blanks     = regexp.MustCompile(` {2,}`)
)

// column is the column of a line, where it has one.
func (o Options) column(line string) (c ColumnDefinition, ok bool, err error) {
	parts := columnLine.FindStringSubmatch(line)
	if parts == nil {
		return c, false, nil
	}
	rest, err := o.render(blanks.ReplaceAllString(parts[2], " "))
	if err != nil {
		return c, false, err
	}
	return ColumnDefinition{Name: parts[1], Definition: parts[1] + " " + marker.ReplaceAllString(rest, "")}, true, nil
}
