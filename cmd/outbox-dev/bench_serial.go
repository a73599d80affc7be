package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/worker"
)

// The Azure SQL article's worker: a hundred events a claim, twenty claims a
// cycle, updates by primary key in JDBC batches of fifty.
const (
	serialBatch     = 100
	serialRounds    = 20
	serialJDBCBatch = 50
)

var benchTypeParam = mssql.VarCharMax(benchType)

// What Hibernate makes of the article's query, with the literal that its
// section 4.2 is about, and the keyset of its section 1.
const serialSelectSQL = `SELECT /* outbox:BenchSerialSelect */ TOP (@batch) e.id, e.aggregate_type, e.aggregate_id, e.event_type, CONVERT(VARBINARY(MAX), e.payload) AS payload, e.created_at
FROM   dbo.outbox_event AS e WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  e.event_type = CAST(@event_type AS VARCHAR(100))
AND    e.status = 0
AND    e.id > CAST(@after AS BIGINT)
ORDER BY e.id;`

const serialUpdateSQL = `UPDATE /* outbox:BenchSerialUpdate */ dbo.outbox_event SET status = 1, processed_at = SYSUTCDATETIME() WHERE id = @p%d;
`

// serialUpdates are the texts of fifty updates or less: one request, as a JDBC
// batch is.
var serialUpdates = func() (texts [serialJDBCBatch + 1]string) {
	var b strings.Builder
	for n := 1; n <= serialJDBCBatch; n++ {
		fmt.Fprintf(&b, serialUpdateSQL, n)
		texts[n] = b.String()
	}
	return texts
}()

// benchSerial claims, commits, publishes, and then claims again. What it leaves
// PROCESSED when it dies between commit and publish never goes out; that is in
// the article, and what the pipeline's receipts are for.
func benchSerial(ctx context.Context, t *benchTask) error {
	return claimAndPublish(ctx, t, func(tx *sql.Tx, after int64) ([]worker.Event, error) {
		events, err := readEvents(tx.QueryContext(ctx, serialSelectSQL,
			sql.Named("batch", serialBatch), sql.Named("event_type", benchTypeParam), sql.Named("after", after)))
		if err != nil {
			return nil, fmt.Errorf("select: %w", err)
		}
		for part := range slices.Chunk(events, serialJDBCBatch) {
			ids := make([]any, len(part))
			for i := range part {
				ids[i] = part[i].ID
			}
			if _, err := tx.ExecContext(ctx, serialUpdates[len(part)], ids...); err != nil {
				return nil, fmt.Errorf("update: %w", err)
			}
		}
		return events, nil
	})
}

// claimAndPublish is the loop that serial and output share.
func claimAndPublish(ctx context.Context, t *benchTask, claim func(tx *sql.Tx, after int64) ([]worker.Event, error)) error {
	conn, sender, closeBoth, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer closeBoth()
	for {
		after, cycle := int64(0), 0
		for round := 0; round < serialRounds && !t.over(); round++ {
			var events []worker.Event
			from := time.Now()
			err := transaction(ctx, conn, func(tx *sql.Tx) (err error) {
				events, err = claim(tx, after)
				return err
			})
			if err != nil {
				return err
			}
			if len(events) == 0 {
				break
			}
			t.took.add(&t.took.claim, time.Since(from))
			if err := t.timed(&t.took.publish, func() error {
				all, err := batches(ctx, sender, events)
				for _, batch := range all {
					if err == nil {
						err = sender.SendMessageBatch(ctx, batch, nil)
					}
				}
				return err
			}); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
			t.done(len(events))
			after, cycle = events[len(events)-1].ID, cycle+len(events)
			if len(events) < serialBatch {
				break
			}
		}
		if cycle == 0 {
			return nil
		}
	}
}
