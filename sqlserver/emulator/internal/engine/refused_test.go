package engine

import (
	"strings"
	"testing"
)

// Statements that look right and that SQL Server refuses all the same.
func TestRefusedAsBySQLServer(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a VARCHAR(5) NULL, bt BIT NULL, g UNIQUEIDENTIFIER NULL, d DATETIME2(3) NULL)
		INSERT t (id, a) VALUES (1, 'a'), (2, 'b')`)
	for _, c := range []batch{
		// of one type that has no such operator; of two that do not go together
		{`SELECT bt + bt FROM t`, "error 8117"},
		{`SELECT a - a FROM t`, "error 8117"},
		{`SELECT g + g FROM t`, "error 8117"},
		{`SELECT d + 1 FROM t`, "error 206"},
		{`SELECT bt + 1 FROM t WHERE id = 1`, "NULL"},

		// a NULL of no type
		{`SELECT CASE WHEN 1 = 1 THEN NULL ELSE NULL END`, "error 8133"},
		{`SELECT IIF(1 = 1, NULL, NULL)`, "error 8133"},
		{`SELECT COALESCE(NULL, NULL)`, "error 4127"},
		{`SELECT NULLIF(NULL, 1)`, "error 4151"},

		// limits of rows
		{`SELECT TOP (-1) id FROM t`, "error 127"},
		{`DECLARE @n INT; SELECT TOP (@n) id FROM t`, "error 1014"},
		{`SELECT TOP (NULL) id FROM t`, "error 1060"},
		{`DECLARE @n INT = -1; DELETE TOP (@n) FROM t`, "error 127"},
		{`DELETE TOP 1 FROM t`, "error 102"},
		{`UPDATE TOP 1 t SET a = 'x'`, "error 102"},
		{`SELECT TOP 1 id FROM t`, "1"},
		{`SELECT id FROM t ORDER BY id OFFSET 0 ROWS FETCH NEXT 0 ROWS ONLY`, "error 10744"},
		{`DECLARE @n INT; SELECT id FROM t ORDER BY id OFFSET @n ROWS`, "error 10743"},
		{`SELECT TOP (1) id FROM t ORDER BY id OFFSET 0 ROWS`, "error 10741"},

		// queries within queries
		{`SELECT id FROM (SELECT id FROM t ORDER BY id) AS q`, "error 1033"},
		{`WITH c AS (SELECT id FROM t ORDER BY id) SELECT id FROM c`, "error 1033"},
		{`SELECT 1 WHERE 1 IN (SELECT id FROM t ORDER BY id)`, "error 1033"},
		{`SELECT id FROM (SELECT TOP (1) id FROM t ORDER BY id DESC) AS q`, "2"},
		{`SELECT * FROM (SELECT id, a AS ID FROM t) AS q`, "error 8156"},
		{`SELECT 1 FROM t AS x, t AS X`, "error 1011"},
		{`SELECT 1 FROM t, t AS T`, "error 1012"},
		{`SELECT 1 FROM t INNER JOIN dbo.t ON 1 = 1`, "error 1013"},
		{`SELECT a FROM t GROUP BY a ORDER BY id`, "error 8127"},
		{`SELECT a FROM t GROUP BY a HAVING id > 1`, "error 8121"},

		{`SELECT COUNT(*) FROM t GROUP BY 1`, "error 164"},
		{`SELECT id FROM t ORDER BY 'x'`, "error 408"},
		{`SELECT id FROM t ORDER BY a, id, t.A`, "error 169"},
		{`SELECT id AS x, a AS x FROM t ORDER BY x`, "error 209"},
		{`SELECT id AS x, id AS x FROM t WHERE id = 1 ORDER BY x`, "1|1"},
		{`SELECT ROW_NUMBER() OVER (ORDER BY 'x') FROM t`, "error 5309"},
		{`SELECT COUNT(DISTINCT *) FROM t`, "error 102"},
		{`SELECT MAX(NULL) FROM t`, "error 8117"},
		{`SELECT id FROM t WHERE a LIKE 'x' ESCAPE 'yy'`, "error 506"},

		// what cannot be changed, or not so
		{`INSERT t VALUES (3, 'a')`, "error 213"},
		{`INSERT t (id, a) VALUES (3)`, "error 109"},
		{`INSERT t (id, a) SELECT 3`, "error 120"},
		{`INSERT t (id) SELECT 3, 'a'`, "error 121"},
		{`CREATE TABLE ident (id INT IDENTITY, a INT); INSERT ident VALUES (1, 1)`, "error 8101"},
		{`UPDATE t SET a = 'x', A = 'y'`, "error 264"},
		{`WITH c AS (SELECT DISTINCT a FROM t) DELETE c`, "error 4403"},
		{`WITH c AS (SELECT a, COUNT(*) AS n FROM t GROUP BY a) UPDATE c SET a = 'x'`, "error 4403"},
		{`WITH c AS (SELECT x.id FROM t AS x INNER JOIN t AS y ON y.id = x.id) DELETE c`, "error 4405"},
		{`WITH c AS (SELECT x.a FROM t AS x INNER JOIN t AS y ON y.id = x.id AND x.id = 1) UPDATE c SET a = 'x'; SELECT a FROM t WHERE id = 1`, "x"},

		// statements that must begin after a semicolon
		{`SELECT 1 WITH c AS (SELECT 2 AS n) SELECT n FROM c`, "error 319"},
		{`SELECT 1 /* ; */ WITH c AS (SELECT 2 AS n) SELECT n FROM c`, "error 319"},
		{`SELECT 1; /* x */ WITH c AS (SELECT 2 AS n) SELECT n FROM c`, "1\n2"},
		{`BEGIN WITH c AS (SELECT 2 AS n) SELECT n FROM c END`, "2"},
		{`PRINT 'x' THROW 50001, 'm', 1`, "error 102"},
		{`IF 1 = 1 THROW 50001, 'm', 1`, "error 50001"},

		// hints
		{`DELETE t WITH (NOLOCK)`, "error 1065"},
		{`UPDATE t WITH (READUNCOMMITTED) SET a = 'x'`, "error 1065"},
		{`INSERT t WITH (NOLOCK) (id) VALUES (9)`, "error 1065"},
		{`INSERT t WITH (READPAST) (id) VALUES (9)`, "error 4102"},
		{`INSERT t WITH (INDEX(ix)) (id) VALUES (9)`, "error 1069"},
		{`DELETE t WITH (INDEX(1)) WHERE id = 9`, "error 1069"},
		{`UPDATE t WITH (FORCESEEK) SET a = 'x' WHERE id = 9`, "error 10724"},
		{`DELETE t WITH (FORCESCAN)`, "error 10745"},
		{`SELECT 1 FROM t WITH (FORCESEEK, FORCESCAN) WHERE id = 1`, "error 10746"},
		{`SELECT id FROM t OPTION (MAXDOP 1, MAXDOP 2)`, "error 1042"},
		{`SELECT id FROM t OPTION (FAST 1, FAST 2)`, "error 1042"},
		{`DECLARE @n INT = 1; SELECT id FROM t OPTION (MAXDOP @n)`, "error 102"},
		{`SELECT id FROM t WHERE id = 1 OPTION (MAXDOP 1, MAXDOP 1, RECOMPILE)`, "1"},
		{`SELECT id FROM t OPTION (USE HINT ('NO_SUCH_HINT'))`, "error 50999"},
		{`SELECT id FROM t OPTION (TABLE HINT (t, INDEX(nope)))`, "error 50999"},
		{`SELECT 1 FROM t AS x INNER LOOP JOIN t AS y ON x.id = y.id OPTION (HASH JOIN)`, "error 1042"},
		{`SELECT 1 FROM t AS x INNER JOIN t AS y ON x.id > y.id OPTION (HASH JOIN, MERGE JOIN)`, "error 8622"},
		{`SELECT 1 FROM t AS x INNER JOIN t AS y ON x.id > y.id OPTION (HASH JOIN, LOOP JOIN)`, "1"},
		{`DELETE x FROM t AS x INNER LOOP JOIN t AS y ON x.id = y.id OPTION (HASH JOIN)`, "error 1042"},
		{`INSERT t (id) SELECT x.id FROM t AS x INNER LOOP JOIN t AS y ON x.id = y.id OPTION (HASH JOIN)`, "error 1042"},
		{`SELECT 1 FROM t WITH (ROWLOCK, TABLOCK)`, "error 1047"},
		{`SELECT 1 FROM t WITH (ROWLOCK, PAGLOCK)`, "error 1047"},
		{`SELECT 1 FROM t WITH (SERIALIZABLE, REPEATABLEREAD)`, "error 1047"},
		{`SELECT 1 FROM t WITH (READCOMMITTEDLOCK, HOLDLOCK)`, "error 1047"},
		{`SELECT 1 FROM t WITH (TABLOCK, TABLOCKX)`, "error 1047"},
		{`SELECT 1 FROM t WITH (UPDLOCK, XLOCK)`, "error 1047"},
		{`SELECT 1 FROM t WITH (NOLOCK, ROWLOCK)`, "error 1047"},
		{`SELECT 1 FROM t WITH (NOLOCK, READPAST)`, "error 650"},
		{`SELECT 1 FROM t WITH (SNAPSHOT)`, "error 367"},
		{`SELECT id FROM t WITH (UPDLOCK, HOLDLOCK, TABLOCK, NOWAIT) WHERE id = 1`, "1"},
		{`SELECT id FROM t WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE id = 1`, "1"},
		{`SELECT 1 FROM t AS x INNER HASH JOIN t AS y ON x.id > y.id`, "error 8622"},
		{`SELECT x.id FROM t AS x INNER HASH JOIN t AS y ON x.id = y.id AND x.id > 1`, "2"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

// An identifier has at most 128 UTF-16 characters, a #table 116 (sql-docs,
// "Database identifiers"); bytes do not count.
func TestIdentifiersCountCharacters(t *testing.T) {
	s := open(t, newEngine(t))
	wide := func(n int) string { return strings.Repeat("ü", n) }
	for _, c := range []struct{ name, sql, want string }{
		{"128 of two bytes", `CREATE TABLE [` + wide(128) + `] (a INT)`, ""},
		{"129", `CREATE TABLE [` + wide(129) + `] (a INT)`, "error 103"},
		{"64 outside the BMP", `CREATE TABLE [` + strings.Repeat("😀", 64) + `] (a INT)`, ""},
		{"65 outside the BMP", `CREATE TABLE [` + strings.Repeat("😀", 65) + `] (a INT)`, "error 103"},
		{"a bracket counts once", `SELECT 1 AS [` + strings.Repeat("]]", 128) + `]`, "1"},
		{"an alias", `SELECT 1 AS ` + wide(129), "error 103"},
		{"a variable with its @", `DECLARE @` + wide(128) + ` INT`, "error 103"},
		{"a text is none", `SELECT LEN('` + wide(200) + `')`, "200"},
		{"a number is none", `SELECT DATALENGTH(0x` + strings.Repeat("00", 200) + `)`, "200"},
		{"a #table of 116", `CREATE TABLE #` + wide(115) + ` (a INT)`, ""},
		{"a #table of 117", `CREATE TABLE #` + wide(116) + ` (a INT)`, "error 193"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTransactionIDOfAStatement(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT); INSERT t VALUES (1), (2), (3)`)
	for _, c := range []batch{
		{`SELECT COUNT(DISTINCT CURRENT_TRANSACTION_ID()) FROM t`, "1"},
		{`DECLARE @a BIGINT = CURRENT_TRANSACTION_ID(), @b BIGINT = CURRENT_TRANSACTION_ID(); SELECT IIF(@a < @b, 1, 0)`, "1"},
		{`BEGIN TRAN; DECLARE @a BIGINT = CURRENT_TRANSACTION_ID(), @b BIGINT = CURRENT_TRANSACTION_ID(); SELECT IIF(@a = @b, 1, 0); COMMIT`, "began\n1\ncommitted"},
	} {
		if got := must(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

// REPLICATE and REPLACE cut at 8,000 bytes what is not MAX (sql-docs, of each).
func TestTextFunctionsStopAt8000Bytes(t *testing.T) {
	play(t, []batch{
		{`SELECT DATALENGTH(REPLICATE('a', 9000)), DATALENGTH(REPLICATE(N'a', 9000))`, "8000|8000"},
		{`SELECT DATALENGTH(REPLICATE(CAST('a' AS VARCHAR(MAX)), 9000))`, "9000"},
		{`SELECT DATALENGTH(REPLACE(REPLICATE('a', 8000), 'a', 'bb'))`, "8000"},
	})
}
