package engine

import "testing"

// What SQL Server accepts and the engine does not do is refused by a number of
// its own, never taken for done; what is no T-SQL is 102.
func TestValidButNotModelled(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE x (a INT NOT NULL PRIMARY KEY, b VARCHAR(5) NULL)`)
	for _, sql := range []string{
		`WITH c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT n FROM c`,
		`SELECT TOP (5) PERCENT a FROM x`,
		`SELECT a FROM x ORDER BY a FOR JSON PATH`,
		`SELECT a FROM x FOR XML RAW`,
		`SELECT SUM(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING) FROM x`,
		`SELECT LAG(a) OVER (ORDER BY a) FROM x`,
		`SELECT p.a FROM x AS p FULL JOIN x AS q ON p.a = q.a`,
		`SELECT b, COUNT(*) FROM x GROUP BY ROLLUP (b)`,
		`SELECT a INTO y FROM x`,
		`MERGE x USING x AS y ON x.a = y.a WHEN MATCHED THEN DELETE;`,
		`INSERT x (a) EXEC ('SELECT 1')`,
		`DECLARE c CURSOR FOR SELECT a FROM x`,
		`CREATE VIEW v AS SELECT a FROM x`,
		`CREATE FUNCTION f () RETURNS INT AS BEGIN RETURN 1 END`,
		`CREATE TABLE y (a INT NOT NULL REFERENCES x (a))`,
		`CREATE TABLE y (a INT, b AS a + 1)`,
		`CREATE TABLE ##y (a INT)`,
		`CREATE CLUSTERED COLUMNSTORE INDEX i ON x`,
		`CREATE UNIQUE INDEX i ON x (b) WITH (IGNORE_DUP_KEY = ON)`,
		`SET IMPLICIT_TRANSACTIONS ON`,
		`SET STATISTICS IO ON`,
		`SET DATEFIRST 1`,
		`ALTER DATABASE CURRENT SET QUERY_STORE = ON`,
		`GRANT ALL ON x TO public`,
		`DBCC CHECKDB`,
		`KILL 99`,
		`SELECT a FROM x WHERE a = ANY (SELECT 1)`,
		`SELECT a FROM x WHERE a >= ALL(SELECT 1)`,
		`IF 1 <> SOME (SELECT 1) SELECT 1`,
		`EXEC sp_who2`,
		`EXEC sp_rename 'x', 'y'`,
		`EXEC sys.sp_spaceused 'x'`,
	} {
		if got := run(t, s, sql).text(); got != "error 50999" {
			t.Errorf("%s: %q, want 50999", sql, got)
		}
	}
	for _, sql := range []string{`SELECT a FRM x WHERE`, `UPDATE x SET`, `SELECT 1 OPTION (NOSUCH)`, `CREATE TABLE z (a INT,, b INT)`} {
		if got := run(t, s, sql).text(); got != "error 102" {
			t.Errorf("%s: %q, want 102", sql, got)
		}
	}
}
