package engine

import "testing"

func TestExpressions(t *testing.T) {
	s := open(t, newEngine(t))
	for _, c := range []struct{ expr, want string }{
		{"1 + 2 * 3", "7"},
		{"7 / 2", "3"},
		{"-7 / 2", "-3"},
		{"7 % 3", "1"},
		{"7.0 / 2", "3.500000"},
		{"CAST(7 AS DECIMAL(9,2)) * 2", "14.00"},
		{"'a' + 'b'", "ab"},
		{"'a' + NULL", "NULL"},
		{"N'ü' + 'b'", "üb"},
		{"CONCAT('a', NULL, 1)", "a1"},
		{"CASE WHEN 1 = 2 THEN 'x' WHEN 1 = 1 THEN 'yy' END", "yy"},
		{"CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'c' ELSE 'z' END", "c"},
		{"IIF(1 > 2, 1, 0)", "0"},
		{"ISNULL(NULL, 5)", "5"},
		{"COALESCE(NULL, NULL, 3)", "3"},
		{"NULLIF(1, 1)", "NULL"},
		{"LEN('ab  ')", "2"},
		{"DATALENGTH(N'ab')", "4"},
		{"DATALENGTH(CAST('ü' AS VARCHAR(10)))", "1"},
		{"DATALENGTH(CAST(CAST(N'ü' AS NVARCHAR(5)) COLLATE Latin1_General_100_BIN2_UTF8 AS VARCHAR(10)))", "2"},
		{"CONVERT(VARBINARY(10), 'ü')", "0xFC"},
		{"CONVERT(VARBINARY(10), N'ab')", "0x61006200"},
		{"CONVERT(VARCHAR(30), CAST('2026-01-02T03:04:05.678' AS DATETIME2(3)), 126)", "2026-01-02T03:04:05.678"},
		{"CONVERT(VARCHAR(30), CAST('2026-01-02' AS DATE), 112)", "20260102"},
		{"CONVERT(BIGINT, '42')", "42"},
		{"TRY_CONVERT(INT, 'x')", "NULL"},
		{"TRY_CAST('300' AS TINYINT)", "NULL"},
		{"CAST('x' AS VARCHAR(MAX))", "x"},
		{"SUBSTRING('abcdef', 2, 3)", "bcd"},
		{"LEFT('abc', 2) + RIGHT('abc', 1)", "abc"},
		{"CHARINDEX('B', 'abc')", "2"},
		{"REPLACE('aXa', 'x', 'y')", "aya"},
		{"UPPER('ab') + LOWER('CD')", "ABcd"},
		{"LTRIM(RTRIM('  x  ')) + TRIM(' y ')", "xy"},
		{"REPLICATE('ab', 3)", "ababab"},
		{"QUOTENAME('a]b')", "[a]]b]"},
		{"DATEDIFF(second, '2026-01-01', '2026-01-02')", "86400"},
		{"DATEDIFF_BIG(millisecond, '2026-01-01', '2026-01-02')", "86400000"},
		{"CONVERT(VARCHAR(10), DATEADD(month, 1, CAST('2026-01-31' AS DATE)), 23)", "2026-02-28"},
		{"ISJSON('[1]')", "1"},
		{"ISJSON('{')", "0"},
		{`JSON_VALUE('{"a":{"b":"x"}}', '$.a.b')`, "x"},
		{`JSON_QUERY('{"a":[1,2]}', '$.a')`, "[1,2]"},
		{"ABS(-3)", "3"},
		{"ROUND(2.55, 1)", "2.60"},
		{"FLOOR(2.7)", "2"},
		{"CEILING(2.1)", "3"},
		{"OBJECT_ID('nothing')", "NULL"},
		{"DB_NAME()", "test"},
		{"SCHEMA_NAME()", "dbo"},
		{"SERVERPROPERTY('EngineEdition')", "5"},
		{"COLLATIONPROPERTY('Latin1_General_100_BIN2_UTF8', 'CodePage')", "65001"},
		{"XACT_STATE()", "0"},
		{"@@TRANCOUNT", "0"},
		{"CASE WHEN 'a' = 'A ' THEN 1 ELSE 0 END", "1"},
		{"CASE WHEN 'a' = CAST('A' AS VARCHAR(5)) COLLATE Latin1_General_BIN2 THEN 1 ELSE 0 END", "0"},
		{"CASE WHEN N'é' = N'e' THEN 1 ELSE 0 END", "0"},
		{"CASE WHEN N'é' = UPPER(N'e') COLLATE Latin1_General_CI_AI THEN 1 ELSE 0 END", "1"},
		{"CASE WHEN NULL = NULL THEN 1 ELSE 0 END", "0"},
		{"CASE WHEN NOT (NULL = 1) THEN 1 ELSE 0 END", "0"},
		{"CASE WHEN 'abc' LIKE 'A[a-c]_' THEN 1 ELSE 0 END", "1"},
		{"CASE WHEN 'a%c' LIKE 'a!%c' ESCAPE '!' THEN 1 ELSE 0 END", "1"},
		{"CASE WHEN 5 BETWEEN 1 AND 5 THEN 1 ELSE 0 END", "1"},
		{"CASE WHEN 5 NOT IN (1, NULL) THEN 1 ELSE 0 END", "0"},
		{"CAST(N'ā' AS VARCHAR(5))", "a"},
		{"CAST(N'日本' AS VARCHAR(5))", "??"},
		{"CAST(N'😀' AS VARCHAR(5))", "??"},
		{"'ā'", "a"},
		{"2147483648", "2147483648"},
		{"(SELECT MAX(v) FROM (VALUES (1),(3),(2)) AS x(v))", "3"},
		{"FORMATMESSAGE('%s has %d', 'x', 3)", "x has 3"},
	} {
		if got := run(t, s, "SELECT "+c.expr).text(); got != c.want {
			t.Errorf("%s = %q, want %q", c.expr, got, c.want)
		}
	}
}

