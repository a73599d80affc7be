package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
)

// app is what every command gets: where it writes, and the database.
type app struct {
	out, err io.Writer
	json     bool
	database service.DatabaseSettings
}

// target opens the database, without connecting, for a task. Nothing answers
// for hours while an index is rebuilt, so the statements of maintenance may take
// long.
func (a *app) target() (t maintenance.Target, closeDB func(), err error) {
	if err := a.database.Check(); err != nil {
		return t, nil, usageError{err}
	}
	db, err := sqlserver.Open(a.database.DSN, sqlserver.Options{AppName: "outboxctl", LongStatements: true})
	if err != nil {
		return t, nil, usageError{fmt.Errorf("--sql-dsn: %w", err)}
	}
	t = maintenance.Target{DB: db, Names: a.database.Names(), Logger: a.logger()}
	return t, func() { _ = db.Close() }, nil
}

// refusal is what an error that refuses says, for the JSON; empty for others.
func refusal(err error) string {
	var r *maintenance.Refusal
	if errors.As(err, &r) || errors.Is(err, maintenance.ErrSetting) {
		return said(err)
	}
	return ""
}

// result prints what a command has to say: as JSON, or by its text.
func (a *app) result(v any, text func(io.Writer) error) error {
	if !a.json {
		return text(a.out)
	}
	out := json.NewEncoder(a.out)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
