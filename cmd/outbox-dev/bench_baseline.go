package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/worker"
)

// baselineBatch is the throughput article's.
const baselineBatch = 1000

// The article reads whatever is not processed, oldest first, all columns and no
// index made for it. Here ids are in the order of time, and ordering by them
// spares it the sort of the whole backlog: its figures are better than they
// would be.
const baselineSelectSQL = `SELECT /* outbox:BenchBaselineSelect */ TOP (@batch) e.id, e.aggregate_type, e.aggregate_id, e.event_type, CONVERT(VARBINARY(MAX), e.payload) AS payload, e.created_at
FROM   dbo.outbox_event AS e
WHERE  e.processed_at IS NULL
ORDER BY e.id;`

const baselineUpdateSQL = `UPDATE /* outbox:BenchBaselineUpdate */ dbo.outbox_event
SET    status = 1, processed_at = SYSUTCDATETIME()
WHERE  id = @id;`

// benchBaseline is the throughput article's start: in one transaction one
// select, and then for each event one send, which is waited for, and one update.
func benchBaseline(ctx context.Context, t *benchTask) error {
	return t.inTransactions(ctx, func(tx *sql.Tx, sender *azservicebus.Sender) (moved int, err error) {
		var events []worker.Event
		err = t.timed(&t.took.claim, func() (err error) {
			events, err = readEvents(tx.QueryContext(ctx, baselineSelectSQL, sql.Named("batch", baselineBatch)))
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("select: %w", err)
		}
		for _, e := range events {
			if t.over() {
				break
			}
			if err := t.timed(&t.took.publish, func() error { return sender.SendMessage(ctx, benchMessage(e), nil) }); err != nil {
				return 0, fmt.Errorf("send: %w", err)
			}
			if err := t.timed(&t.took.settle, func() error {
				_, err := tx.ExecContext(ctx, baselineUpdateSQL, sql.Named("id", e.ID))
				return err
			}); err != nil {
				return 0, fmt.Errorf("update: %w", err)
			}
			moved++
		}
		return moved, nil
	})
}
