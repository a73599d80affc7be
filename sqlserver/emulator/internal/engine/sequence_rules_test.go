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
		{`PRINT NEXT VALUE FOR q`, "error 11738"},
		{`CREATE PROCEDURE p AS RETURN NEXT VALUE FOR q`, "error 11719"},
		{`CREATE TYPE ty AS TABLE (id BIGINT DEFAULT (NEXT VALUE FOR q))`, "error 11719"},
		{`CREATE TABLE u (id BIGINT, CHECK (id > NEXT VALUE FOR q))`, "error 11719"},
		{`CREATE TABLE u (id BIGINT DEFAULT (NEXT VALUE FOR q OVER (ORDER BY id)))`, "error 11717"},
		{`UPDATE t SET id = NEXT VALUE FOR q OVER (ORDER BY id)`, "error 11717"},
		{`SELECT NEXT VALUE FOR q OVER () FROM t`, "error 11718"},
		{`SELECT NEXT VALUE FOR q OVER (PARTITION BY v ORDER BY id) FROM t`, "error 11716"},
		{`SELECT ROW_NUMBER() OVER (ORDER BY NEXT VALUE FOR q) FROM t`, "error 11720"},
		{`SELECT MAX(NEXT VALUE FOR q) FROM t`, "error 11725"},
		{`SELECT value FROM OPENJSON(NEXT VALUE FOR q)`, "error 11724"},
		{`SELECT id FROM t ORDER BY id OFFSET NEXT VALUE FOR q ROWS`, "error 11720"},
		{`DECLARE @a BIGINT, @b BIGINT; SELECT @a = NEXT VALUE FOR q, @b = NEXT VALUE FOR dbo.q + NEXT VALUE FOR q`, "error 11736"},
		{`DECLARE @a BIGINT = NEXT VALUE FOR q + NEXT VALUE FOR q`, "error 11736"},
		{`SELECT NEXT VALUE FOR q, NEXT VALUE FOR q`, "error 50999"},
		{`SET ROWCOUNT 1; SELECT NEXT VALUE FOR q`, "error 11739"},
		{`SET ROWCOUNT 0`, ""},

		{`IF NEXT VALUE FOR q = 1 SELECT 'an IF is none'`, "an IF is none"},
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

// A default may take from a sequence, but not where the rows would not be numbered
// one by one, and it keeps the sequence there.
func TestSequencesOfDefaults(t *testing.T) {
	play(t, []batch{
		{`CREATE SEQUENCE q START WITH 1; CREATE TABLE t (id BIGINT NOT NULL DEFAULT NEXT VALUE FOR q, v BIGINT)`, ""},
		{`INSERT t (v) VALUES (10), (20); SELECT id, v FROM t`, "1|10\n2|20"},
		{`INSERT t (v) VALUES (NEXT VALUE FOR q)`, "error 11731"},
		{`INSERT t (v) SELECT NEXT VALUE FOR q`, "error 50999"},
		{`INSERT t (id, v) VALUES (NEXT VALUE FOR q, 30); SELECT id FROM t WHERE v = 30`, "3"},
		{`INSERT TOP (1) t (v) SELECT v FROM t`, "error 11740"},
		{`INSERT t (v) SELECT TOP (1) v FROM t`, "error 11740"},
		{`SET ROWCOUNT 1; INSERT t (v) VALUES (40)`, "error 11740"},
		{`SET ROWCOUNT 0`, ""},
		{`DROP SEQUENCE q`, "error 3729"},
		{`DROP TABLE t; DROP SEQUENCE q`, ""},
	})
}

func TestSequenceOptions(t *testing.T) {
	play(t, []batch{
		{`CREATE SEQUENCE q INCREMENT BY 0`, "error 11700"},
		{`CREATE SEQUENCE q INCREMENT BY 5 MINVALUE 1 MAXVALUE 3`, "error 11701"},
		{`CREATE SEQUENCE q START WITH 9 MINVALUE 1 MAXVALUE 3`, "error 11703"},
		{`CREATE SEQUENCE q MINVALUE 3 MAXVALUE 1`, "error 11705"},
		{`CREATE SEQUENCE q RESTART WITH 1`, "error 11709"},
		{`CREATE SEQUENCE q START WITH 1 START WITH 2`, "error 11712"},
		{`CREATE SEQUENCE q START WITH 1; CREATE TABLE t (a INT)`, ""},
		{`ALTER SEQUENCE q START WITH 5`, "error 11710"},
		{`ALTER SEQUENCE q AS INT`, "error 11711"},
		{`ALTER SEQUENCE q`, "error 11715"},
		{`ALTER SEQUENCE t RESTART`, "error 11726"},
		{`ALTER SEQUENCE q RESTART WITH 7; SELECT NEXT VALUE FOR q`, "7"},
	})
}
