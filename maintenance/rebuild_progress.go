package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	mssql "github.com/microsoft/go-mssqldb"
	"go.uber.org/zap"
)

const sessionIDSQL = `DECLARE @session INT = @@SPID;
SELECT /* outbox:SessionID */ @session AS id;`

// Progress of what is not resumable is not shown by any view: percent_complete
// of sys.dm_exec_requests is for REORGANIZE and for the rollback, among others
// (sql-docs, sys-dm-exec-requests-transact-sql.md; VIEW DATABASE STATE, or one's
// own session). So it says how long it runs and what it waits for.
const rebuildRequestSQL = `SELECT /* outbox:RebuildRequest */ r.total_elapsed_time, ISNULL(r.wait_type, N'') AS wait_type, ISNULL(r.blocking_session_id, 0) AS blocking_session_id
FROM   sys.dm_exec_requests AS r
WHERE  r.session_id = @session;`

// report says how far the rebuild is. What cannot be seen is not worth an error.
func (r rebuildRun) report(ctx context.Context, i *RebuildIndex, session int) {
	call, cancel := context.WithTimeout(ctx, r.LockTimeout+r.Poll)
	defer cancel()
	stage := "rebuild " + i.Name
	var refused error
	err := r.watch.Use(call, "look how far the rebuild is", func(conn *sql.Conn) error {
		if i.Resumable {
			refused = r.percent(call, conn, i, stage)
		} else {
			refused = r.elapsed(call, conn, session, stage)
		}
		// The connection has the application lock: an answer that is no good is no
		// reason to drop it.
		var answer mssql.Error
		if errors.As(refused, &answer) || errors.Is(refused, sql.ErrNoRows) {
			return nil
		}
		return refused
	})
	if err = errors.Join(err, refused); err != nil {
		r.Logger.Debug("the rebuild's progress could not be read", zap.Error(err))
	}
}

func (r rebuildRun) percent(ctx context.Context, conn *sql.Conn, i *RebuildIndex, stage string) error {
	operations, err := readOperations(ctx, conn, r.Events())
	for _, o := range operations {
		if o.indexID == i.state.id {
			r.Progress(Progress{Stage: stage, Done: int64(o.PercentComplete), Total: 100, Unit: "%"})
		}
	}
	return err
}

func (r rebuildRun) elapsed(ctx context.Context, conn *sql.Conn, session int, stage string) error {
	var elapsed int64
	var wait string
	var blocker int
	if err := conn.QueryRowContext(ctx, rebuildRequestSQL, sql.Named("session", session)).Scan(&elapsed, &wait, &blocker); err != nil {
		return err
	}
	if blocker > 0 {
		stage += fmt.Sprintf(" (waits for session %d, %s)", blocker, wait)
	}
	r.Progress(Progress{Stage: stage, Done: elapsed / 1000, Unit: "s"})
	return nil
}
