// Package scripts holds the numbered SQL files of the outbox, for programs that
// print or apply them. The files are what a DBA reads and runs with sqlcmd; what
// is rendered here for other names and types differs from them in nothing else.
package scripts

import (
	_ "embed"

	"github.com/microsoft/go-mssqldb/batch"
)

//go:embed 001_outbox.sql
var outbox string

//go:embed 010_enqueue.sql
var enqueue string

// Outbox is 001_outbox.sql: the sequence, the tables and their indexes.
func Outbox(o Options) (string, error) { return o.render(outbox) }

// Enqueue is 010_enqueue.sql: the stored procedure for writers.
func Enqueue(o Options) (string, error) { return o.render(enqueue) }

// Batches cuts a script at its GO lines, which are for sqlcmd and not for the
// server.
func Batches(script string) []string { return batch.Split(script, "GO") }
