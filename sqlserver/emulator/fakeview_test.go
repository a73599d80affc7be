package emulator

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// answer is the rows of a query as text, values by | and rows by line feed.
func answer(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		var sqlErr mssql.Error
		if errors.As(err, &sqlErr) {
			return sqlErr.Error()
		}
		t.Fatal(err)
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		values := make([]sql.NullString, len(cols))
		into := make([]any, len(cols))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(cols))
		for i, v := range values {
			texts[i] = "NULL"
			if v.Valid {
				texts[i] = v.String
			}
		}
		lines = append(lines, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		return err.Error()
	}
	return strings.Join(lines, "\n")
}

func fake(t *testing.T, s *Server, v FakeView) *Faked {
	t.Helper()
	f, err := s.FakeView(v)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFakeViewAnswersUntilItIsRemoved(t *testing.T) {
	s, db := start(t, Config{})
	const waits = `SELECT wait_type, wait_time_ms, signal_wait_time_ms FROM sys.dm_db_wait_stats WHERE wait_type LIKE 'LOG%'`
	if got := answer(t, db, waits); got != "" {
		t.Errorf("before: %q", got)
	}
	f := fake(t, s, FakeView{
		Name:    "sys.dm_db_wait_stats",
		Columns: []string{"wait_type", "wait_time_ms"},
		Rows:    [][]any{{"LOG_RATE_GOVERNOR", 120_000}, {"PAGELATCH_EX", 7}},
	})
	if got := answer(t, db, waits); got != "LOG_RATE_GOVERNOR|120000|NULL" {
		t.Errorf("faked: %q", got)
	}
	fake(t, s, FakeView{Name: "sys.dm_db_wait_stats"})
	f.Remove() // is over already: the later one stays
	if got := answer(t, db, `SELECT COUNT(*) FROM sys.dm_db_wait_stats`); got != "0" {
		t.Errorf("replaced: %q", got)
	}
	if got := answer(t, db, `SELECT wait_category FROM sys.dm_db_wait_stats`); !strings.Contains(got, "Invalid column name") {
		t.Errorf("a column that nobody knows: %q", got)
	}
}

func TestFakeViewOfWhatTheEngineDoesNotModel(t *testing.T) {
	s, db := start(t, Config{})
	const limits = `SELECT primary_max_log_rate, primary_group_max_cpu, last_updated_date_utc, database_name FROM sys.dm_user_db_resource_governance`
	if got := answer(t, db, limits); !strings.Contains(got, "does not model") {
		t.Errorf("before: %q", got)
	}
	f := fake(t, s, FakeView{
		Name:    "sys.dm_user_db_resource_governance",
		Columns: []string{"primary_max_log_rate", "primary_group_max_cpu", "last_updated_date_utc"},
		Rows:    [][]any{{int64(9_437_184), 100.0, time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}},
	})
	if got := answer(t, db, limits); got != "9437184|100|2026-01-02T02:04:05Z|NULL" {
		t.Errorf("faked: %q", got)
	}
	f.Remove()
	if got := answer(t, db, limits); !strings.Contains(got, "does not model") {
		t.Errorf("after: %q", got)
	}
	fake(t, s, FakeView{
		Name:    "sys.dm_os_memory_clerks",
		Columns: []string{"type NVARCHAR(60)", "pages_kb BIGINT", "page_size_in_bytes BIGINT"},
		Rows:    [][]any{{"MEMORYCLERK_SQLBUFFERPOOL", 5, nil}},
	})
	if got := answer(t, db, `SELECT * FROM sys.dm_os_memory_clerks`); got != "MEMORYCLERK_SQLBUFFERPOOL|5|NULL" {
		t.Errorf("with types: %q", got)
	}
}

func TestFakeFunctionGivesTheRowsOfItsArguments(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	id := answer(t, db, `SELECT OBJECT_ID('dbo.t')`)
	fake(t, s, FakeView{
		Name:    "sys.dm_db_index_physical_stats",
		Columns: []string{"object_id", "index_id", "page_count", "avg_page_space_used_in_percent"},
		Rows:    [][]any{{id, 1, 1000, 61.5}, {id, 2, 10, 99.0}, {1, 1, 1, 1.0}},
	})
	for args, want := range map[string]string{
		`NULL, NULL, NULL, NULL`:            "3",
		`DB_ID(), OBJECT_ID('t'), -1, NULL`: "2",
		`DB_ID(), OBJECT_ID('t'), 2, 1`:     "1",
	} {
		if got := answer(t, db, `SELECT COUNT(*) FROM sys.dm_db_index_physical_stats(`+args+`, 'SAMPLED')`); got != want {
			t.Errorf("(%s): %s rows, want %s", args, got, want)
		}
	}
	got := answer(t, db, `SELECT p.avg_page_space_used_in_percent FROM sys.indexes AS i
		CROSS APPLY sys.dm_db_index_physical_stats(DB_ID(), i.object_id, i.index_id, NULL, 'SAMPLED') AS p WHERE i.object_id = OBJECT_ID('t')`)
	if got != "61.5" {
		t.Errorf("applied: %q", got)
	}
}

func TestFakeViewDenied(t *testing.T) {
	for edition, want := range map[Edition]struct {
		first int32
		names string
	}{
		AzureSQLDatabase:  {262, "VIEW DATABASE STATE"},
		ManagedInstance:   {300, "VIEW SERVER STATE"},
		SQLServerStandard: {300, "VIEW SERVER PERFORMANCE STATE"},
	} {
		s, db := start(t, Config{Edition: edition})
		fake(t, s, FakeView{Name: "sys.dm_exec_query_stats", Denied: true})
		_, err := db.ExecContext(t.Context(), `SELECT COUNT(*) FROM sys.dm_exec_query_stats`)
		var sqlErr mssql.Error
		if !errors.As(err, &sqlErr) || sqlErr.Number != 297 || len(sqlErr.All) != 2 || sqlErr.All[0].Number != want.first || !strings.Contains(sqlErr.All[0].Message, want.names) {
			t.Errorf("edition %d: got %v with %+v", edition, err, sqlErr.All)
		}
	}
}

func TestFakeViewError(t *testing.T) {
	s, db := start(t, Config{})
	f := fake(t, s, FakeView{Name: "sys.dm_db_resource_stats", Error: &Error{Number: 40197, Class: 17, Message: "The service has encountered an error"}})
	_, err := db.ExecContext(t.Context(), `SELECT COUNT(*) FROM sys.dm_db_resource_stats`)
	wantNumber(t, err, 40197)
	f.Remove()
	if got := answer(t, db, `SELECT COUNT(*) FROM sys.dm_db_resource_stats`); got != "0" {
		t.Errorf("after: %q", got)
	}
}

func TestFakeViewRefusesMistakes(t *testing.T) {
	azure, _ := start(t, Config{})
	boxed, _ := start(t, Config{Edition: SQLServerEnterprise})
	for name, c := range map[string]struct {
		server *Server
		view   FakeView
	}{
		"no such view":             {azure, FakeView{Name: "sys.dm_db_wait_status"}},
		"a user's table":           {azure, FakeView{Name: "dbo.t", Columns: []string{"a INT"}}},
		"of the other edition":     {azure, FakeView{Name: "sys.dm_os_sys_memory", Columns: []string{"a INT"}}},
		"of Azure":                 {boxed, FakeView{Name: "sys.dm_db_resource_stats"}},
		"a column without a type":  {azure, FakeView{Name: "sys.dm_db_wait_stats", Columns: []string{"wait_category"}}},
		"no columns":               {azure, FakeView{Name: "sys.dm_os_schedulers"}},
		"no such type":             {azure, FakeView{Name: "sys.dm_os_schedulers", Columns: []string{"a INTEGRAL"}}},
		"too few values":           {azure, FakeView{Name: "sys.dm_db_wait_stats", Columns: []string{"wait_type", "wait_time_ms"}, Rows: [][]any{{"X"}}}},
		"a value of a wrong type":  {azure, FakeView{Name: "sys.dm_db_wait_stats", Columns: []string{"wait_time_ms"}, Rows: [][]any{{"long"}}}},
		"a value that SQL has not": {azure, FakeView{Name: "sys.dm_db_wait_stats", Columns: []string{"wait_time_ms"}, Rows: [][]any{{struct{}{}}}}},
		"rows and denied":          {azure, FakeView{Name: "sys.dm_db_wait_stats", Columns: []string{"wait_time_ms"}, Rows: [][]any{{1}}, Denied: true}},
	} {
		if _, err := c.server.FakeView(c.view); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
