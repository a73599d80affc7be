package engine

import "testing"

// Who may not see an object does not see it through functions either, and who does
// not own the database reads nobody else's input.
func TestFunctionsShowWhatTheUserMaySee(t *testing.T) {
	e := newEngine(t)
	s, other := open(t, e), open(t, e)
	must(t, s, outboxTable)
	must(t, s, `CREATE USER u WITHOUT LOGIN`)
	must(t, s, `CREATE PROCEDURE p AS SELECT 1`)
	id := must(t, s, `SELECT OBJECT_ID('p')`).text()
	table := must(t, s, `SELECT OBJECT_ID('e')`).text()
	spid := must(t, other, `SELECT @@SPID`).text()
	asU := func(sql string) string { return run(t, s, `EXECUTE AS USER = 'u'; `+sql+`; REVERT`).text() }
	const stats = `SELECT COUNT(*) FROM sys.dm_db_stats_properties(`
	for _, c := range []struct{ grant, sql, want string }{
		{``, `SELECT OBJECTPROPERTY(` + id + `, 'IsProcedure'), OBJECT_DEFINITION(` + id + `)`, "NULL|NULL"},
		{``, stats + table + `, 1)`, "0"},
		{``, `SELECT COUNT(*) FROM sys.dm_exec_input_buffer(` + spid + `, NULL); SELECT COUNT(*) FROM sys.dm_exec_input_buffer(@@SPID, NULL)`, "0\n1"},
		{``, `SELECT COUNT(*) FROM sys.dm_os_waiting_tasks`, "error 262\nerror 297"},
		{`GRANT EXECUTE ON p TO u; GRANT SELECT ON e TO u`, `SELECT OBJECTPROPERTY(` + id + `, 'IsProcedure'), OBJECT_DEFINITION(` + id + `)`, "1|NULL"},
		{``, stats + table + `, 1)`, "1"},
		{`GRANT VIEW DEFINITION ON p TO u; GRANT VIEW DATABASE STATE TO u`, `SELECT OBJECT_DEFINITION(` + id + `); SELECT COUNT(*) FROM sys.dm_os_waiting_tasks`, "CREATE PROCEDURE p AS SELECT 1\n0"},
	} {
		if c.grant != "" {
			must(t, s, c.grant)
		}
		if got := asU(c.sql); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}
