package main

import (
	"io"
	"strings"

	"azsqloutbox/scripts"
)

type schemaCmd struct {
	Print schemaPrintCmd `cmd:"" help:"Print the script that makes the table, for a DBA."`
	Check schemaCheckCmd `cmd:"" help:"Find what is missing, breaks the worker, or costs too much. Exits 3 when something must be mended."`
	Apply schemaApplyCmd `cmd:"" help:"Add what is missing, and nothing else: show the plan, or do it with --execute. Exits 3 when something that must be mended is left."`
}

// tableTypes are what of the table is open to choice.
type tableTypes struct {
	Payload       string `env:"-" placeholder:"VARCHAR(2000)" help:"Type of payload: VARCHAR(n), NVARCHAR(n) or either with MAX; VARCHAR(2000) without it. headers are VARCHAR(2000), or NVARCHAR(2000) beside a Unicode payload."`
	Collation     string `env:"-" default:"Latin1_General_100_BIN2_UTF8" help:"Collation of payload and headers; database_default takes the database's."`
	EventType     string `env:"-" default:"VARCHAR(100)" help:"Type of event_type: VARCHAR(n), NVARCHAR(n), SMALLINT, INT or BIGINT."`
	Aggregate     string `env:"-" default:"VARCHAR(100)" help:"Type of aggregate_type and aggregate_id: VARCHAR(n) or NVARCHAR(n)."`
	TextCollation string `env:"-" default:"database_default" help:"Collation of the two."`
	Slim          bool   `env:"-" help:"Leave the INCLUDE of the claim index out: about half the log an event costs, for one key lookup."`
}

func (t tableTypes) options(a *app) scripts.Options {
	return scripts.Options{
		Schema: a.database.Schema, Table: a.database.Table,
		ClaimIndex: a.database.ClaimIndex, RetryIndex: a.database.RetryIndex,
		EventType: strings.ToUpper(t.EventType), Aggregate: strings.ToUpper(t.Aggregate), TextCollation: t.TextCollation,
		Payload: strings.ToUpper(t.Payload), Collation: t.Collation, SlimClaimIndex: t.Slim,
	}
}

type schemaPrintCmd struct {
	tableTypes
	Enqueue bool `env:"-" help:"Print the procedure for writers instead, scripts/010_enqueue.sql."`
}

type schemaPrintResult struct {
	Script string `json:"script"`
}

// Run prints the script.
func (c *schemaPrintCmd) Run(a *app) error {
	if err := a.database.CheckNames(); err != nil {
		return usageError{err}
	}
	render := scripts.Outbox
	if c.Enqueue {
		render = scripts.Enqueue
	}
	text, err := render(c.options(a))
	if err != nil {
		return usageError{err}
	}
	return a.result(schemaPrintResult{text}, func(out io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	})
}
