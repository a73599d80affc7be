package engine

import (
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

var _ = registerViews(map[string]*view{
	"sys.dm_exec_sessions": {sessionCols, sessionRows},
})

// sessionCols are those of sys.dm_exec_sessions (sql-docs) that the engine can
// answer.
var sessionCols = []outCol{
	vSmall("session_id"), vTime("login_time"), vName("host_name"), vName("program_name"), vName("login_name"), vName("original_login_name"), vName("status"),
	vBit("is_user_process"), vSmall("transaction_isolation_level"), vInt("open_transaction_count"), vInt("lock_timeout"), vInt("deadlock_priority"),
	vBit("quoted_identifier"), vBit("ansi_nulls"), vBit("ansi_padding"), vBit("ansi_warnings"), vBit("ansi_null_dflt_on"), vBit("concat_null_yields_null"),
	vBit("arithabort"), vInt("text_size"), vSmall("database_id"), vName("client_interface_name"),
	vTime("last_request_start_time"), vTimeNull("last_request_end_time"),
}

// isolationNumbers are transaction_isolation_level.
var isolationNumbers = map[storage.Isolation]int{
	storage.ReadUncommitted: 1, storage.ReadCommitted: 2, storage.RepeatableRead: 3, storage.Serializable: 4, storage.Snapshot: 5,
}

// sessionRows shows the sessions: the asking one as it is, the others as they
// last published themselves.
func sessionRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	s.engine.eachSession(func(o *session) {
		st, status := *o.shown.Load(), "sleeping"
		if o.requested.Load() != 0 {
			status = "running"
		}
		if o == s {
			st = s.state()
		}
		set := &st.set
		rows = append(rows, catalogRow(sessionCols, o.spid(), o.opened, o.login.Host, o.login.App, o.login.User, o.login.User, status, true,
			isolationNumbers[set.isolation], st.transactions, set.lockTimeoutMillis(), st.deadlockPriority, set.quotedIdentifier, set.ansiNulls,
			set.ansiPadding, set.ansiWarnings, set.ansiNullDefault, set.concatNull, set.arithAbort, set.textSize, databaseID, "embedded", o.requestBegan(), timeOrNull(o.ended.Load())))
	})
	return rows
}

// requestBegan is when the last request came; a session begins with its login.
func (s *session) requestBegan() time.Time {
	if last := s.input.Load(); last != nil {
		return last.at
	}
	return s.opened
}

// timeOrNull is a time in nanoseconds since 1970, nil for none.
func timeOrNull(n int64) any {
	if n == 0 {
		return nil
	}
	return time.Unix(0, n).UTC()
}

// spidOf is the session that a storage session belongs to.
func (e *Engine) spidOf(storageID int64) int64 {
	if spid, ok := e.spids.Load(storageID); ok {
		return spid.(int64)
	}
	return storageID + 50
}

// entity is an index's hobt_id, as sys.partitions shows it.
func (t *tableDef) entity(ix *storage.Index) int64 {
	for _, d := range t.indexes {
		if d.store == ix {
			return int64(t.id)<<16 | int64(d.id)
		}
	}
	return int64(t.id) << 16
}
