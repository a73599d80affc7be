package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strconv"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

// benchType is the event type of every event: claims of one type meet each
// other most.
const benchType = "order-placed"

// benchTable is the parent's view of the table: it fills and counts.
type benchTable struct{ *sql.DB }

func openBenchTable(dsn string) (benchTable, error) {
	db, err := sqlserver.Open(dsn, sqlserver.Options{AppName: "outbox-dev bench"})
	return benchTable{db}, err
}

// fillStep keeps one transaction's log and locks within what a database bears.
const fillStep = 50_000

// GENERATE_SERIES needs compatibility level 160 (sql-docs,
// t-sql/functions/generate-series-transact-sql.md).
const fillBenchSQL = `INSERT /* outbox:BenchFill */ INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)
SELECT g.value, 'order', CONCAT('customer-', g.value / 3), CAST(@event_type AS VARCHAR(100)),
       CONCAT('{"n":', g.value, ',"data":"', SUBSTRING(CAST(@filler AS VARCHAR(2000)), 1, @payload - 16 - LEN(CAST(g.value AS VARCHAR(20)))), '"}')
FROM   GENERATE_SERIES(CAST(@first AS BIGINT), CAST(@last AS BIGINT)) AS g;`

const fillProcessedBenchSQL = `INSERT /* outbox:BenchFillProcessed */ INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, processed_at)
SELECT g.value, 'order', CONCAT('customer-', g.value / 3), CAST(@event_type AS VARCHAR(100)),
       CONCAT('{"n":', g.value, ',"data":"', SUBSTRING(CAST(@filler AS VARCHAR(2000)), 1, @payload - 16 - LEN(CAST(g.value AS VARCHAR(20)))), '"}'),
       1, SYSUTCDATETIME()
FROM   GENERATE_SERIES(CAST(@first AS BIGINT), CAST(@last AS BIGINT)) AS g;`

// fill inserts the pending events first to last, of exactly payload bytes each;
// benchPayload says what is in them.
func (t benchTable) fill(ctx context.Context, first, last, payload int) error {
	return t.insert(ctx, fillBenchSQL, benchType, first, last, payload)
}

// fillProcessed inserts the events 1 to n as PROCESSED ones.
func (t benchTable) fillProcessed(ctx context.Context, n, payload int) error {
	return t.insert(ctx, fillProcessedBenchSQL, benchType, 1, n, payload)
}

// insert runs one of the statements above step by step.
func (t benchTable) insert(ctx context.Context, text, eventType string, first, last, payload int) error {
	for ; first <= last; first += fillStep {
		end := min(first+fillStep-1, last)
		_, err := t.ExecContext(ctx, text,
			sql.Named("event_type", mssql.VarCharMax(eventType)), sql.Named("filler", mssql.VarCharMax(filler[:2000])),
			sql.Named("payload", payload), sql.Named("first", first), sql.Named("last", end))
		if err != nil {
			return fmt.Errorf("insert the events %d to %d: %w", first, end, err)
		}
	}
	return nil
}

const pendingBenchSQL = `SELECT /* outbox:BenchPending */ COUNT(*)
FROM   (SELECT TOP (1) e.id
        FROM   dbo.outbox_event AS e
        WHERE  e.event_type = CAST(@event_type AS VARCHAR(100))
        AND    e.status = 0) AS one;`

// pending says whether an event of a type is.
func (t benchTable) pending(ctx context.Context, eventType string) (bool, error) {
	var n int
	if err := t.QueryRowContext(ctx, pendingBenchSQL, sql.Named("event_type", mssql.VarCharMax(eventType))).Scan(&n); err != nil {
		return false, fmt.Errorf("look for pending events: %w", err)
	}
	return n > 0, nil
}

const countBenchSQL = `SELECT /* outbox:BenchCount */ (SELECT COUNT(*) FROM dbo.outbox_event WHERE status = 1),
       (SELECT COUNT(*) FROM dbo.outbox_event_claim)
OPTION (RECOMPILE);`

// count returns the PROCESSED events and the receipts that are left.
func (t benchTable) count(ctx context.Context) (processed, receipts int64, err error) {
	if err = t.QueryRowContext(ctx, countBenchSQL).Scan(&processed, &receipts); err != nil {
		err = fmt.Errorf("count what was processed: %w", err)
	}
	return processed, receipts, err
}

// benchPayload is what fill gives event n, appended to b.
func benchPayload(b []byte, n int64, payload int) []byte {
	from := len(b)
	b = append(b, payloadHead...)
	b = strconv.AppendInt(b, n, 10)
	b = append(b, `,"data":"`...)
	b = append(b, filler[:payload-(len(b)-from)-len(payloadTail)]...)
	return append(b, payloadTail...)
}

// goodBenchBody says whether a body is that of one of the events.
func goodBenchBody(body []byte, payload int) bool {
	n, err := number(body)
	return err == nil && bytes.Equal(body, benchPayload(nil, int64(n), payload))
}
