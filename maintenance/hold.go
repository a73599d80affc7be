package maintenance

import (
	"context"
	"database/sql"
)

// Hold is what sqlserver.NewDedicated runs on a new connection so that one task
// of that name at a time works on the outbox. While another session is at it, it
// is a Refusal.
func (t Target) Hold(task string) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, conn *sql.Conn) error { return t.takeAppLock(ctx, conn, task) }
}
