package engine

import "testing"

// A name of three parts is looked for where it says, and nothing happens to what has
// the same name here.
func TestNamesOfOtherDatabases(t *testing.T) {
	for _, c := range []struct {
		sql, azure, boxed string
	}{
		{`SELECT COUNT(*) FROM test.dbo.t`, "2", "2"},
		{`SELECT COUNT(*) FROM other.dbo.t`, "error 40515", "error 208"},
		{`SELECT COUNT(*) FROM other..t`, "error 40515", "error 208"},
		{`SELECT COUNT(*) FROM server.test.dbo.t`, "error 40515", "error 7202"},
		{`SELECT COUNT(*) FROM master.dbo.t`, "error 40515", "error 50999"},
		{`SELECT COUNT(*) FROM tempdb.dbo.t`, "error 50999", "error 50999"},
		{`DELETE FROM other.dbo.t`, "error 40515", "error 208"},
		{`TRUNCATE TABLE other.dbo.t`, "error 40515", "error 4701"},
		{`UPDATE STATISTICS other.dbo.t`, "error 40515", "error 2706"},
		{`SET IDENTITY_INSERT other.dbo.t ON`, "error 40515", "error 1088"},
		{`CREATE TABLE other.dbo.n (id INT)`, "error 40515", "error 50999"},
		{`CREATE TRIGGER other.dbo.tr ON dbo.t AFTER INSERT AS SET NOCOUNT ON`, "error 40515", "error 50999"},
		{`DECLARE @x other.dbo.tt`, "error 40515", "error 50999"},
		{`GRANT SELECT ON other.dbo.t TO public`, "error 40515", "error 50999"},
		{`EXEC other.dbo.p`, "error 40515", "error 50999"},
		{`EXEC master.sys.sp_executesql N'SELECT 1'`, "error 40515", "error 50999"},
		{`DECLARE @p NVARCHAR(50) = N'other.dbo.p'; EXEC @p`, "error 40515", "error 50999"},
		{`EXEC server.test.dbo.p`, "error 40515", "error 7202"},
		{`EXEC test.dbo.p`, "7", "7"},
		{`DROP TABLE other.dbo.t`, "error 40515", "error 3701"},
		{`SELECT COUNT(*) FROM t`, "2", "2"},
	} {
		for edition, want := range map[Edition]string{AzureSQLDatabase: c.azure, Enterprise2022: c.boxed} {
			s := open(t, New(Config{Database: "test", Edition: edition}))
			must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY); INSERT t (id) VALUES (1), (2)`)
			must(t, s, `CREATE PROCEDURE p AS SELECT 7`)
			must(t, s, `CREATE TYPE tt AS TABLE (id INT)`)
			if got := run(t, s, c.sql).text(); got != want {
				t.Errorf("%s on edition %d: got %q, want %q", c.sql, edition, got, want)
			}
		}
	}
}
