package engine

import (
	"context"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// ofStatement is the plan cache's row of the statements that hold a mark; the
// query that asks does not hold it in one piece.
const ofStatement = ` FROM sys.dm_exec_query_stats AS qs CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st WHERE st.text LIKE '%MARK' + '*/%'`

// planXML is the showplan of what was run with the mark.
func planXML(t *testing.T, s tds.Session) string {
	t.Helper()
	return must(t, s, `SELECT qp.query_plan FROM sys.dm_exec_query_stats AS qs CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st
		CROSS APPLY sys.dm_exec_query_plan(qs.plan_handle) AS qp WHERE st.text LIKE '%MARK' + '*/%'`).text()
}

func execSQL(t *testing.T, s tds.Session, stmt, decl string, args ...tds.Param) string {
	t.Helper()
	return rpc(t, s, "sp_executesql", append([]tds.Param{text(stmt), text(decl)}, args...)...).text()
}

func TestShowplanTellsTheTruth(t *testing.T) {
	zero := tds.Param{Name: "@s", Type: tinyType, Value: sqltype.Value{Kind: sqltype.TinyInt}}
	wide := tds.Param{Name: "@k", Type: nvarcharType(10), Value: nvarcharValue("a")}
	narrow := tds.Param{Name: "@k", Type: sqltype.Type{Kind: sqltype.VarChar, Length: 10, Collation: sqltype.DefaultCollation}, Value: varcharValue("a")}
	for _, c := range []struct {
		name, sql, decl string
		args            []tds.Param
		has, hasNot     []string
	}{
		{
			"a literal matches the filter", `/*MARK*/ SELECT id FROM e WHERE event_type = 'a' AND status = 0`, "", nil,
			[]string{`PhysicalOp="Index Seek"`, `Index="[IX_claim]"`},
			[]string{"UnmatchedIndexes", "PlanAffectingConvert", "Clustered Index"},
		},
		{
			"a parameter does not", `/*MARK*/ SELECT id FROM e WHERE event_type = 'a' AND status = @s`, "@s TINYINT",
			[]tds.Param{zero},
			[]string{
				`PhysicalOp="Clustered Index Scan"`, `<UnmatchedIndexes><Parameterization><Object Database="[test]" Schema="[dbo]" Table="[e]" Index="[IX_claim]"`,
				`<Warnings UnmatchedIndexes="true">`,
			},
			[]string{`"Index Seek"`},
		},
		{
			"another literal leaves nothing unmatched", `/*MARK*/ SELECT id FROM e WHERE status = 1`, "", nil,
			[]string{`PhysicalOp="Clustered Index Scan"`},
			[]string{"UnmatchedIndexes"},
		},
		{
			"a varchar parameter seeks", `/*MARK*/ SELECT k FROM s WHERE k = @k`, "@k VARCHAR(10)",
			[]tds.Param{narrow},
			[]string{`PhysicalOp="Clustered Index Seek"`, `Column="k"`},
			[]string{"PlanAffectingConvert"},
		},
		{
			"an nvarchar one scans", `/*MARK*/ SELECT k FROM s WHERE k = @k`, "@k NVARCHAR(10)",
			[]tds.Param{wide},
			[]string{
				`PhysicalOp="Clustered Index Scan"`,
				`<PlanAffectingConvert ConvertIssue="Seek Plan" Expression="CONVERT_IMPLICIT(nvarchar(10),[test].[dbo].[s].[k],0)"/>`,
			},
			[]string{`Index Seek"`},
		},
		{
			"a key lookup", `/*MARK*/ SELECT processed_at FROM e WITH (INDEX(IX_claim)) WHERE event_type = 'a' AND status = 0`, "", nil,
			[]string{`PhysicalOp="Nested Loops"`, `Lookup="true"`, `PhysicalOp="Clustered Index Seek"`},
			nil,
		},
		{
			"backwards", `/*MARK*/ SELECT TOP (1) id FROM e WHERE event_type = 'a' AND status = 0 ORDER BY id DESC`, "", nil,
			[]string{`ScanDirection="BACKWARD"`},
			nil,
		},
		{
			"a heap", `/*MARK*/ UPDATE h SET a = 1`, "", nil,
			[]string{`StatementType="UPDATE"`, `PhysicalOp="Table Scan"`, `IndexKind="Heap"`},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, newEngine(t))
			must(t, s, outboxTable)
			must(t, s, `CREATE TABLE s (k VARCHAR(10) NOT NULL PRIMARY KEY); CREATE TABLE h (a INT)`)
			if out := execSQL(t, s, c.sql, c.decl, c.args...); strings.Contains(out, "error") {
				t.Fatal(out)
			}
			plan := planXML(t, s)
			wellFormed(t, plan)
			for _, want := range c.has {
				if !strings.Contains(plan, want) {
					t.Errorf("no %s in\n%s", want, plan)
				}
			}
			for _, not := range c.hasNot {
				if strings.Contains(plan, not) {
					t.Errorf("%s in\n%s", not, plan)
				}
			}
		})
	}
}

