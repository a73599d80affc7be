package engine

import (
	"context"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/tds"
)

func TestAlterIndexOptions(t *testing.T) {
	const options = `SELECT fill_factor, is_padded, allow_page_locks, optimize_for_sequential_key, is_disabled FROM sys.indexes WHERE name = 'IX'`
	play(t, []batch{
		{smallTable + `; CREATE INDEX IX ON t (v) WITH (FILLFACTOR = 80, PAD_INDEX = ON, ONLINE = ON, MAXDOP = 1, SORT_IN_TEMPDB = ON, DATA_COMPRESSION = NONE)`, ""},
		{options, "80|1|1|0|0"},
		{`ALTER INDEX IX ON t REBUILD; ` + options, "80|1|1|0|0"}, // options that are not named stay
		{`ALTER INDEX IX ON t REBUILD WITH (FILLFACTOR = 95, PAD_INDEX = OFF, ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1 MINUTES, ABORT_AFTER_WAIT = SELF)), RESUMABLE = ON, MAX_DURATION = 5); ` + options, "95|0|1|0|0"},
		{`ALTER INDEX IX ON t SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON, ALLOW_PAGE_LOCKS = OFF); ` + options, "95|0|0|1|0"},
		{`ALTER INDEX ALL ON t SET (ALLOW_PAGE_LOCKS = ON); ` + options, "95|0|1|1|0"},
		{`ALTER INDEX IX ON t SET (FILLFACTOR = 50)`, "error 155"},
		{`ALTER INDEX IX ON t REBUILD WITH (FILLFACTOR = 101)`, "error 129"},
		{`ALTER INDEX IX ON t REBUILD WITH (IGNORE_DUP_KEY = ON)`, "error 50999"},
		{`ALTER INDEX IX ON t SET (ALLOW_ROW_LOCKS = OFF)`, "error 50999"},
		{`ALTER INDEX nope ON t REBUILD`, "error 2727"},
		{`ALTER INDEX IX ON nowhere REBUILD`, "error 1088"},
		{`ALTER INDEX IX ON t REORGANIZE; ` + options, "95|0|1|1|0"},
		{`BEGIN TRAN; ALTER INDEX IX ON t SET (ALLOW_PAGE_LOCKS = OFF); ROLLBACK; ` + options, "began\nrolled back\n95|0|1|1|0"},
		{`ALTER INDEX IX ON t DISABLE; SELECT id FROM t WITH (INDEX(IX))`, "error 315"},
		{`ALTER INDEX IX ON t REBUILD`, ""},
		{`SELECT id FROM t WITH (INDEX(IX))`, ""},
		{`CREATE INDEX IXF ON t (v) WHERE v > 3; SET QUOTED_IDENTIFIER OFF`, ""},
		{`ALTER INDEX IXF ON t REBUILD`, "error 1934"},
	})
}

// Changing the code page of a column changes its text: what the new one lacks is
// lost without an error, what grows past the length is 2628.
func TestAlterColumnLosesWhatTheCodePageLacks(t *testing.T) {
	const bytes = `SELECT CONVERT(VARBINARY(20), c) FROM u ORDER BY id`
	play(t, []batch{
		{`CREATE TABLE u (id INT PRIMARY KEY, c NVARCHAR(10) NULL); INSERT u VALUES (1, N'ü'), (2, N'日本'), (3, N'ā'), (4, NULL)`, ""},
		// NVARCHAR to VARCHAR in code page 1252: unknown characters become '?', some a likeness
		{`ALTER TABLE u ALTER COLUMN c VARCHAR(10) COLLATE SQL_Latin1_General_CP1_CI_AS NULL; ` + bytes, "0xFC\n0x3F3F\n0x61\nNULL"},
		// what is lost stays lost
		{`ALTER TABLE u ALTER COLUMN c NVARCHAR(10) NULL; ` + bytes, "0xFC00\n0x3F003F00\n0x6100\nNULL"},
		{`DELETE u WHERE id > 1; INSERT u VALUES (2, N'日本')`, ""},
		// UTF-8 keeps all of it
		{`ALTER TABLE u ALTER COLUMN c VARCHAR(10) COLLATE Latin1_General_100_BIN2_UTF8 NULL; ` + bytes, "0xC3BC\n0xE697A5E69CAC"},
		// from UTF-8 to 1252 it goes
		{`ALTER TABLE u ALTER COLUMN c VARCHAR(10) COLLATE Latin1_General_100_CI_AS NULL; ` + bytes, "0xFC\n0x3F3F"},
		{`SELECT collation_name, max_length FROM sys.columns WHERE object_id = OBJECT_ID('u') AND name = 'c'`, "Latin1_General_100_CI_AS|10"},
		// the length of a VARCHAR is in bytes: UTF-8 needs more of them
		{`UPDATE u SET c = 'üüü'; ALTER TABLE u ALTER COLUMN c VARCHAR(3) COLLATE Latin1_General_100_CI_AS NULL`, ""},
		{`ALTER TABLE u ALTER COLUMN c VARCHAR(3) COLLATE Latin1_General_100_BIN2_UTF8 NULL`, "error 2628"},
		{bytes, "0xFCFCFC\n0xFCFCFC"}, // a failure changes nothing
		{`ALTER TABLE u ALTER COLUMN c VARCHAR(6) COLLATE Latin1_General_100_BIN2_UTF8 NULL; ` + bytes, "0xC3BCC3BCC3BC\n0xC3BCC3BCC3BC"},
		{`INSERT u VALUES (3, NULL); ALTER TABLE u ALTER COLUMN c VARCHAR(6) NOT NULL`, "error 515"},
		// an index on the column keeps its collation
		{`CREATE INDEX IX ON u (c); ALTER TABLE u ALTER COLUMN c VARCHAR(6) COLLATE Latin1_General_100_CI_AS NULL`, "error 5074\nerror 4922"},
	})
}

