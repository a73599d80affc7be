// Package scripts holds the numbered SQL files of the outbox, for programs that
// print or apply them. The files are what a DBA reads and runs with sqlcmd; what
// is rendered here for other names and types differs from them in nothing else.
package scripts

import (
	_ "embed"
	"strings"
)

//go:embed 001_outbox.sql
var outbox string

//go:embed 010_enqueue.sql
var enqueue string

//go:embed 090_grants.sql
var grants string

//go:embed 091_job_grants.sql
var jobGrants string

// Outbox is 001_outbox.sql: the sequence, the tables and their indexes.
func Outbox(o Options) (string, error) { return o.render(outbox) }

// Enqueue is 010_enqueue.sql: the stored procedure for writers.
func Enqueue(o Options) (string, error) { return o.render(enqueue) }

// Grants is 090_grants.sql: the role of a worker with the rights that it needs.
func Grants(o Options) (string, error) { return o.render(grants) }

// JobGrants is 091_job_grants.sql: the role of the jobs that purge and rebuild.
func JobGrants(o Options) (string, error) { return o.render(jobGrants) }

// Batches cuts a script at its GO lines, which are for sqlcmd and not for the
// server. It takes every line that is GO alone, as these files never have one
// inside a string; the driver's own splitter would take a quote inside a
// bracketed name for the start of one.
func Batches(script string) []string {
	var batches []string
	var b strings.Builder
	for line := range strings.Lines(script) {
		if strings.TrimSpace(line) != "GO" {
			b.WriteString(line)
			continue
		}
		batches = append(batches, b.String())
		b.Reset()
	}
	if strings.TrimSpace(b.String()) != "" {
		batches = append(batches, b.String())
	}
	return batches
}
