package emulator

import (
	"database/sql"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
)

// The trap that every Go program falls into once, as a client sees it: a plain
// string is NVARCHAR and scans a VARCHAR key, a VarChar seeks; the plan says so.
func TestPlanOfAStringParameter(t *testing.T) {
	_, db := start(t, Config{})
	ctx := t.Context()
	if _, err := db.ExecContext(ctx, `CREATE TABLE dbo.k (code VARCHAR(20) NOT NULL PRIMARY KEY); INSERT dbo.k VALUES ('a')`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value          any
		decl, has, not string
	}{
		{"a", "(@code nvarchar%", `PlanAffectingConvert ConvertIssue="Seek Plan"`, `"Clustered Index Seek"`},
		{mssql.VarChar("a"), "(@code varchar%", `"Clustered Index Seek"`, "PlanAffectingConvert"},
	} {
		var code, plan, text string
		if err := db.QueryRowContext(ctx, `SELECT code FROM dbo.k WHERE code = @code`, sql.Named("code", c.value)).Scan(&code); err != nil {
			t.Fatal(err)
		}
		var handle []byte
		err := db.QueryRowContext(ctx, `SELECT qs.plan_handle, st.text, qp.query_plan FROM sys.dm_exec_query_stats AS qs
			CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st CROSS APPLY sys.dm_exec_query_plan(qs.plan_handle) AS qp
			WHERE st.text LIKE @decl`, sql.Named("decl", c.decl)).Scan(&handle, &text, &plan)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, c.has) || strings.Contains(plan, c.not) {
			t.Errorf("%T: the plan of %q has no %s, or has %s:\n%s", c.value, text, c.has, c.not, plan)
		}
		// a handle goes back as a parameter
		var again string
		if err := db.QueryRowContext(ctx, `SELECT text FROM sys.dm_exec_sql_text(@h)`, sql.Named("h", handle)).Scan(&again); err != nil || again != text {
			t.Errorf("by the plan handle: %q, %v; want %q", again, err, text)
		}
	}
}

// What a driver's pool leaves behind on a connection is gone when it is used
// again: sp_reset_connection.
func TestPoolResetsSettings(t *testing.T) {
	_, db := start(t, Config{})
	db.SetMaxOpenConns(1)
	ctx := t.Context()
	var before, after string
	const settings = `SELECT CONCAT(@@OPTIONS, ' ', @@LOCK_TIMEOUT, ' ', transaction_isolation_level, ' ', deadlock_priority, ' ', @@TRANCOUNT, ' ', @@SPID)
		FROM sys.dm_exec_sessions WHERE session_id = @@SPID`
	if err := db.QueryRowContext(ctx, settings).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, `SET XACT_ABORT, NOCOUNT, ARITHABORT ON; SET ANSI_NULLS OFF; SET LOCK_TIMEOUT 3; SET DEADLOCK_PRIORITY HIGH; SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN`); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(ctx, settings).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("on the connection again: %q, at first %q", after, before)
	}
}