func wellFormed(t *testing.T, doc string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(doc)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
	}
}

func TestQueryStatsCount(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, smallTable+`; INSERT t SELECT value, value FROM GENERATE_SERIES(1, 100)`)
	const q = `/*MARK*/ SELECT v FROM t WHERE id <= @n`
	for _, n := range []int64{10, 3, 7} {
		execSQL(t, s, q, "@n INT", tds.Param{Name: "@n", Type: intType, Value: intValue(n)})
	}
	const counts = `SELECT execution_count, total_rows, last_rows, min_rows, max_rows, total_logical_reads, last_logical_reads, min_logical_reads, max_logical_reads, total_logical_writes` + ofStatement
	if got := must(t, s, counts).text(); got != "3|20|7|3|10|20|7|3|10|NULL" {
		t.Errorf("counts: %q", got)
	}
	// a datetime is rounded to some 3 ms
	const order = `SELECT CASE WHEN total_elapsed_time >= total_worker_time AND max_elapsed_time >= min_elapsed_time AND total_elapsed_time >= max_elapsed_time
		AND creation_time <= DATEADD(millisecond, 4, last_execution_time) AND last_execution_time <= DATEADD(millisecond, 4, SYSUTCDATETIME()) THEN 'sane' END, plan_generation_num, LEN(query_hash), LEN(query_plan_hash)` + ofStatement
	if got := must(t, s, order).text(); got != "sane|1|8|8" {
		t.Errorf("times: %q", got)
	}
	// the text has the parameters, and the offsets cut the statement out of it
	const cut = `SELECT st.text, SUBSTRING(st.text, qs.statement_start_offset / 2 + 1, (qs.statement_end_offset - qs.statement_start_offset) / 2 + 1)` + ofStatement
	if got := must(t, s, cut).text(); got != `(@n INT)`+q+`|SELECT v FROM t WHERE id <= @n` {
		t.Errorf("text: %q", got)
	}
	// TOP stops at a row that it has read
	execSQL(t, s, `/*FIRST*/ SELECT TOP (@n) v FROM t ORDER BY id`, "@n INT", tds.Param{Name: "@n", Type: intType, Value: intValue(4)})
	if got := must(t, s, `SELECT total_logical_reads`+strings.ReplaceAll(ofStatement, "MARK", "FIRST")).text(); got != "4" {
		t.Errorf("reads of TOP: %q", got)
	}
	// a new index makes a new plan, and counting begins anew
	must(t, s, `CREATE INDEX IX ON t (v)`)
	execSQL(t, s, q, "@n INT", tds.Param{Name: "@n", Type: intType, Value: intValue(1)})
	if got := must(t, s, `SELECT execution_count, plan_generation_num, total_rows`+ofStatement).text(); got != "1|2|1" {
		t.Errorf("after DDL: %q", got)
	}
	// what fails has not finished
	execSQL(t, s, `/*MARK*/ SELECT 1 / @n`, "@n INT", tds.Param{Name: "@n", Type: intType, Value: intValue(0)})
	if got := must(t, s, `SELECT COUNT(*)`+ofStatement).text(); got != "1" {
		t.Errorf("rows after a failure: %q", got)
	}
}

