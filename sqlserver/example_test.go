package sqlserver_test

import (
	"context"
	"database/sql"
	"fmt"

	"azsqloutbox/sqlserver"
)

// A writer makes its Writer once, and enqueues in the transaction that holds
// the business data.
func ExampleWriter() {
	writer, err := sqlserver.NewWriter(sqlserver.Names{})
	if err != nil {
		panic(err)
	}
	_ = func(ctx context.Context, db *sql.DB, orderID int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after the commit
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = 1 WHERE id = @id", sql.Named("id", orderID)); err != nil {
			return err
		}
		err = writer.Enqueue(ctx, tx, sqlserver.OutboxEvent{
			AggregateType: "order",
			AggregateID:   fmt.Sprint(orderID),
			EventType:     "order.paid",
			Payload:       fmt.Appendf(nil, `{"order":%d}`, orderID),
			Headers:       map[string]any{"tenant": "north"},
		})
		if err != nil {
			return err
		}
		return tx.Commit()
	}
}
