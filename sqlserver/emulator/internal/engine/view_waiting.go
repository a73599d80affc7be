package engine

import (
	"fmt"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

var _ = registerViews(map[string]*view{
	"sys.dm_os_waiting_tasks": {waitingTaskCols, waitingTaskRows},
})

// waitingTaskCols are those of sys-dm-os-waiting-tasks-transact-sql.md.
var waitingTaskCols = documented(`
	waiting_task_address varbinary(8); session_id smallint; exec_context_id int; wait_duration_ms bigint; wait_type nvarchar(60);
	resource_address varbinary(8); blocking_task_address varbinary(8); blocking_session_id smallint; blocking_exec_context_id int;
	resource_description nvarchar(3072)`)

// waitingTaskRows are who waits for a lock. Nothing here has an address.
func waitingTaskRows(s *session) [][]sqltype.Value {
	tables, locks := s.engine.tablesByStore(), s.engine.db.Locks()
	var rows [][]sqltype.Value
	for _, l := range locks {
		if l.Status == storage.Granted {
			continue
		}
		rows = append(rows, partRow(waitingTaskCols, map[string]any{
			"session_id": s.engine.spidOf(l.SessionID), "exec_context_id": 0, "wait_duration_ms": time.Since(l.Since).Milliseconds(),
			"wait_type": waitType(l.Mode), "blocking_session_id": s.engine.spidOf(l.BlockedBy), "blocking_exec_context_id": 0,
			"resource_description": lockedText(l, heldBy(locks, l), lockedEntity(l, tables)),
		}))
	}
	return rows
}

// heldBy is the mode in which the session that blocks a request holds what it is
// for.
func heldBy(locks []storage.LockInfo, l storage.LockInfo) string {
	for _, o := range locks {
		if o.Status == storage.Granted && o.SessionID == l.BlockedBy && o.Resource == l.Resource &&
			o.Table == l.Table && o.Index == l.Index && o.Row == l.Row && o.App == l.App {
			return o.Mode.String()
		}
	}
	return l.Mode.String() // it waits too, in front of the request
}

// lockedText is resource_description of a lock, without the address of the lock.
func lockedText(l storage.LockInfo, mode string, entity any) string {
	kind := ""
	switch l.Resource {
	case storage.ObjectLock:
		kind = fmt.Sprintf("objectlock lockPartition=0 objid=%v subresource=FULL dbid=%d", entity, databaseID)
	case storage.KeyLock:
		kind = fmt.Sprintf("keylock hobtid=%v dbid=%d", entity, databaseID)
	case storage.RIDLock:
		kind = fmt.Sprintf("ridlock dbid=%d", databaseID)
	case storage.ApplicationLock:
		kind = fmt.Sprintf("applicationlock hash=%s databasePrincipalId=0 dbid=%d", l.App, databaseID)
	}
	if entity == nil {
		return kind + " mode=" + mode
	}
	return fmt.Sprintf("%s mode=%s associatedObjectId=%v", kind, mode, entity)
}

// waitResource is wait_resource of sys.dm_exec_requests.
func waitResource(l storage.LockInfo, entity any) string {
	switch l.Resource {
	case storage.ObjectLock:
		return fmt.Sprintf("OBJECT: %d:%v:0 ", databaseID, entity)
	case storage.ApplicationLock:
		return fmt.Sprintf("APPLICATION: %d:%s", databaseID, resourceText(l))
	}
	return fmt.Sprintf("%s: %d:%v %s", l.Resource, databaseID, entity, resourceText(l))
}
