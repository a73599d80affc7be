package engine

import (
	"fmt"
	"testing"
)

func TestIndexKeysHaveALength(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a VARCHAR(4000) NULL, b CHAR(1800) NULL, status TINYINT NOT NULL DEFAULT 0)
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

		{`ALTER INDEX ix ON t REORGANIZE WITH (ONLINE = ON)`, "error 155"},
		{`ALTER INDEX ix ON t REORGANIZE WITH (LOB_COMPACTION = ON)`, ""},

		// over rows that are there
		{`CREATE INDEX ix2 ON t (a)`, longKey("nonclustered", 1700, "ix2", 4000) + "\nerror 1946"},
		{`CREATE INDEX ix2 ON t (a) WHERE status = 0`, longKey("nonclustered", 1700, "ix2", 4000)},
		{`ALTER INDEX ix2 ON t DISABLE; ALTER INDEX ix ON t DISABLE; UPDATE t SET status = 0 WHERE id = 2`, ""},
		{`ALTER INDEX ix2 ON t REBUILD`, "error 1946"},
		{`CREATE INDEX ix3 ON t (b)`, "error 1944"},
		{`CREATE INDEX ix3 ON t (id) INCLUDE (a, b)`, ""},
		{`ALTER TABLE t ADD CONSTRAINT uq UNIQUE (id, a)`, longKey("nonclustered", 1700, "uq", 4004) + "\nerror 1946\nerror 1750"},
		{`CREATE TABLE d (a VARCHAR(901) NOT NULL CONSTRAINT pk_d PRIMARY KEY)`, longKey("clustered", 900, "pk_d", 901)},
		{`INSERT d VALUES (REPLICATE('x', 901))`, "error 1946"},

		{`CREATE TABLE n (id INT NULL PRIMARY KEY)`, "error 8111\nerror 1750"},
		{`BEGIN TRAN abcdefghijklmnopqrstuvwxyzabcdefg`, "error 103"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

func longKey(kind string, limit int, index string, length int) string {
	return fmt.Sprintf("info Warning! The maximum key length for a %s index is %d bytes. The index '%s' has maximum length of %d bytes. For some combination of large values, the insert/update operation will fail.", kind, limit, index, length)
}