func TestConversionErrors(t *testing.T) {
	s := open(t, newEngine(t))
	for _, c := range []struct{ expr, want string }{
		{"CAST('x' AS INT)", "error 245"},
		{"CAST('x' AS BIGINT)", "error 8114"},
		{"CAST('x' AS DATETIME2)", "error 241"},
		{"CAST('x' AS UNIQUEIDENTIFIER)", "error 8169"},
		{"CAST(300 AS TINYINT)", "error 220"},
		{"CAST(99999999999 AS INT)", "error 8115"},
		{"2147483647 + 1", "error 8115"},
		{"1 / 0", "error 8134"},
		{"(SELECT v FROM (VALUES (1),(2)) AS x(v))", "error 512"},
		{"NOSUCH(1)", "error 195"},
		{"LEN()", "error 174"},
		{"@x", "error 137"},
		{"UPPER('a') COLLATE Nowhere_BIN", "error 448"},
		{"'a' COLLATE Latin1_General_BIN2", "error 50999"},
	} {
		if got := run(t, s, "SELECT "+c.expr).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.expr, got, c.want)
		}
	}
}

func TestQueries(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE a (id INT NOT NULL PRIMARY KEY, g VARCHAR(10) NULL, n INT NULL);
		  CREATE TABLE b (id INT NOT NULL PRIMARY KEY, a_id INT NOT NULL, t NVARCHAR(20) NOT NULL);
		  CREATE INDEX IX_b ON b (a_id);
		  INSERT a VALUES (1,'x',10),(2,'x',20),(3,'y',NULL),(4,NULL,5);
		  INSERT b VALUES (1,1,N'p'),(2,1,N'q'),(3,3,N'r')`, ""},
		{`SELECT a.id, b.t FROM a JOIN b ON b.a_id = a.id ORDER BY a.id, b.t`, "1|p\n1|q\n3|r"},
		{`SELECT a.id, b.t FROM a LEFT JOIN b ON b.a_id = a.id WHERE a.id <> 3 ORDER BY a.id DESC, b.t`, "4|NULL\n2|NULL\n1|p\n1|q"},
		{`SELECT a.id FROM a LEFT JOIN b ON b.a_id = a.id WHERE b.id IS NULL ORDER BY 1`, "2\n4"},
		{`SELECT b.id, a.g FROM a RIGHT JOIN b ON b.a_id = a.id AND a.id = 1 ORDER BY b.id`, "1|x\n2|x\n3|NULL"},
		{`SELECT g, COUNT(*), SUM(n), MIN(id), MAX(id), AVG(n) FROM a GROUP BY g ORDER BY g`, "NULL|1|5|4|4|5\nx|2|30|1|2|15\ny|1|NULL|3|3|NULL"},
		{`SELECT g FROM a GROUP BY g HAVING COUNT(*) > 1`, "x"},
		{`SELECT COUNT(*), COUNT(n), COUNT(DISTINCT g), COUNT_BIG(*) FROM a`, "4|3|2|4"},
		{`SELECT COUNT(*) FROM a WHERE id > 100`, "0"},
		{`SELECT DISTINCT g FROM a ORDER BY g DESC`, "y\nx\nNULL"},
		{`SELECT TOP (2) id FROM a ORDER BY id DESC`, "4\n3"},
		{`SELECT id FROM a ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY`, "2\n3"},
		{`SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)`, "1\n3"},
		{`SELECT id FROM a WHERE id IN (SELECT a_id FROM b) AND id NOT IN (3)`, "1"},
		{`SELECT a.id, x.c FROM a CROSS APPLY (SELECT COUNT(*) AS c FROM b WHERE b.a_id = a.id) AS x ORDER BY a.id`, "1|2\n2|0\n3|1\n4|0"},
		{`SELECT a.id, x.t FROM a OUTER APPLY (SELECT TOP 1 t FROM b WHERE b.a_id = a.id ORDER BY t DESC) AS x ORDER BY a.id`, "1|q\n2|NULL\n3|r\n4|NULL"},
		{`WITH c AS (SELECT id, n FROM a WHERE n > 5), d AS (SELECT id FROM c) SELECT d.id FROM d ORDER BY id`, "1\n2"},
		{`SELECT 1 UNION ALL SELECT 1`, "1\n1"},
		{`SELECT 2 AS v UNION SELECT 1 UNION SELECT 2 ORDER BY v`, "1\n2"},
		{`SELECT id FROM a EXCEPT SELECT a_id FROM b`, "2\n4"},
		{`SELECT id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY id DESC) FROM a ORDER BY id`, "1|2\n2|1\n3|1\n4|1"},
		{`SELECT STRING_AGG(t, ',') WITHIN GROUP (ORDER BY t DESC) FROM b`, "r,q,p"},
		{`SELECT value FROM STRING_SPLIT('a,b', ',')`, "a\nb"},
		{`SELECT [key], value, type FROM OPENJSON(N'["a", 1, null, {"x":[]}]')`, "0|a|1\n1|1|2\n2|NULL|0\n3|{\"x\":[]}|5"},
		{`SELECT id, n, j FROM OPENJSON(N'[{"id":1,"s":{"n":"q"},"j":{"a":1}},{"id":2}]') WITH (id BIGINT, n NVARCHAR(10) '$.s.n', j NVARCHAR(MAX) AS JSON)`, "1|q|{\"a\":1}\n2|NULL|NULL"},
		{`SELECT id FROM OPENJSON(N'{"list":[5,6]}', '$.list') WITH (id INT '$')`, "5\n6"},
		{`SELECT g + 'z' FROM a GROUP BY g + 'z' ORDER BY 1`, "NULL\nxz\nyz"},
		{`SELECT id, g FROM a GROUP BY g`, "error 8120"},
		{`SELECT id FROM a JOIN b ON b.a_id = a.id`, "error 209"},
		{`SELECT z.id FROM a`, "error 4104"},
		{`SELECT v.x FROM (VALUES (1, 'p'), (2, 'q')) AS v (x, y) WHERE v.y = 'q'`, "2"},
		{`DECLARE @n INT, @m INT; SELECT @n = id, @m = n FROM a ORDER BY id; SELECT @n, @m, @@ROWCOUNT`, "4|5|4"},
		{`SELECT a.* FROM a WHERE a.g IS NULL`, "4|NULL|5"},
		{`SELECT (SELECT TOP 1 t FROM b WHERE b.a_id = a.id ORDER BY id) FROM a WHERE id < 3 ORDER BY id`, "p\nNULL"},
	})
}

func TestModifications(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE t (id INT IDENTITY(5, 2) NOT NULL PRIMARY KEY, a INT NOT NULL DEFAULT (7), b VARCHAR(5) NULL)`, ""},
		{`INSERT t (b) VALUES ('x'), ('y'); SELECT SCOPE_IDENTITY(), @@IDENTITY, @@ROWCOUNT`, "7|7|2"},
		{`INSERT INTO t DEFAULT VALUES; SELECT id, a, b FROM t`, "5|7|x\n7|7|y\n9|7|NULL"},
		{`INSERT t (a, b) OUTPUT inserted.id, inserted.a SELECT a + id, 'z' FROM t WHERE id > 5`, "11|14\n13|16"},
		{`UPDATE t SET a += 1, b = UPPER(b) OUTPUT deleted.a, inserted.a, inserted.b WHERE id IN (5, 7)`, "7|8|X\n7|8|Y"},
		{`UPDATE TOP (1) t SET b = 'top'; SELECT COUNT(*) FROM t WHERE b = 'top'`, "1"},
		{`DECLARE @o TABLE (id INT PRIMARY KEY, was INT); DELETE FROM t OUTPUT deleted.id, deleted.a INTO @o (id, was) WHERE id >= 11; SELECT * FROM @o; INSERT @o VALUES (11, 0)`, "11|14\n13|16\nerror 2627"},
		{`UPDATE x SET a = 99 FROM t AS x JOIN (VALUES (5), (7)) AS v (id) ON v.id = x.id; SELECT id FROM t WHERE a = 99`, "5\n7"},
		{`WITH c AS (SELECT TOP (1) id, a FROM t ORDER BY id DESC) UPDATE c SET a = 1; SELECT id FROM t WHERE a = 1`, "9"},
		{`WITH c AS (SELECT TOP (1) * FROM t ORDER BY id DESC) DELETE FROM c; SELECT COUNT(*) FROM t`, "2"},
		{`INSERT t (id, a) VALUES (1, 1)`, "error 544"},
		{`SET IDENTITY_INSERT t ON; INSERT t (id, a) VALUES (100, 1); SET IDENTITY_INSERT t OFF; INSERT t (a) VALUES (2); SELECT MAX(id) FROM t`, "102"},
		{`UPDATE t SET b = '123456'`, "error 2628"},
		{`UPDATE t SET b = 'ok   '; SELECT DISTINCT DATALENGTH(b) FROM t`, "5"},
		{`UPDATE t SET nope = 1`, "error 207"},
		{`UPDATE t SET id = 1`, "error 8102"},
		{`INSERT t (a) VALUES (1, 2)`, "error 110"},
		{`DECLARE @v INT; UPDATE t SET @v = a = a + 1 WHERE id = 102; SELECT @v`, "3"},
		{`CREATE TABLE #x (n INT); INSERT #x VALUES (1), (2); SELECT SUM(n) FROM #x; DROP TABLE #x`, "3"},
		{`SELECT id INTO #y FROM t WHERE id < 8; SELECT * FROM #y`, "5\n7"},
		{`DELETE t; SELECT @@ROWCOUNT, COUNT(*) FROM t`, "4|0"},
	})
}