func TestSequenceRanges(t *testing.T) {
	const get = `DECLARE @first SQL_VARIANT, @last SQL_VARIANT, @cycles INT, @inc SQL_VARIANT, @min SQL_VARIANT, @max SQL_VARIANT;
		EXEC sp_sequence_get_range N's', 10, @first OUTPUT, @last OUTPUT, @cycles OUTPUT, @inc OUTPUT, @min OUTPUT, @max OUTPUT;
		SELECT CAST(@first AS BIGINT), CAST(@last AS BIGINT), @cycles, CAST(@inc AS BIGINT), CAST(@min AS BIGINT), CAST(@max AS BIGINT)`
	play(t, []batch{
		{`CREATE SEQUENCE s AS BIGINT START WITH 1 INCREMENT BY 5 MINVALUE 1 MAXVALUE 120 NO CYCLE`, ""},
		{get, "1|46|0|5|1|120"},
		{`SELECT NEXT VALUE FOR s`, "51"},
		{get, "56|101|0|5|1|120"},
		{`EXEC sp_sequence_get_range N's', 5`, "error 11732"}, // 106, 111, 116 are left
		{`EXEC sp_sequence_get_range N's', 0`, "error 11733"},
		{`DECLARE @f SQL_VARIANT; EXEC sp_sequence_get_range N's', 3, @f OUTPUT; SELECT CAST(@f AS BIGINT)`, "106"},
		{`SELECT NEXT VALUE FOR s`, "error 11728"},
		{`CREATE SEQUENCE c AS INT START WITH 1 MAXVALUE 3 CYCLE`, ""},
		{`EXEC sp_sequence_get_range N'c', 2`, "error 50999"},
		{`EXEC sp_sequence_get_range N'nothing', 2`, "error 208"},
		// numbers do not roll back
		{`CREATE SEQUENCE r; ALTER SEQUENCE r RESTART WITH 7; BEGIN TRAN; SELECT NEXT VALUE FOR r; ROLLBACK; SELECT NEXT VALUE FOR r`, "began\n7\nrolled back\n8"},
	})
}

