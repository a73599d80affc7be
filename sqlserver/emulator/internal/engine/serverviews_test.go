package engine

import (
	"strings"
	"testing"
)

const usageOf = `SELECT i.name, u.user_seeks, u.user_scans, u.user_lookups, u.user_updates FROM sys.dm_db_index_usage_stats AS u
	JOIN sys.indexes AS i ON i.object_id = u.object_id AND i.index_id = u.index_id WHERE u.database_id = DB_ID() ORDER BY i.name`

// An execution counts once for an index, however many rows or seeks it makes.
func TestIndexUsage(t *testing.T) {
	for _, c := range []struct{ name, sql, want string }{
		{"an insert of many rows", `SELECT 1`, "IX_claim|0|0|0|1\nPK_e|0|0|0|1"},
		{"a seek", `SELECT id FROM e WHERE event_type = 'a' AND status = 0`, "IX_claim|1|0|0|1\nPK_e|0|0|0|1"},
		{"a scan", `SELECT id FROM e WHERE payload = 'p1'`, "IX_claim|0|0|0|1\nPK_e|0|1|0|1"},
		{"a lookup", `SELECT processed_at FROM e WITH (INDEX(IX_claim)) WHERE event_type = 'a' AND status = 0`, "IX_claim|1|0|0|1\nPK_e|0|0|1|1"},
		{"many seeks of one statement", `SELECT e.id FROM GENERATE_SERIES(1, 50) AS g JOIN e ON e.id = g.value`, "IX_claim|0|0|0|1\nPK_e|1|0|0|1"},
		{"an update of what IX_claim does not hold", `UPDATE e SET processed_at = NULL WHERE id = 4`, "IX_claim|0|0|0|1\nPK_e|1|0|0|2"},
		{"an update of its filter column", `UPDATE e SET status = 1 WHERE id = 4`, "IX_claim|0|0|0|2\nPK_e|1|0|0|2"},
		{"a delete", `DELETE e WHERE id < 50`, "IX_claim|0|0|0|2\nPK_e|1|0|0|2"},
		{"a batch that runs twice", `SELECT id FROM e WHERE id = 1; SELECT id FROM e WHERE id = 2`, "IX_claim|0|0|0|1\nPK_e|2|0|0|1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, newEngine(t))
			must(t, s, outboxTable)
			if got := must(t, s, usageOf).text(); got != "" {
				t.Errorf("unused indexes have rows: %q", got)
			}
			must(t, s, `INSERT e (id, event_type, payload) SELECT value, 'a', CONCAT('p', value) FROM GENERATE_SERIES(1, 100)`)
			must(t, s, c.sql)
			if got := must(t, s, usageOf).text(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPhysicalStats(t *testing.T) {
	e := newEngine(t)
	s, other := open(t, e), open(t, e)
	must(t, s, outboxTable)
	must(t, s, `INSERT e (id, event_type, payload) SELECT value, 'a', 'x' FROM GENERATE_SERIES(1, 10)`)
	const stats = `SELECT i.name, s.index_type_desc, s.page_count, s.avg_fragmentation_in_percent, s.record_count, s.ghost_record_count
		FROM sys.dm_db_index_physical_stats(DB_ID(), OBJECT_ID('dbo.e'), NULL, DEFAULT, MODE) AS s
		JOIN sys.indexes AS i ON i.object_id = s.object_id AND i.index_id = s.index_id ORDER BY i.name`
	in := func(mode string) string { return must(t, other, strings.Replace(stats, "MODE", mode, 1)).text() }
	if got := in("'LIMITED'"); got != "IX_claim|NONCLUSTERED INDEX|NULL|NULL|NULL|NULL\nPK_e|CLUSTERED INDEX|NULL|NULL|NULL|NULL" {
		t.Errorf("LIMITED counts no records: %q", got)
	}
	// the keys that a transaction has taken out of an index stay as ghosts
	must(t, s, `BEGIN TRAN; UPDATE e SET status = 1 WHERE id <= 3`)
	if got := in("'DETAILED'"); got != "IX_claim|NONCLUSTERED INDEX|NULL|NULL|7|3\nPK_e|CLUSTERED INDEX|NULL|NULL|10|0" {
		t.Errorf("DETAILED: %q", got)
	}
	must(t, s, `COMMIT`)
	if got := in("N'SAMPLED'"); !strings.HasPrefix(got, "IX_claim|NONCLUSTERED INDEX|NULL|NULL|7|0") {
		t.Errorf("after the commit: %q", got)
	}
	if got := run(t, s, strings.Replace(stats, "MODE", "'FULL'", 1)).text(); got != "error 2561" {
		t.Errorf("an unknown mode: %q", got)
	}
	if got := run(t, s, `SELECT page_count FROM sys.dm_db_index_physical_stats(DB_ID(), 'e', NULL, NULL, NULL)`).text(); got != "error 8114" {
		t.Errorf("a name for an id: %q", got)
	}
	if got := must(t, s, `SELECT i.name, p.row_count, p.used_page_count FROM sys.dm_db_partition_stats AS p
		JOIN sys.indexes AS i ON i.object_id = p.object_id AND i.index_id = p.index_id ORDER BY i.name`).text(); got != "IX_claim|7|NULL\nPK_e|10|NULL" {
		t.Errorf("partitions: %q", got)
	}
}

// Who waits, for what, behind whom; and what it came to afterwards.
func TestWaitsShowInTheViews(t *testing.T) {
	e := newEngine(t)
	a, b, watcher := open(t, e), open(t, e), open(t, e)
	must(t, a, smallTable+`; INSERT t VALUES (1, 1)`)
	if got := must(t, watcher, `SELECT COUNT(*) FROM sys.dm_db_wait_stats`).text(); got != "0" {
		t.Errorf("waits of nobody: %q", got)
	}
	must(t, a, `BEGIN TRAN; UPDATE t SET v = 2 WHERE id = 1`)
	spidA, spidB := run(t, a, `SELECT @@SPID`).text(), run(t, b, `SELECT @@SPID`).text()
	done := start(b, `SET DEADLOCK_PRIORITY LOW; BEGIN TRAN; UPDATE t SET v = 3 WHERE id = 1`)
	untilWaiting(t, e)
	const request = `SELECT r.status, r.command, r.wait_type, r.blocking_session_id, r.open_transaction_count,
		SUBSTRING(st.text, r.statement_start_offset / 2 + 1, (r.statement_end_offset - r.statement_start_offset) / 2 + 1)
		FROM sys.dm_exec_requests AS r CROSS APPLY sys.dm_exec_sql_text(r.sql_handle) AS st WHERE r.session_id = `
	if got := must(t, watcher, request+spidB).text(); got != "suspended|UPDATE|LCK_M_U|"+spidA+"|1|UPDATE t SET v = 3 WHERE id = 1" {
		t.Errorf("the request: %q", got)
	}
	if got := must(t, watcher, `SELECT status FROM sys.dm_exec_sessions WHERE session_id IN (`+spidA+`, `+spidB+`) ORDER BY session_id`).text(); got != "sleeping\nrunning" {
		t.Errorf("the sessions: %q", got)
	}
	const locks = `SELECT l.request_session_id, OBJECT_NAME(p.object_id), i.name, l.request_mode, l.request_status, l.request_owner_type, CASE WHEN l.request_owner_id > 0 THEN 'id' END
		FROM sys.dm_tran_locks AS l JOIN sys.partitions AS p ON p.hobt_id = l.resource_associated_entity_id JOIN sys.indexes AS i ON i.object_id = p.object_id AND i.index_id = p.index_id
		WHERE l.resource_type = 'KEY' ORDER BY l.request_status`
	pk := run(t, watcher, `SELECT name FROM sys.indexes`).text()
	if got := must(t, watcher, locks).text(); got != spidA+"|t|"+pk+"|X|GRANT|TRANSACTION|id\n"+spidB+"|t|"+pk+"|U|WAIT|TRANSACTION|id" {
		t.Errorf("the locks: %q", got)
	}
	if got := must(t, watcher, `SELECT COUNT(DISTINCT resource_description) FROM sys.dm_tran_locks WHERE resource_type = 'KEY'`).text(); got != "1" {
		t.Errorf("one key has %s descriptions", got)
	}
	must(t, watcher, `WAITFOR DELAY '00:00:00.020'`)
	must(t, a, `COMMIT`)
	<-done
	const waits = `SELECT wait_type, waiting_tasks_count, CASE WHEN wait_time_ms >= 20 AND max_wait_time_ms = wait_time_ms THEN 'long' END FROM sys.VIEW`
	for _, view := range []string{"dm_db_wait_stats", "dm_os_wait_stats"} {
		if got := must(t, watcher, strings.Replace(waits, "VIEW", view, 1)).text(); got != "LCK_M_U|1|long" {
			t.Errorf("%s: %q", view, got)
		}
	}
	if got := must(t, watcher, `SELECT COUNT(*) FROM sys.dm_exec_requests WHERE session_id = `+spidB).text(); got != "0" {
		t.Errorf("a request that is over shows")
	}
	if got := must(t, watcher, `SELECT COUNT(*), MIN(net_transport) FROM sys.dm_exec_connections`).text(); got != "3|TCP" {
		t.Errorf("the connections: %q", got)
	}
}

func TestViewsOfWhatIsNotThere(t *testing.T) {
	play(t, []batch{
		{`SELECT avg_cpu_percent FROM sys.dm_db_resource_stats`, ""},
		{`SELECT name, state_desc FROM sys.index_resumable_operations`, ""},
		{`SELECT desired_state_desc, actual_state_desc FROM sys.database_query_store_options`, "OFF|OFF"},
		{`ALTER DATABASE CURRENT SET QUERY_STORE = ON`, "error 50999"}, // not kept, so not taken
		{`SELECT q.query_id FROM sys.query_store_query AS q JOIN sys.query_store_plan AS p ON p.query_id = q.query_id`, ""},
		{`SELECT * FROM sys.dm_user_db_resource_governance`, "error 50999"}, // the engine has no limits to tell
	})
}

func TestSessionsTellOfTheirRequests(t *testing.T) {
	e := newEngine(t)
	s, other := open(t, e), open(t, e)
	spid := must(t, other, `SELECT @@SPID`).text()
	if got := must(t, s, `SELECT CASE WHEN last_request_end_time >= last_request_start_time AND last_request_start_time >= login_time THEN 'over' END, date_format, host_process_id
		FROM sys.dm_exec_sessions WHERE session_id = `+spid).text(); got != "over|mdy|NULL" {
		t.Errorf("got %q", got)
	}
	if got := run(t, s, `SELECT cpu_time FROM sys.dm_exec_sessions`).text(); got != "error 207" {
		t.Errorf("what is not known: %q", got)
	}
}
