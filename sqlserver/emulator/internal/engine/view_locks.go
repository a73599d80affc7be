package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

var _ = registerViews(map[string]*view{
	"sys.dm_tran_locks":    {lockCols, lockRows},
	"sys.dm_db_wait_stats": {waitCols, waitRows},
	"sys.dm_os_wait_stats": {waitCols, waitRows},
})

// lockCols are those of sys.dm_tran_locks (sql-docs) that the engine can answer.
var lockCols = []outCol{
	{name: "resource_type", typ: nvarcharType(60)},
	{name: "resource_subtype", typ: nvarcharType(60)},
	vInt("resource_database_id"),
	{name: "resource_description", typ: nvarcharType(256)},
	vBigNull("resource_associated_entity_id"), vInt("resource_lock_partition"),
	{name: "request_mode", typ: nvarcharType(60)},
	{name: "request_type", typ: nvarcharType(60)},
	{name: "request_status", typ: nvarcharType(60)},
	vInt("request_session_id"),
	{name: "request_owner_type", typ: nvarcharType(60)},
	vBigNull("request_owner_id"),
}

func lockRows(s *session) [][]sqltype.Value {
	tables := s.engine.tablesByStore()
	transactions := make(map[int64]uint64)
	s.engine.eachSession(func(o *session) { transactions[o.spid()] = o.shown.Load().transaction })
	return eachRow(s.engine.db.Locks(), func(l storage.LockInfo) []sqltype.Value {
		spid := s.engine.spidOf(l.SessionID)
		owner, ownerID := "TRANSACTION", any(nil)
		if l.SessionScope {
			owner = "SESSION"
		} else if id := transactions[spid]; id != 0 { // a statement's own transaction has no id here
			ownerID = int64(id)
		}
		return catalogRow(lockCols, string(l.Resource), "", databaseID, resourceText(l), lockedEntity(l, tables), 0,
			l.Mode.String(), "LOCK", string(l.Status), spid, owner, ownerID)
	})
}

func (e *Engine) tablesByStore() map[*storage.Table]*tableDef {
	tables := make(map[*storage.Table]*tableDef)
	for _, t := range e.catalog.tables() {
		tables[t.store] = t
	}
	return tables
}

// lockedEntity is the object or hobt that a lock is on, nil for neither.
func lockedEntity(l storage.LockInfo, tables map[*storage.Table]*tableDef) any {
	switch t := tables[l.Table]; {
	case t == nil:
		return nil
	case l.Resource == storage.ObjectLock:
		return int64(t.id)
	default:
		return t.entity(l.Index)
	}
}

// resourceText tells the locks of one entity apart: a key by a hash, which is
// made of the row's number here, and an application lock by its name.
func resourceText(l storage.LockInfo) string {
	switch l.Resource {
	case storage.KeyLock, storage.RIDLock:
		return fmt.Sprintf("(%012x)", uint64(l.Row))
	case storage.ApplicationLock:
		return "0:[" + l.App + "]"
	}
	return ""
}

// waitType is the LCK_M_… of a lock mode.
func waitType(m storage.LockMode) string {
	return "LCK_M_" + strings.ToUpper(strings.ReplaceAll(m.String(), "-", "_"))
}

var waitCols = []outCol{
	{name: "wait_type", typ: nvarcharType(60)}, vBig("waiting_tasks_count"), vBig("wait_time_ms"), vBig("max_wait_time_ms"), vBigNull("signal_wait_time_ms"),
}

// waitRows are the waits for locks; the engine knows of no others.
func waitRows(s *session) [][]sqltype.Value {
	byType := make(map[string]storage.Wait)
	add := func(waits map[storage.LockMode]storage.Wait, suffix string) {
		for mode, w := range waits {
			name := waitType(mode) + suffix
			sum := byType[name] // sets of modes may share a name
			sum.Count += w.Count
			sum.Total += w.Total
			sum.Max = max(sum.Max, w.Max)
			byType[name] = sum
		}
	}
	add(s.engine.db.LockWaits(), "")
	add(s.engine.db.LowPriorityLockWaits(), "_LOW_PRIORITY")
	return eachRow(slices.Sorted(maps.Keys(byType)), func(name string) []sqltype.Value {
		w := byType[name]
		return catalogRow(waitCols, name, w.Count, w.Total.Milliseconds(), w.Max.Milliseconds(), nil)
	})
}

// waitOf is what a session waits for, if it does.
func waitOf(locks []storage.LockInfo, spidOf func(int64) int64, spid int64) (storage.LockInfo, time.Duration, bool) {
	for _, l := range locks {
		if l.Status != storage.Granted && spidOf(l.SessionID) == spid {
			return l, time.Since(l.Since), true
		}
	}
	return storage.LockInfo{}, 0, false
}
