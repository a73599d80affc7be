package engine

import "testing"

// Mistakes that a statement is easily written with, and SQL Server's answer. The
// numbers are those of sql-docs, "Database Engine events and errors".
func TestMistakes(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a VARCHAR(5) NULL, n INT NOT NULL DEFAULT 0, s TINYINT NOT NULL DEFAULT 0, d DATETIME2(3) NULL,
			bin VARCHAR(10) COLLATE Latin1_General_100_BIN2_UTF8 NULL)
		CREATE INDEX ix ON t (a, id) WHERE s = 0
		CREATE TABLE u (id BIGINT NOT NULL PRIMARY KEY, b VARCHAR(5) NULL, a VARCHAR(5) NULL)
		INSERT t (id, a) VALUES (1, 'a'), (2, 'b')
		INSERT u (id, a) VALUES (1, 'a'), (2, 'b')`)
	must(t, s, `CREATE PROCEDURE none AS SELECT 1`)
	for _, c := range []batch{
		// where an aggregate may not stand, and what it may not hold
		{`SELECT COUNT(*) FROM t WHERE COUNT(*) > 1`, "error 147"},
		{`UPDATE t SET n = COUNT(*)`, "error 157"},
		{`DELETE t OUTPUT COUNT(*)`, "error 158"},
		{`SELECT COUNT(*) FROM t GROUP BY COUNT(*)`, "error 144"},
		{`SELECT t.id FROM t INNER JOIN u ON COUNT(*) = 1`, "error 1015"},
		{`SELECT SUM(COUNT(*)) FROM t`, "error 130"},
		{`SELECT SUM((SELECT 1)) FROM t`, "error 130"},
		{`SELECT q.n FROM t CROSS APPLY (SELECT COUNT(t.id) AS n FROM u) AS q`, "error 4101"},
		{`SELECT (SELECT SUM(t.id + u.id) FROM u) FROM t`, "error 8124"},
		{`SELECT (SELECT COUNT(t.id) FROM u) FROM t`, "error 50999"},
		{`SELECT (SELECT COUNT(u.id) FROM u WHERE u.id <= t.id) FROM t`, "1\n2"},

		// collations
		{`SELECT id FROM t WHERE bin = a`, "error 468"},
		{`SELECT id FROM t WHERE bin + a = 'x'`, "error 468"},
		{`SELECT id FROM t WHERE bin + a = 'x' COLLATE Latin1_General_BIN2`, "error 50999"},
		{`SELECT id FROM t WHERE bin + a = CAST('x' AS VARCHAR(1)) COLLATE Latin1_General_BIN2`, ""},
		{`SELECT bin + a FROM t`, "error 451"},
		{`SELECT CASE WHEN n = 1 THEN a ELSE bin END FROM t`, "error 451"},
		{`SELECT UPPER(COALESCE(a, bin)) FROM t`, "error 451"},
		{`SELECT q.x FROM (SELECT bin + a AS x FROM t) AS q`, "error 451"},
		{`DECLARE @x VARCHAR(20); SELECT @x = ISNULL(bin, 'b') + a FROM t WHERE id = 1; SELECT @x`, "ba"},
		{`SELECT a FROM t UNION ALL SELECT bin FROM t`, "error 451"},
		{`SELECT a FROM t UNION SELECT bin FROM t`, "error 468"},
		{`SELECT a FROM t WHERE id = 1 UNION SELECT 'z'`, "a\nz"},
		{`INSERT u (id, b) SELECT id + 10, a FROM t UNION ALL SELECT id + 20, bin FROM t; DELETE u WHERE id > 10`, ""},

		// assignments within queries, variables, arguments
		{`DECLARE @x INT; INSERT u (id) SELECT @x = 1`, "error 199"},
		{`DECLARE @x INT; SELECT @x = 1 INTO #z`, "error 194"},
		{`DECLARE @x INT; SELECT @x = 1 UNION ALL SELECT 1`, "error 10734"},
		{`DECLARE @x INT; SELECT 1 WHERE 1 = (SELECT @x = 1)`, "error 102"},
		{`DECLARE @x TABLE (id INT); DECLARE @x INT`, "error 134"},
		{`DECLARE @x INT; DECLARE @x TABLE (id INT)`, "error 134"},
		{`EXEC sp_executesql N'SELECT 1' + N'x'`, "error 102"},
		{`THROW 50000, N'a' + N'b', 1`, "error 102"},
		{`RAISERROR (N'a' + N'b', 16, 1)`, "error 102"},
		{`EXEC none 1`, "error 8146"},
		{`PRINT a`, "error 128"},
		{`PRINT (SELECT 1)`, "error 1046"},
		{`CREATE TABLE x (a INT DEFAULT (b), b INT)`, "error 128"},

		// names
		{`UPDATE e SET t.n = 1 FROM t AS e`, "error 4104"},
		{`UPDATE t SET u.n = 1 FROM t INNER JOIN u ON u.id = t.id`, "error 4104"},
		{`UPDATE t SET dbo.t.n = 0, t.s = 0 WHERE id = 1`, ""},
		{`DELETE t OUTPUT id`, "error 207"},
		{`DELETE t OUTPUT (SELECT 1)`, "error 10705"},
		{`WITH c AS (SELECT 1 AS a), C AS (SELECT 2 AS a) SELECT a FROM c`, "error 239"},
		{`WITH c (x) AS (SELECT 1, 2) SELECT x FROM c`, "error 8158"},
		{`WITH c (x, y) AS (SELECT 1) SELECT x FROM c`, "error 8159"},
		{`SELECT TOP (id) id FROM t`, "error 4115"},

		// types
		{`DECLARE @x INT(5)`, "error 2716"},
		{`DECLARE @x NVARCHAR(5000)`, "error 2717"},
		{`DECLARE @x DECIMAL(5, 6)`, "error 192"},
		{`DECLARE @x DECIMAL(300)`, "error 2750"},
		{`SELECT CAST(1 AS nope)`, "error 243"},
		{`SELECT CAST(CAST(1e30 AS FLOAT) AS INT)`, "error 232"},
		{`SELECT 'a' & 'b'`, "error 402"},
		{`SELECT 1.5 & 1`, "error 402"},
		{`DECLARE @x DECIMAL(5, 2) = 1; SELECT TOP (@x) id FROM t`, "error 1060"},
		{`SELECT COUNT(*) FROM (SELECT TOP (9223372036854775807) id FROM t) AS q`, "2"},
		{`SELECT LEFT('abc', -1)`, "error 537"},

		// arguments
		{`SELECT REPLICATE('a', 'x')`, "error 245"},
		{`SELECT REPLICATE('a', '2'), LEFT('abc', 1.9)`, "aa|a"},
		{`SELECT CHARINDEX('a', 'a', d) FROM t`, "error 206"},
		{`SELECT ABS('x')`, "error 8114"},
		{`SELECT ROUND('x', 1)`, "error 8114"},
		{`SELECT FLOOR('1.5'), ABS(-2)`, "1|2"},
		{`SELECT ABS(d) FROM t`, "error 8116"},
		{`SELECT STRING_AGG(a, 1) FROM t`, "error 8116"},
		{`SELECT id FROM t WHERE a LIKE 'a' ESCAPE ''`, "error 506"},
		{`SELECT id FROM t ORDER BY id OFFSET 1.5 ROWS`, "error 10743"},
		{`SELECT id FROM t ORDER BY id OFFSET 0 ROWS FETCH NEXT 1.5 ROWS ONLY`, "error 1060"},

		// tables and indexes
		{`CREATE TABLE x (a INT PRIMARY KEY, b INT PRIMARY KEY)`, "error 8110"},
		{`CREATE INDEX x ON t ()`, "error 102"},
		{`CREATE INDEX x ON t (a) INCLUDE ()`, "error 102"},
		{`CREATE INDEX x ON t (a) WHERE`, "error 102"},
		{`CREATE INDEX x ON t (a) WITH (ONLINE = 1)`, "error 102"},
		{`CREATE TABLE x (a INT, CONSTRAINT c CHECK (a > 1), CONSTRAINT C CHECK (a < 5))`, "error 2714\nerror 1750"},
		{`CREATE TABLE x (a INT CONSTRAINT c DEFAULT 1, CONSTRAINT c CHECK (a < 5))`, "error 2714\nerror 1750"},
		{`CREATE TABLE x (a INT, UNIQUE (b))`, "error 1911\nerror 1750"},
		{`ALTER TABLE t ADD CONSTRAINT c UNIQUE (n)`, "error 1505\nerror 1750"},
		{`ALTER TABLE t ADD CONSTRAINT c PRIMARY KEY (n)`, "error 1779\nerror 1750"},
		{`CREATE TABLE x (a INT IDENTITY NULL)`, "error 8147"},
		{`CREATE TABLE x (a INT, CHECK (COUNT(*) > 1))`, "error 175"},
		{`ALTER TABLE t ALTER COLUMN d INT`, "error 206"},
		{`DELETE sys.objects`, "error 259"},
		{`UPDATE sys.objects SET name = 'x'`, "error 259"},
		{`SELECT id FROM t EXCEPT ALL SELECT id FROM u`, "error 324"},
		{`DROP TYPE nope`, "error 218"},
		{`SELECT value FROM STRING_SPLIT('a')`, "error 313"},
		{`SELECT value FROM GENERATE_SERIES(1, 2, 1, 1)`, "error 8144"},
		{`SET DEADLOCK_PRIORITY 11`, "error 50999"},
		{`SET LOCK_TIMEOUT -2`, "error 50999"},
		{`DECLARE @t TABLE (id INT IDENTITY, v INT); INSERT @t (id, v) VALUES (1, 1)`, "error 1077"},
		{`INSERT t (id, n) VALUES (3, 1), (4)`, "error 10709"},

		// seeks that are asked for
		{`SELECT id FROM t WITH (FORCESEEK (ix)) WHERE a = 'a' AND s = 0`, "error 102"},
		{`SELECT id FROM t WITH (FORCESEEK (ix (a, id, n))) WHERE a = 'a' AND s = 0`, "error 365"},
		{`SELECT id FROM t WITH (FORCESEEK (ix (id))) WHERE a = 'a' AND s = 0`, "error 362"},
		{`SELECT id FROM t WITH (FORCESEEK (ix (a, id))) WHERE a = 'a' AND s = 0`, "error 8622"},
		{`SELECT id FROM t WITH (FORCESEEK (ix (a, id))) WHERE a = 'a' AND s = 0 AND id > 0`, "1"},

		// conditions that are none, conversions that there are none of
		{`SELECT id FROM t WHERE a`, "error 4145"},
		{`SELECT id FROM t WHERE a AND id = 1`, "error 4145"},
		{`DECLARE @x INT; IF @x SELECT 1`, "error 4145"},
		{`SELECT CASE WHEN 1 THEN 2 END`, "error 4145"},
		{`SELECT IIF(1, 2, 3)`, "error 4145"},
		{`IF 1 = 0 SELECT CAST(1 AS DATE)`, "error 529"},
		{`IF 1 = 0 SELECT TRY_CAST(id AS UNIQUEIDENTIFIER) FROM t`, "error 529"},
		{`SELECT CAST(CAST(1 AS SQL_VARIANT) AS BIGINT)`, "1"},
		{`DECLARE @r SQL_VARIANT; EXEC sp_sequence_get_range @sequence = N'q', @range_size = 1, @range_first_value = @r OUTPUT`, "error 8145"},
		{`EXEC sp_getapplock @Resource = 'x', @Mode = 'Exclusive'`, "error 8145"},

		// what is left out or too much
		{`SELECT id FROM t WHERE id = 1 OFFSET 0 ROWS`, "error 102"},
		{`SELECT 1 FROM t INNER JOIN u ON t.id`, "error 102"},
		{`SELECT 1 FROM t INNER JOIN u`, "error 102"},
		{`SELECT 1 FROM t LEFT JOIN u WHERE 1 = 1`, "error 156"},
		{`SELECT 1 FROM t CROSS APPLY`, "error 102"},
		{`SELECT 1 FROM t,`, "error 102"},
		{`SELECT 1 FROM t WHERE`, "error 102"},
		{`SELECT (SELECT 1 FROM t WHERE)`, "error 102"},
		{`SELECT id FROM t ORDER BY`, "error 102"},
		{`DELETE t ORDER BY id`, "error 156"},
		{`INSERT t (id,) VALUES (3)`, "error 102"},
		{`INSERT t (id) VALUES (3),`, "error 102"},
		{`INSERT t (id) VALUES ()`, "error 102"},
		{`DECLARE @n INT = 1; SELECT TOP @n id FROM t`, "error 102"},
		{`SELECT id FROM t OPTION (MAXDOP)`, "error 102"},
		{`SELECT id FROM t OPTION (MAXDOP = 1)`, "error 102"},
		{`SELECT id FROM t OPTION (MAXDOP 1 RECOMPILE)`, "error 102"},
		{`SELECT id FROM t OPTION (RECOMPILE MAXDOP 1)`, "error 102"},
		{`SELECT id FROM t WHERE id = 1 OPTION (MAX_GRANT_PERCENT = 5.5, MAXDOP 1, FAST 10)`, "1"},
		{`BEGIN TRY SELECT 1 END TRY`, "error 102"},
		{`BEGIN TRY SELECT 1 END TRY; BEGIN CATCH SELECT 2 END CATCH`, "error 102"},
		{`BEGIN TRY END TRY BEGIN CATCH SELECT 2 END CATCH`, "error 156"},
		{`BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH END CATCH`, ""},
		{`IF 1 = 1 BEGIN END`, "error 156"},
		{`GRANT SELECT ON t TO`, "error 102"},
		{`SELECT t.id FROM t INNER JOIN (u INNER JOIN t AS x ON x.id = u.id) ON t.id = u.id AND t.id = 1`, "1"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

// What does not compile in dynamic SQL or in a procedure ends that, and its caller
// goes on; with XACT_ABORT nothing does.
func TestErrorsOfInnerModules(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE t (id INT); EXEC ('CREATE PROCEDURE p AS BEGIN SELECT 1; SELECT id FROM nowhere; SELECT 2 END')`, ""},
		{`EXEC ('SELECT nope FROM t'); SELECT 'goes on'`, "error 207\ngoes on"},
		{`EXEC sp_executesql N'SELECT nope FROM t'; SELECT 'goes on'`, "error 207\ngoes on"},
		{`EXEC p; SELECT 'goes on'`, "1\nerror 208\ngoes on"},
		{`EXEC ('THROW 50001, ''x'', 1'); SELECT 'not reached'`, "error 50001"},
		{`BEGIN TRY EXEC ('SELECT nope FROM t') END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH`, "207"},
		{`SET XACT_ABORT ON; BEGIN TRAN; EXEC ('SELECT nope FROM t'); SELECT 'not reached'`, "began\nerror 207\nrolled back"},
	})
}
