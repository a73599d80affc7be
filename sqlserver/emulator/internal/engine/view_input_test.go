package engine

import (
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

func TestInputBufferAndTextPlan(t *testing.T) {
	e := newEngine(t)
	s, other := open(t, e), open(t, e)
	must(t, s, smallTable)
	spid := run(t, other, `SELECT @@SPID`).text()
	buffer := func() string {
		return must(t, s, `SELECT event_type, event_info FROM sys.dm_exec_input_buffer(`+spid+`, NULL)`).text()
	}
	must(t, other, `SELECT v FROM t; SELECT id FROM t`)
	if got := buffer(); got != "Language Event|SELECT v FROM t; SELECT id FROM t" {
		t.Errorf("a batch: %q", got)
	}
	text := sqltype.Value{Kind: sqltype.NVarChar, S: "SELECT v FROM t WHERE id = @n"}
	declared := sqltype.Value{Kind: sqltype.NVarChar, S: "@n int"}
	if err := other.RPC(t.Context(), "sp_executesql", []tds.Param{
		{Value: text, Type: nvarcharType(sqltype.Max)},
		{Value: declared, Type: nvarcharType(sqltype.Max)},
		{Name: "@n", Value: intValue(1), Type: intType},
	}, &recorder{}); err != nil {
		t.Fatal(err)
	}
	if got := buffer(); got != "RPC Event|(@n int)SELECT v FROM t WHERE id = @n" {
		t.Errorf("a call: %q", got)
	}
	const plans = `SELECT p.query_plan FROM sys.dm_exec_query_stats AS q CROSS APPLY sys.dm_exec_sql_text(q.sql_handle) AS x
		CROSS APPLY sys.dm_exec_text_query_plan(q.plan_handle, q.statement_start_offset, q.statement_end_offset) AS p
		WHERE x.text LIKE N'SELECT v FROM t; %' ORDER BY q.statement_start_offset`
	got := strings.Split(must(t, s, plans).text(), "\n")
	if len(got) != 2 || strings.Contains(got[0], "SELECT id") || !strings.Contains(got[0], "SELECT v") || !strings.Contains(got[1], "SELECT id") {
		t.Errorf("plans of one statement each: %q", got)
	}
}
