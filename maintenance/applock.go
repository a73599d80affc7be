package maintenance

import (
	"context"
	"database/sql"
	"fmt"
)

// One task of a kind at a time on a table: two purges at once deadlock each
// other (CAP issue 1809). The lock is the session's, so that it ends with the
// connection whatever happens, and it fails by its return code, not by an error
// (sql-docs, sp-getapplock-transact-sql.md: 0 and 1 granted, -1 timeout, -2
// cancelled, -3 deadlock victim, -999 parameter or other call error). Any user
// of the database role named may take it; public is everybody. A second of
// waiting is for a session that has just ended: the server takes a moment to
// notice.
const takeAppLockSQL = `DECLARE @result INT;
EXEC @result = sys.sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 1000, @DbPrincipal = 'public';
SELECT /* outbox:TakeAppLock */ @result AS result;`

// takeAppLock takes the application lock of a task on the outbox for as long as
// the connection lives. It is a Refusal when another session has it.
func (t Target) takeAppLock(ctx context.Context, conn *sql.Conn, task string) error {
	resource := fmt.Sprintf("outbox:%s:%s", task, t.Events())
	// The name has room for 255 characters; two longest identifiers, quoted,
	// can be more, and the first ones tell them apart well enough.
	if runes := []rune(resource); len(runes) > 255 {
		resource = string(runes[:255])
	}
	var result int
	if err := conn.QueryRowContext(ctx, takeAppLockSQL, sql.Named("resource", resource)).Scan(&result); err != nil {
		return fmt.Errorf("take the application lock %s: %w", resource, err)
	}
	switch {
	case result >= 0:
		return nil
	case result == -1:
		return &Refusal{
			Task: task + " of " + t.Names.String(), Found: "another session is at it (it holds the application lock " + resource + ")",
			Remedy: "wait for it to end; sys.dm_tran_locks with resource_type APPLICATION shows the session",
		}
	default:
		return fmt.Errorf("take the application lock %s: sp_getapplock returned %d", resource, result)
	}
}
