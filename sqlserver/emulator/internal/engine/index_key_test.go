package engine

import "testing"

func TestIndexKeysHaveALength(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a VARCHAR(4000) NULL, status TINYINT NOT NULL DEFAULT 0)
		CREATE INDEX ix ON t (a) WHERE status = 0
		CREATE TABLE c (a NVARCHAR(1000) NOT NULL PRIMARY KEY)`)
	for _, c := range []batch{
		{`INSERT t (id, a) VALUES (1, REPLICATE('x', 1700))`, ""},
		{`INSERT t (id, a) VALUES (2, REPLICATE('x', 1701))`, "error 1946"},
		{`UPDATE t SET a = REPLICATE('x', 1701)`, "error 1946"},
		{`INSERT t (id, a, status) VALUES (2, REPLICATE('x', 4000), 1)`, ""},
		{`UPDATE t SET status = 0 WHERE id = 2`, "error 1946"},
		{`INSERT c VALUES (REPLICATE(N'x', 450))`, ""},
		{`INSERT c VALUES (REPLICATE(N'y', 451))`, "error 1946"},

		{`CREATE TABLE n (id INT NULL PRIMARY KEY)`, "error 8111\nerror 1750"},
		{`ALTER INDEX ix ON t REORGANIZE WITH (ONLINE = ON)`, "error 155"},
		{`ALTER INDEX ix ON t REORGANIZE WITH (LOB_COMPACTION = ON)`, ""},
		{`BEGIN TRAN abcdefghijklmnopqrstuvwxyzabcdefg`, "error 103"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}