// Waiting for a lock is elapsed time and no work.
func TestWorkerTimeLeavesWaitsOut(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, smallTable+`; INSERT t VALUES (1, 1)`)
	must(t, a, `BEGIN TRAN; UPDATE t SET v = 2`)
	done := start(b, `/*MARK*/ UPDATE t SET v = 3 WHERE id = 1`)
	untilWaiting(t, e)
	must(t, a, `WAITFOR DELAY '00:00:00.050'; COMMIT`)
	<-done
	if got := must(t, a, `SELECT CASE WHEN total_elapsed_time >= total_worker_time + 50000 THEN 'waited' END`+ofStatement).text(); got != "waited" {
		t.Errorf("got %q", must(t, a, `SELECT total_elapsed_time, total_worker_time`+ofStatement).text())
	}
}

func TestPlanCacheKeysOnTextAndOptions(t *testing.T) {
	e := newEngine(t)
	s, other := open(t, e), open(t, e)
	must(t, s, smallTable)
	const q = `/*MARK*/ SELECT COUNT(*) FROM t`
	must(t, s, q)
	must(t, other, q)
	must(t, s, `SET ARITHABORT ON`)
	must(t, s, q)
	const attributes = `SELECT p.objtype, p.usecounts, CAST(a.value AS INT) FROM sys.dm_exec_cached_plans AS p CROSS APPLY sys.dm_exec_sql_text(p.plan_handle) AS st
		CROSS APPLY sys.dm_exec_plan_attributes(p.plan_handle) AS a WHERE a.attribute = 'set_options' AND st.text LIKE '%MARK' + '*/%' ORDER BY 3`
	// 1+8+16+32+64+128, and ARITH_ABORT (4096)
	if got := must(t, s, attributes).text(); got != "Adhoc|2|249\nAdhoc|1|4345" {
		t.Errorf("two plans for two sets of options: %q", got)
	}
	if got := must(t, s, `SELECT COUNT(DISTINCT sql_handle), COUNT(DISTINCT plan_handle), COUNT(DISTINCT query_hash)`+ofStatement).text(); got != "1|2|1" {
		t.Errorf("handles: %q", got)
	}
	must(t, s, `EXEC sp_executesql N'/*MARK*/ SELECT 12 FROM t'; EXEC sp_executesql N'/*MARK*/ select  13 from t'`)
	if got := must(t, s, `SELECT COUNT(DISTINCT query_hash)`+ofStatement).text(); got != "2" {
		t.Errorf("a literal makes another query_hash: %q", got)
	}
	must(t, s, `EXEC ('CREATE PROCEDURE p AS /*MARK*/ SELECT v FROM t')`)
	must(t, s, `EXEC p`)
	if got := must(t, s, `SELECT OBJECT_NAME(st.objectid), p.usecounts FROM sys.dm_exec_cached_plans AS p CROSS APPLY sys.dm_exec_sql_text(p.plan_handle) AS st WHERE p.objtype = 'Proc'`).text(); got != "p|1" {
		t.Errorf("a procedure: %q", got)
	}
}

func TestPlanFunctionsOfNothing(t *testing.T) {
	play(t, []batch{
		{`SELECT text FROM sys.dm_exec_sql_text(0x02)`, ""},
		{`SELECT x.n, p.query_plan FROM (VALUES (1)) AS x (n) OUTER APPLY sys.dm_exec_query_plan(NULL) AS p`, "1|NULL"},
		{`SELECT * FROM sys.dm_exec_plan_attributes(0x06)`, ""},
		{`SELECT total_clr_time FROM sys.dm_exec_query_stats`, "error 207"},
		{`SELECT qp.query_plan.value('(/a/@b)[1]', 'int') FROM sys.dm_exec_query_plan(0x06) AS qp`, "error 50999"},
	})
}

// A statement of a batch that a session still runs shows in the requests only.
func TestStatementsInHandAreNotCounted(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, smallTable+`; INSERT t VALUES (1, 1)`)
	must(t, a, `BEGIN TRAN; UPDATE t SET v = 2`)
	ctx, cancel := context.WithCancel(context.Background())
	done := startWithin(ctx, b, `/*MARK*/ UPDATE t SET v = 3 WHERE id = 1`)
	untilWaiting(t, e)
	if got := must(t, a, `SELECT COUNT(*)`+ofStatement).text(); got != "0" {
		t.Errorf("counted while it runs: %q", got)
	}
	cancel()
	<-done
	if got := must(t, a, `SELECT COUNT(*)`+ofStatement).text(); got != "0" {
		t.Errorf("counted although it was cancelled: %q", got)
	}
}
