package sqlserver

import (
	"context"
	"database/sql"
)

// Use runs fn on one of the Store's sessions, under its watchdog.
func (s *Store) Use(ctx context.Context, fn func(*sql.Conn) error) error {
	return s.sessions.use(ctx, fn)
}
