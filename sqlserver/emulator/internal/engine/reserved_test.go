package engine

import "testing"

// What the parser lets through is refused: a keyword as an alias, an alias that was
// left out, a list or a clause that breaks off.
func TestWordsThatNameNothing(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT NOT NULL); INSERT t (id, v) VALUES (1, 1)`)
	for _, c := range []batch{
		{`SELECT * FROM (SELECT id FROM t) AS OPTION (RECOMPILE)`, "error 156"},
		{`SELECT * FROM (SELECT id FROM t) OPTION (RECOMPILE)`, "error 102"},
		{`SELECT * FROM (SELECT id FROM t)`, "error 102"},
		{`SELECT * FROM (SELECT id FROM t) AS`, "error 156"},
		{`SELECT id FROM (VALUES (1)) AS PLAN (id)`, "error 156"},
		{`SELECT id FROM t AS WHERE id = 1`, "error 156"},
		{`SELECT * FROM OPENJSON('[1]') AS INDEX`, "error 156"},
		{`SELECT id AS PERCENT FROM t`, "error 156"},
		{`SELECT id AS FROM t`, "error 156"},
		{`SELECT 1 AS`, "error 156"},
		{`SELECT 1 AS;`, "error 102"},
		{`SELECT * FROM t, WHERE 1 = 1`, "error 156"},
		{`SELECT id, FROM t`, "error 156"},
		{`SELECT id FROM t OPTION ()`, "error 102"},
		{`WITH c AS (SELECT id FROM t) OPTION (RECOMPILE) SELECT id FROM c`, "error 156"},

		{`SELECT x.[option] FROM (SELECT id AS [option] FROM t) AS x OPTION (RECOMPILE)`, "1"},
		{`SELECT [plan].id FROM t AS [plan]`, "1"},
		{`SELECT 'a' AS 'key'`, "a"},
		{`SELECT CAST(1 AS BIGINT) AS value`, "1"},
		{`CREATE PROCEDURE p AS IF 1 = 1 SELECT 3`, ""},
		{`EXEC p`, "3"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}
