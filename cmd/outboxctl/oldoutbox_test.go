package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/sqlserver"
)

// An outbox as the Azure SQL article had it before: a Unicode payload, an enum's
// ordinal as event_type, an index that begins with status, a sequence for
// pooled-lo blocks of 50, and nothing of what a worker needs beside the rows.
// Some were sent long ago, and three failed for good.
const oldOutboxSQL = `
CREATE SEQUENCE dbo.event_seq AS BIGINT START WITH 10000001 INCREMENT BY 50 CACHE 100;
CREATE TABLE dbo.event (
    id BIGINT NOT NULL PRIMARY KEY,
    aggregate_type VARCHAR(100) NOT NULL,
    aggregate_id VARCHAR(100) NOT NULL,
    event_type INT NOT NULL,
    payload NVARCHAR(2000) NOT NULL,
    status TINYINT NOT NULL,
    created_at DATETIME2(7) NOT NULL,
    processed_at DATETIME2(7) NULL,
    retry_count INT NOT NULL);
CREATE NONCLUSTERED INDEX IX_Outbox_Status_Event_Type_Covering ON dbo.event (status, event_type, id)
    INCLUDE (aggregate_id, aggregate_type, payload, created_at, processed_at, retry_count);
DECLARE @old DATETIME2(7) = DATEADD(DAY, -5, SYSUTCDATETIME());
INSERT INTO dbo.event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at, retry_count) VALUES
(1, 'order', '1', 0, N'{"n":-1}', 1, @old, @old, 0),
(2, 'order', '1', 0, N'{"n":-2}', 1, @old, @old, 0),
(3, 'order', '1', 0, N'{"n":-3}', 2, @old, @old, 3),
(4, 'order', '1', 1, N'{"n":-4}', 2, @old, @old, 3),
(5, 'order', '1', 1, N'{"n":-5}', 2, @old, @old, 3);`

// oldWorker flips rows itself and publishes afterwards: the article's, or with
// locks off one that was only ever meant to run alone.
type oldWorker struct {
	db     *sql.DB
	sender *azservicebus.Sender
	locks  bool
	// retries: what failed goes back to PENDING, three times.
	retries atomic.Bool

	cycles, failed int
	// unsure are sends whose outcome it was not told.
	unsure int
}

// again says that the transaction was a deadlock's victim or waited for too long.
func again(err error) bool {
	return sqlserver.ClassOf(sqlserver.Classify("old", err)) == sqlserver.Contention
}

func (o *oldWorker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		moved := 0
		for eventType := range 2 {
			n, err := o.cycle(context.WithoutCancel(ctx), eventType)
			if err != nil {
				return err
			}
			moved += n
		}
		if moved == 0 {
			time.Sleep(10 * time.Millisecond) // its poll
		}
	}
	return nil
}

func (o *oldWorker) cycle(ctx context.Context, eventType int) (int, error) {
	if o.retries.Load() {
		if _, err := o.db.ExecContext(ctx, `UPDATE dbo.event SET status = 0, retry_count = retry_count + 1 WHERE status = 2 AND retry_count < 3`); err != nil && !again(err) {
			return 0, err
		}
	}
	batch, ids, err := o.claim(ctx, eventType)
	if err != nil || len(ids) == 0 {
		if again(err) {
			return 0, nil // its transaction was rolled back: nothing is claimed
		}
		return 0, err
	}
	o.cycles++
	sendErr := errors.New("as the test says")
	if o.cycles%5 != 0 {
		if sendErr = o.sender.SendMessageBatch(ctx, batch, nil); sendErr != nil {
			o.unsure++
		}
	}
	if sendErr == nil {
		return len(ids), nil
	}
	o.failed += len(ids)
	for { // its markFailed
		_, err := o.db.ExecContext(ctx, `UPDATE dbo.event SET status = 2 WHERE id IN (`+strings.Join(ids, ", ")+`)`)
		if !again(err) {
			return len(ids), err
		}
	}
}

// claim is its first transaction.
func (o *oldWorker) claim(ctx context.Context, eventType int) (*azservicebus.MessageBatch, []string, error) {
	batch, err := o.sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	hints := ""
	if o.locks {
		hints = "WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)"
	}
	tx, err := o.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(ctx, `SELECT TOP (100) id, payload FROM dbo.event `+hints+` WHERE event_type = @type AND status = 0 ORDER BY id`, sql.Named("type", eventType))
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for rows.Next() {
		var id int64
		var payload string
		if err := rows.Scan(&id, &payload); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
		text := strconv.FormatInt(id, 10)
		ids = append(ids, text)
		if err := batch.AddMessage(&azservicebus.Message{MessageID: &text, Body: []byte(payload)}, nil); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, nil, err
	}
	for _, id := range ids { // as an ORM does it, by primary key and without a look at status
		if _, err := tx.ExecContext(ctx, `UPDATE dbo.event SET status = 1, processed_at = SYSUTCDATETIME() WHERE id = @id`, sql.Named("id", id)); err != nil {
			return nil, nil, err
		}
	}
	return batch, ids, tx.Commit()
}

// application writes events as an ORM with pooled-lo blocks does.
type application struct {
	db   *sql.DB
	mu   sync.Mutex
	next int
}

func (a *application) write(ctx context.Context) error {
	var id, left int64
	for ctx.Err() == nil {
		// A transaction that has begun is not stopped: its end would be unknown.
		ctx := context.WithoutCancel(ctx)
		if left < 10 {
			if err := a.db.QueryRowContext(ctx, `SELECT NEXT VALUE FOR dbo.event_seq AS id`).Scan(&id); err != nil {
				return err
			}
			left = 50
		}
		a.mu.Lock()
		first := a.next
		a.next += 10
		a.mu.Unlock()
		if err := a.insert(ctx, id, first); err != nil {
			return err
		}
		id, left = id+10, left-10
		time.Sleep(2 * time.Millisecond) // its rate
	}
	return nil
}

// insert writes ten events in a transaction, until it is committed.
func (a *application) insert(ctx context.Context, id int64, first int) error {
	for {
		err := func() error {
			tx, err := a.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			for k := range 10 {
				if _, err := tx.ExecContext(ctx, `INSERT INTO dbo.event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, retry_count)
VALUES (@id, 'order', '1', @type, @payload, 0, SYSUTCDATETIME(), 0)`,
					sql.Named("id", id+int64(k)), sql.Named("type", k%2), sql.Named("payload", fmt.Sprintf(`{"n":%d}`, first+k))); err != nil {
					return err
				}
			}
			return tx.Commit()
		}()
		if !again(err) {
			return err
		}
	}
}

func (a *application) committed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next // write ends with whole transactions, so this is exact once it has ended
}
