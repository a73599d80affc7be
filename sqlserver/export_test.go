package sqlserver

import (
	"context"
	"database/sql"
)

// Use runs fn on one of the Store's sessions, under its watchdog.
func (s *Store) Use(ctx context.Context, fn func(*sql.Conn) error) error {
	return s.sessions.use(ctx, fn)
}

// EnqueueAlone is Enqueue without the rollback that follows its errors: what
// the statement does to the transaction by itself.
func (w *Writer) EnqueueAlone(ctx context.Context, tx *sql.Tx, events ...OutboxEvent) error {
	return w.enqueue(ctx, tx, events)
}
