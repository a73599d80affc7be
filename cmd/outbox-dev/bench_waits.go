package main

import (
	"context"
	"fmt"
)

// benchLockWaits are the waits for locks of any kind.
type benchLockWaits struct{ Count, Milliseconds int64 }

// LCK_M_… are the waits for locks (sql-docs,
// sys-dm-os-wait-stats-transact-sql.md); the view of one database has the same
// columns (sys-dm-db-wait-stats-azure-sql-database.md).
const benchLockWaitsSQL = `SELECT /* outbox:BenchLockWaits */ ISNULL(SUM(w.waiting_tasks_count), 0), ISNULL(SUM(w.wait_time_ms), 0)
FROM   sys.dm_db_wait_stats AS w
WHERE  w.wait_type LIKE 'LCK[_]M[_]%'
OPTION (RECOMPILE);`

// lockWaits counts since the engine was started, of all sessions.
func (t benchTable) lockWaits(ctx context.Context) (w benchLockWaits, err error) {
	if err = t.QueryRowContext(ctx, benchLockWaitsSQL).Scan(&w.Count, &w.Milliseconds); err != nil {
		err = fmt.Errorf("read the waits for locks: %w", err)
	}
	return w, err
}
