package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/sqlserver"
)

// writeCmd writes events by hand, to see what a worker makes of them.
type writeCmd struct {
	SQLDSN    string `name:"sql-dsn" required:"" placeholder:"DSN" help:"The database, as serve prints it."`
	Events    int    `env:"-" default:"1" placeholder:"N" help:"How many, all in one transaction. Default 1."`
	EventType string `env:"-" default:"order-placed" placeholder:"TYPE" help:"Their event type. Default order-placed."`
	Payload   string `env:"-" default:"{\"total\": 12.5}" placeholder:"TEXT" help:"Their payload. Default a small JSON object."`
}

// Validate is called by the parser.
func (c *writeCmd) Validate() error { return within("--events", c.Events, 1, 100_000) }

// Run writes them as a program would, and says so once they are committed.
func (c *writeCmd) Run(ctx context.Context, s streams) error {
	db, err := sqlserver.Open(c.SQLDSN, sqlserver.Options{AppName: "outbox-dev write"})
	if err != nil {
		return err
	}
	defer db.Close()
	writer, err := sqlserver.NewWriter(sqlserver.Names{})
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	events := make([]sqlserver.OutboxEvent, c.Events)
	for i := range events {
		events[i] = sqlserver.OutboxEvent{
			AggregateType: "order", AggregateID: strconv.Itoa(i + 1),
			EventType: c.EventType, Payload: []byte(c.Payload),
		}
	}
	if err := writer.Enqueue(ctx, tx, events...); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	_, err = fmt.Fprintf(s.out, "%s of type %s committed\n", quantity.Of(c.Events, "event"), c.EventType)
	return err
}