// What an unexpected restart leaves of a sequence: the next cache begins where
// the lost one would have ended (sql-docs, "CREATE SEQUENCE").
func TestRestartLosesTheCache(t *testing.T) {
	for _, c := range []struct {
		name, options, takes, want string
	}{
		{"half a cache", "START WITH 1 INCREMENT BY 1 CACHE 10", "SELECT NEXT VALUE FOR s; SELECT NEXT VALUE FOR s", "11"},
		{"a used up cache", "START WITH 1 INCREMENT BY 1 CACHE 2", "SELECT NEXT VALUE FOR s; SELECT NEXT VALUE FOR s", "3"},
		{"an untouched one", "START WITH 1 INCREMENT BY 1 CACHE 10", "SELECT 0", "1"},
		{"an increment", "START WITH 1 INCREMENT BY 50 CACHE 10", "SELECT NEXT VALUE FOR s", "501"},
		{"no cache", "START WITH 1 INCREMENT BY 1 NO CACHE", "SELECT NEXT VALUE FOR s", "2"},
		{"a default one", "START WITH 1 INCREMENT BY 1", "SELECT NEXT VALUE FOR s", "51"},
		{"a range past the cache", "START WITH 1 INCREMENT BY 1 CACHE 10", "SELECT NEXT VALUE FOR s; EXEC sp_sequence_get_range N's', 20", "22"},
		{"a range within it", "START WITH 1 INCREMENT BY 1 CACHE 10", "SELECT NEXT VALUE FOR s; EXEC sp_sequence_get_range N's', 4", "11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t)
			s := login(t, e)
			must(t, s, `CREATE SEQUENCE s AS BIGINT `+c.options)
			must(t, s, c.takes)
			restart(t, e, s.Close)
			if got := must(t, open(t, e), `SELECT NEXT VALUE FOR s`).text(); got != c.want {
				t.Errorf("after the restart: %s, want %s", got, c.want)
			}
		})
	}
}

// What else a restart leaves: committed rows; no plans, no counters, no locks.
func TestRestartKeepsWhatIsCommitted(t *testing.T) {
	e := newEngine(t)
	s := login(t, e)
	must(t, s, smallTable+`; INSERT t VALUES (1, 1)`)
	must(t, s, `/*MARK*/ SELECT v FROM t WHERE id = 1`)
	must(t, s, `BEGIN TRAN; INSERT t VALUES (2, 2)`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Restart(ctx, func() {}); err == nil {
		t.Error("a restart passed over an open session")
	}
	restart(t, e, s.Close)
	s = open(t, e)
	if got := must(t, s, `SELECT COUNT(*) FROM sys.dm_db_index_usage_stats; SELECT COUNT(*) FROM sys.dm_tran_locks; SELECT COUNT(*)`+ofStatement).text(); got != "0\n0\n0" {
		t.Errorf("left over: %q", got)
	}
	if got := must(t, s, `SELECT id FROM t`).text(); got != "1" {
		t.Errorf("rows: %q", got)
	}
}

func restart(t *testing.T, e *Engine, kick func()) {
	t.Helper()
	if err := e.Restart(t.Context(), kick); err != nil {
		t.Fatal(err)
	}
}

// login is open for a session that the test closes.
func login(t *testing.T, e *Engine) tds.Session {
	t.Helper()
	s, err := e.Login(t.Context(), tds.Login{User: "sa", Database: "test", ODBC: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a transaction has made, emptied, changed or rebuilt is nobody else's
// until it ends, and who waited for it sees what it left.
func TestOthersWaitForDDL(t *testing.T) {
	for _, c := range []struct{ ddl, other, committed, rolledBack string }{
		{`CREATE TABLE z (a INT); INSERT z VALUES (5)`, `SELECT a FROM z`, "5", "error 208"},
		{`CREATE TABLE z (a INT)`, `INSERT z VALUES (2); SELECT COUNT(*) FROM z`, "1", "error 208"},
		{`TRUNCATE TABLE t`, `SELECT id FROM t`, "", "1"},
		{`TRUNCATE TABLE t`, `INSERT t VALUES (7, 7); SELECT COUNT(*) FROM t`, "1", "2"},
		{`ALTER TABLE t ADD n INT NULL`, `SELECT * FROM t`, "1|1|NULL", "1|1"},
		{`ALTER INDEX ALL ON t REBUILD`, `SELECT id FROM t`, "1", "1"},
		{`CREATE INDEX I ON t (v)`, `UPDATE t SET v = 3; SELECT v FROM t`, "3", "3"},
	} {
		for _, end := range []string{"COMMIT", "ROLLBACK"} {
			e := newEngine(t)
			a, b := open(t, e), open(t, e)
			must(t, a, smallTable+`; INSERT t VALUES (1, 1)`)
			must(t, a, `BEGIN TRAN`)
			must(t, a, c.ddl)
			done := start(b, c.other)
			untilWaiting(t, e)
			must(t, a, end)
			want := c.committed
			if end == "ROLLBACK" {
				want = c.rolledBack
			}
			if got := (<-done).text(); got != want {
				t.Errorf("%s, %s: %q got %q, want %q", c.ddl, end, c.other, got, want)
			}
		}
	}
}
