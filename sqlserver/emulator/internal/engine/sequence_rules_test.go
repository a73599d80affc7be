package engine

import "testing"

// Where NEXT VALUE FOR may not stand (sql-docs, "NEXT VALUE FOR").
func TestNextValueForHasItsPlaces(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE SEQUENCE q START WITH 1; CREATE TABLE t (id BIGINT NOT NULL, v INT NOT NULL); INSERT t (id, v) VALUES (1, 1), (2, 2)`)
	for _, c := range []batch{
		{`SELECT NEXT VALUE FOR q FROM t WHERE id = NEXT VALUE FOR q`, "error 11720"},
		{`SELECT id FROM t ORDER BY NEXT VALUE FOR q`, "error 11720"},
		{`UPDATE t SET v = 1 WHERE id = NEXT VALUE FOR q`, "error 11720"},
		{`DELETE t OUTPUT NEXT VALUE FOR q`, "error 11720"},
		{`SELECT DISTINCT NEXT VALUE FOR q FROM t`, "error 11721"},
		{`SELECT NEXT VALUE FOR q UNION ALL SELECT 1`, "error 11721"},
		{`SELECT TOP (1) NEXT VALUE FOR q FROM t`, "error 11739"},
		{`UPDATE TOP (1) t SET id = NEXT VALUE FOR q`, "error 11739"},
		{`INSERT t (id, v) SELECT NEXT VALUE FOR q, v FROM t ORDER BY v`, "error 11723"},
		{`SELECT n FROM (SELECT NEXT VALUE FOR q AS n) AS x`, "error 11719"},
		{`WITH c AS (SELECT NEXT VALUE FOR q AS n) SELECT n FROM c`, "error 11719"},
		{`SELECT (SELECT NEXT VALUE FOR q)`, "error 11719"},
		{`SELECT CASE WHEN 1 = 1 THEN NEXT VALUE FOR q END`, "error 11741"},
		{`SELECT ISNULL(NEXT VALUE FOR q, 1)`, "error 11741"},
		{`SELECT NEXT VALUE FOR t`, "error 11726"},

		{`SELECT NEXT VALUE FOR q`, "1"},
		{`INSERT t (id, v) SELECT NEXT VALUE FOR q OVER (ORDER BY v DESC), v FROM t ORDER BY v; SELECT id FROM t ORDER BY id`, "1\n2\n2\n3"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

// The last of a range must be within the limits to the number: near 2^63 a float is
// a thousand off.
func TestSequenceRangeUpToTheLimit(t *testing.T) {
	play(t, []batch{
		{`CREATE SEQUENCE q START WITH 9223372036854775800 INCREMENT BY 1`, ""},
		{`DECLARE @r SQL_VARIANT; EXEC sp_sequence_get_range N'q', 9, @r OUTPUT`, "error 11732"},
		{`DECLARE @r SQL_VARIANT, @l SQL_VARIANT; EXEC sp_sequence_get_range N'q', 8, @r OUTPUT, @range_last_value = @l OUTPUT; SELECT CAST(@l AS BIGINT)`, "9223372036854775807"},
		{`SELECT NEXT VALUE FOR q`, "error 11728"},
	})
}