func TestSequences(t *testing.T) {
	play(t, []batch{
		{`CREATE SEQUENCE s AS BIGINT START WITH 1 INCREMENT BY 50 MINVALUE 1 NO CYCLE CACHE 100`, ""},
		{`SELECT NEXT VALUE FOR s; SELECT NEXT VALUE FOR dbo.s`, "1\n51"},
		{`DECLARE @f SQL_VARIANT; EXEC sys.sp_sequence_get_range @sequence_name = N'[dbo].[s]', @range_size = 2, @range_first_value = @f OUTPUT; SELECT CAST(@f AS BIGINT); SELECT NEXT VALUE FOR s`, "101\n201"},
		{`SELECT CAST(start_value AS BIGINT), CAST(increment AS BIGINT), CAST(current_value AS BIGINT), is_cycling, cache_size FROM sys.sequences WHERE object_id = OBJECT_ID('s', 'SO')`, "1|50|201|0|100"},
		{`CREATE TABLE t (id BIGINT PRIMARY KEY, v INT); INSERT t SELECT NEXT VALUE FOR s OVER (ORDER BY v DESC), v FROM (VALUES (1), (2)) AS x (v); SELECT id, v FROM t`, "251|2\n301|1"},
		{`CREATE SEQUENCE tiny AS TINYINT START WITH 254 MAXVALUE 255; SELECT NEXT VALUE FOR tiny; SELECT NEXT VALUE FOR tiny; SELECT NEXT VALUE FOR tiny`, "254\n255\nerror 11728"},
		{`CREATE SEQUENCE s`, "error 2714"},
		{`DROP SEQUENCE IF EXISTS nothing; DROP SEQUENCE s; SELECT OBJECT_ID('s')`, "NULL"},
		{`DROP SEQUENCE s`, "error 3701"},
		{`SELECT NEXT VALUE FOR s`, "error 208"},
	})
}
