package engine

import (
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = registerViews(map[string]*view{
	"sys.dm_exec_requests":    {requestCols, requestRows},
	"sys.dm_exec_connections": {connectionCols, connectionRows},
})

func vIntNull(name string) outCol   { return outCol{name: name, typ: intType, nullable: true} }
func vSmallNull(name string) outCol { return outCol{name: name, typ: smallType, nullable: true} }

// requestCols are those of sys.dm_exec_requests (sql-docs) that the engine can
// answer.
var requestCols = []outCol{
	vSmall("session_id"), vInt("request_id"), vTime("start_time"),
	{name: "status", typ: nvarcharType(30)},
	{name: "command", typ: nvarcharType(32), nullable: true},
	vHandle("sql_handle"), vIntNull("statement_start_offset"), vIntNull("statement_end_offset"), vHandle("plan_handle"),
	vSmall("database_id"), vInt("user_id"), vSmallNull("blocking_session_id"),
	{name: "wait_type", typ: nvarcharType(60), nullable: true},
	vInt("wait_time"),
	{name: "wait_resource", typ: nvarcharType(256)},
	vInt("open_transaction_count"), vBig("transaction_id"), vInt("total_elapsed_time"), vInt("text_size"),
	vBit("quoted_identifier"), vBit("arithabort"), vBit("ansi_warnings"), vBit("ansi_padding"), vBit("ansi_nulls"), vBit("concat_null_yields_null"),
	vSmall("transaction_isolation_level"), vInt("lock_timeout"), vInt("deadlock_priority"),
	vHash("query_hash"), vHash("query_plan_hash"),
	{name: "percent_complete", typ: sqltype.Type{Kind: sqltype.Real}},
}

// requestRows are the requests in hand. What a statement has no plan for
// (WAITFOR, SET) has no command and no handles.
func requestRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	locks, plans, tables := s.engine.db.Locks(), s.engine.allPlans(), s.engine.tablesByStore()
	s.engine.eachSession(func(o *session) {
		began := o.requested.Load()
		if began == 0 {
			return
		}
		start := time.Unix(0, began)
		row := []any{o.spid(), 0, start.UTC(), "running"}
		wait, waited, waits := waitOf(locks, s.engine.spidOf, o.spid())
		if waits {
			row[3] = "suspended"
		}
		m := o.running.Load()
		row = append(row, statementColumns(m, plans)...)
		row = append(row, databaseID, 1)
		if waits {
			row = append(row, s.engine.spidOf(wait.BlockedBy), waitType(wait.Mode), waited.Milliseconds(), waitResource(wait, lockedEntity(wait, tables)))
		} else {
			row = append(row, 0, nil, 0, "")
		}
		st := *o.shown.Load()
		if o == s {
			st = s.state()
		}
		set := &st.set
		row = append(row, st.transactions, int64(st.transaction), time.Since(start).Milliseconds(), set.textSize,
			set.quotedIdentifier, set.arithAbort, set.ansiWarnings, set.ansiPadding, set.ansiNulls, set.concatNull,
			isolationNumbers[set.isolation], set.lockTimeoutMillis(), st.deadlockPriority)
		if m == nil {
			row = append(row, nil, nil)
		} else if shape := m.unit.shape(); shape != nil {
			row = append(row, queryHash(m.text()), shape.hash())
		} else {
			row = append(row, queryHash(m.text()), nil)
		}
		rows = append(rows, catalogRow(requestCols, append(row, 0)...)) // nothing here tells how far it is
	})
	return rows
}

// statementColumns are command to plan_handle.
func statementColumns(m *measured, plans []plan) []any {
	if m == nil {
		return []any{nil, nil, nil, nil, nil}
	}
	start, end := m.offsets()
	for _, p := range plans {
		if p.module == m.mod {
			return []any{m.kind, p.sqlHandle(), start, end, p.planHandle()}
		}
	}
	return []any{m.kind, nil, start, end, nil} // a text that is not cached
}

// connectionCols are those of sys.dm_exec_connections (sql-docs) that the engine
// can answer. What it does not see from behind the protocol is NULL.
var connectionCols = []outCol{
	vInt("session_id"), vInt("most_recent_session_id"), vTime("connect_time"),
	{name: "net_transport", typ: nvarcharType(40)},
	{name: "protocol_type", typ: nvarcharType(40), nullable: true},
	{name: "auth_scheme", typ: nvarcharType(40)},
	vIntNull("net_packet_size"),
	{name: "client_net_address", typ: sqltype.Type{Kind: sqltype.VarChar, Length: 48, Collation: sqltype.DefaultCollation}, nullable: true},
	vIntNull("num_reads"), vIntNull("num_writes"),
}

func connectionRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	s.engine.eachSession(func(o *session) {
		packet := any(nil)
		if o.login.PacketSize > 0 {
			packet = o.login.PacketSize
		}
		rows = append(rows, catalogRow(connectionCols, o.spid(), o.spid(), o.opened, "TCP", "TSQL", "SQL", packet, nil, nil, nil))
	})
	return rows
}
