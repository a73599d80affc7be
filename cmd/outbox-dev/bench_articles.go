package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus"
	"azsqloutbox/worker"
)

// What the strategies of the two articles have in common. Their statements are
// theirs; the rows, the driver, the messages' properties and the session are
// the pipeline's, so that what differs is the strategy.

const benchSessionSQL = `/* outbox:BenchSession */
SET ARITHABORT ON;
SET XACT_ABORT ON;
SET NOCOUNT ON;`

// connect takes one connection out of the pool for good.
func (t *benchTask) connect(ctx context.Context) (*sql.Conn, error) {
	conn, err := t.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := conn.ExecContext(ctx, benchSessionSQL); err != nil {
		return nil, errors.Join(fmt.Errorf("set the session up: %w", err), conn.Close())
	}
	return conn, nil
}

// open is what each worker of an article has: a connection and a sender.
func (t *benchTask) open(ctx context.Context) (*sql.Conn, *azservicebus.Sender, func(), error) {
	sender, closeSender, err := t.openSender()
	if err != nil {
		return nil, nil, nil, err
	}
	conn, err := t.connect(ctx)
	if err != nil {
		closeSender()
		return nil, nil, nil, err
	}
	return conn, sender, func() {
		_ = conn.Close()
		closeSender()
	}, nil
}

// inTransactions runs move in one transaction after the other, until the time is
// over or one has moved nothing.
func (t *benchTask) inTransactions(ctx context.Context, move func(*sql.Tx, *azservicebus.Sender) (moved int, err error)) error {
	conn, sender, closeBoth, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer closeBoth()
	for !t.over() {
		moved := 0
		err := transaction(ctx, conn, func(tx *sql.Tx) (err error) {
			moved, err = move(tx, sender)
			return err
		})
		if err != nil || moved == 0 {
			return err
		}
		t.done(moved)
	}
	return nil
}

// transaction runs fn in one; READPAST needs READ COMMITTED.
func transaction(ctx context.Context, conn *sql.Conn, fn func(*sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// readEvents reads id, aggregate_type, aggregate_id, event_type, payload and
// created_at.
func readEvents(rows *sql.Rows, err error) ([]worker.Event, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []worker.Event
	for rows.Next() {
		var e worker.Event
		if err := rows.Scan(&e.ID, &e.AggregateType, &e.AggregateID, &e.Type, &e.Payload, &e.CreatedAt); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

var jsonContent = "application/json"

// benchMessage has what the pipeline's messages have.
func benchMessage(e worker.Event) *azservicebus.Message {
	id := servicebus.MessageID(source, e.ID, e.CreatedAt)
	return &azservicebus.Message{
		MessageID: &id, Subject: &e.Type, ContentType: &jsonContent, Body: e.Payload,
		ApplicationProperties: map[string]any{
			servicebus.PropertyEventID:       e.ID,
			servicebus.PropertyEventType:     e.Type,
			servicebus.PropertyAggregateType: e.AggregateType,
			servicebus.PropertyAggregateID:   e.AggregateID,
			servicebus.PropertyCreatedAt:     e.CreatedAt,
		},
	}
}

// batches packs events up to the link's limit, as the SDK's own examples do.
func batches(ctx context.Context, sender *azservicebus.Sender, events []worker.Event) ([]*azservicebus.MessageBatch, error) {
	var all []*azservicebus.MessageBatch
	for i := 0; i < len(events); {
		batch, err := sender.NewMessageBatch(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("make a batch: %w", err)
		}
		first := i
		for ; i < len(events); i++ {
			err := batch.AddMessage(benchMessage(events[i]), nil)
			if errors.Is(err, azservicebus.ErrMessageTooLarge) && i > first {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("add event %d to a batch: %w", events[i].ID, err)
			}
		}
		all = append(all, batch)
	}
	return all, nil
}
