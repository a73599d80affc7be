package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"azsqloutbox/worker"
)

// The pattern of section 3 of the Azure SQL article, which locks, marks and
// returns in one statement. On SQL Server it reads and writes status in one
// index, and pays a spool for that; the embedded engine has no spool, so what
// this costs a real server shows there only (outboxctl bench claim).
const outputClaimSQL = `WITH /* outbox:BenchOutputClaim */ batch AS (
    SELECT TOP (@batch) e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.created_at, e.status, e.processed_at
    FROM   dbo.outbox_event AS e WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE  e.event_type = CAST(@event_type AS VARCHAR(100))
    AND    e.status = 0
    AND    e.id > CAST(@after AS BIGINT)
    ORDER BY e.id
)
UPDATE batch
SET    status = 1, processed_at = SYSUTCDATETIME()
OUTPUT inserted.id, inserted.aggregate_type, inserted.aggregate_id, inserted.event_type, CONVERT(VARBINARY(MAX), inserted.payload), inserted.created_at;`

// benchOutput is benchSerial with its claim in one statement.
func benchOutput(ctx context.Context, t *benchTask) error {
	return claimAndPublish(ctx, t, func(tx *sql.Tx, after int64) ([]worker.Event, error) {
		events, err := readEvents(tx.QueryContext(ctx, outputClaimSQL,
			sql.Named("batch", serialBatch), sql.Named("event_type", benchTypeParam), sql.Named("after", after)))
		if err != nil {
			return nil, fmt.Errorf("update with output: %w", err)
		}
		// OUTPUT promises no order (sql-docs, output-clause-transact-sql.md).
		slices.SortFunc(events, func(a, b worker.Event) int { return cmp.Compare(a.ID, b.ID) })
		return events, nil
	})
}
