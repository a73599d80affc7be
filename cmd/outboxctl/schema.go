package main

import (
	"fmt"

	"azsqloutbox/scripts"
)

type schemaCmd struct {
	Print schemaPrintCmd `cmd:"" help:"Print the script that makes the table, for a DBA."`
}

type schemaPrintCmd struct{}

// Run prints the script.
func (c *schemaPrintCmd) Run(a *app) error {
	if err := a.database.CheckNames(); err != nil {
		return usageError{err}
	}
	text, err := scripts.Outbox(scripts.Options{
		Schema: a.database.Schema, Table: a.database.Table,
		ClaimIndex: a.database.ClaimIndex, RetryIndex: a.database.RetryIndex,
	})
	if err != nil {
		return usageError{err}
	}
	_, err = fmt.Fprint(a.out, text)
	return err
}
