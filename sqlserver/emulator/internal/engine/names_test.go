package engine

import "testing"

// Whether an object is there is known when the transaction that creates or drops
// it has ended; until then others wait for it, no longer than LOCK_TIMEOUT.
func TestOthersWaitForNames(t *testing.T) {
	const objects = `CREATE TABLE t (id INT NOT NULL); INSERT t VALUES (1); CREATE SEQUENCE q START WITH 1; CREATE TYPE ty AS TABLE (a INT)`
	for _, c := range []struct{ name, change, asks, undone, done string }{
		{"drop of a table", `DROP TABLE t`, `SELECT id FROM t`, "1", "error 208"},
		{"drop of a table, by its drop", `DROP TABLE t`, `DROP TABLE IF EXISTS t; SELECT 2`, "2", "2"},
		{"create of a table", `CREATE TABLE new (a INT)`, `SELECT COUNT(*) FROM new`, "error 208", "0"},
		{"create of a table, by its create", `CREATE TABLE new (a INT)`, `CREATE TABLE new (b INT)`, "", "error 2714"},
		{"drop of a procedure", `DROP PROCEDURE p`, `EXEC p`, "1", "error 2812"},
		{"create of a procedure", `EXEC ('CREATE PROCEDURE new AS SELECT 5')`, `EXEC new`, "error 2812", "5"},
		{"create or alter of a procedure", `EXEC ('CREATE OR ALTER PROCEDURE p AS SELECT 5')`, `EXEC p`, "1", "5"},
		{"drop of a sequence", `DROP SEQUENCE q`, `SELECT NEXT VALUE FOR q`, "1", "error 208"},
		{"create of a sequence", `CREATE SEQUENCE new START WITH 7`, `EXEC sp_sequence_get_range 'new', 1; SELECT 1`, "error 208", "1"},
		{"drop of a type", `DROP TYPE ty`, `DROP TYPE ty`, "", "error 218"},
		{"create of a schema", `EXEC ('CREATE SCHEMA s')`, `CREATE TABLE s.t (a INT)`, "error 2760", ""},
		{"drop of a trigger", `DROP TRIGGER tr`, `DROP TRIGGER IF EXISTS tr`, "", ""},
		{"drop of a table with a trigger", `DROP TABLE t`, `DROP TRIGGER tr`, "", "error 3701"},
	} {
		for _, end := range []struct{ sql, want string }{{`ROLLBACK`, c.undone}, {`COMMIT`, c.done}} {
			e := newEngine(t)
			a, b := open(t, e), open(t, e)
			must(t, a, objects)
			must(t, a, `CREATE PROCEDURE p AS SELECT 1`)
			must(t, a, `CREATE TRIGGER tr ON t AFTER INSERT AS SET NOCOUNT ON`)
			must(t, a, `BEGIN TRAN; `+c.change)
			if got := run(t, b, `SET LOCK_TIMEOUT 0; BEGIN TRY EXEC (N'`+quoted(c.asks)+`') END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH`).text(); got != "1222" {
				t.Errorf("%s: meanwhile %q, want 1222", c.name, got)
			}
			answer := make(chan *recorder)
			go func() { answer <- run(t, b, `SET LOCK_TIMEOUT -1; EXEC (N'`+quoted(c.asks)+`')`) }()
			untilWaiting(t, e)
			must(t, a, end.sql)
			if got := (<-answer).text(); got != end.want {
				t.Errorf("%s, %s: %q, want %q", c.name, end.sql, got, end.want)
			}
		}
	}
}

func quoted(s string) string {
	var out []byte
	for i := range len(s) {
		if s[i] == '\'' {
			out = append(out, '\'')
		}
		out = append(out, s[i])
	}
	return string(out)
}
