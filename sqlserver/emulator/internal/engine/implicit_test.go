package engine

import "testing"

// What goes into a column, a variable or a parameter is converted only where the
// chart of sql-docs, "CAST and CONVERT", says so.
func TestImplicitConversions(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NULL, a VARCHAR(20) NULL, b VARBINARY(20) NULL, d DATETIME2(3) NULL, o DATETIME NULL, g UNIQUEIDENTIFIER NULL)`)
	must(t, s, `CREATE PROCEDURE p @b VARBINARY(20) AS SELECT 1`)
	for _, c := range []batch{
		{`INSERT t (b) VALUES ('abc')`, "error 257"},
		{`INSERT t (b) SELECT N'abc'`, "error 257"},
		{`UPDATE t SET b = a`, "error 257"},
		{`DECLARE @b VARBINARY(20) = 'abc'`, "error 257"},
		{`DECLARE @b VARBINARY(20); SET @b = 'abc'`, "error 257"},
		{`DECLARE @b VARBINARY(20); SELECT @b = a FROM t`, "error 257"},
		{`DECLARE @o TABLE (b VARBINARY(20)); DELETE t OUTPUT deleted.a INTO @o`, "error 257"},
		{`EXEC p 'abc'`, "error 257"},
		{`DECLARE @v SQL_VARIANT = 1, @n INT; SET @n = @v`, "error 257"},
		{`INSERT t (id) VALUES (GETDATE())`, "error 257"},
		{`INSERT t (id) VALUES (SYSUTCDATETIME())`, "error 206"},
		{`INSERT t (d) VALUES (1)`, "error 206"},
		{`INSERT t (g) VALUES (1)`, "error 206"},
		{`INSERT t (g) SELECT x.a FROM (SELECT NULL AS a) AS x`, "error 206"},

		{`INSERT t (id, a, b, d, o, g) VALUES ('1', 0x61, 7, '2026-01-01', 1, 0x01)`, ""},
		{`INSERT t (g) SELECT NULL UNION ALL SELECT NEWID()`, ""},
		{`UPDATE t SET b = CAST(a AS VARBINARY(20)), d = o, g = NULL`, ""},
		{`EXEC p 0x01`, "1"},
		{`DECLARE @v SQL_VARIANT = 1, @n INT; SET @n = CAST(@v AS INT); SELECT @n`, "1"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}
