package engine

import (
	"context"
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// What a plan reads shows in what it locks.
const keyLocks = `SELECT i.name, COUNT(*) FROM sys.dm_tran_locks AS l
	JOIN sys.partitions AS p ON p.hobt_id = l.resource_associated_entity_id
	JOIN sys.indexes AS i ON i.object_id = p.object_id AND i.index_id = p.index_id
	WHERE l.resource_type = 'KEY' AND l.request_session_id = @@SPID GROUP BY i.name ORDER BY i.name`

func TestPlansLockOnlyWhatTheyNeed(t *testing.T) {
	for _, c := range []struct{ name, sql, want string }{
		{
			"a claim through the covering index", `SELECT TOP (2) id, payload FROM e WITH (UPDLOCK, ROWLOCK) WHERE event_type = 'a' AND status = 0 ORDER BY id`,
			"IX_claim|2",
		},
		{
			"a claim that needs the base row", `SELECT TOP (2) id, processed_at FROM e WITH (INDEX(IX_claim), UPDLOCK, ROWLOCK) WHERE event_type = 'a' AND status = 0 ORDER BY id`,
			"IX_claim|2\nPK_e|2",
		},
		{
			"backwards", `SELECT TOP (1) id FROM e WITH (UPDLOCK) WHERE event_type = 'a' AND status = 0 AND id < 90 ORDER BY id DESC`,
			"IX_claim|1",
		},
		{
			"an update by keys from JSON", `UPDATE x SET retry_count = 1 FROM e AS x JOIN OPENJSON('[3,5,7]') WITH (id BIGINT '$') AS c ON x.id = c.id`,
			"IX_claim|3\nPK_e|3",
		},
		{
			"an update that leaves the filtered index", `UPDATE e SET status = 1 WHERE id = 4`,
			"IX_claim|1\nPK_e|1",
		},
		{
			"a parameter never matches the filter", `DECLARE @s TINYINT = 0; SELECT TOP (1) id FROM e WITH (UPDLOCK) WHERE status = @s AND event_type = 'a' ORDER BY id`,
			"PK_e|1",
		},
		{
			"rows that do not qualify are given back", `UPDATE e SET retry_count = 2 WHERE payload = 'p17'`,
			"IX_claim|1\nPK_e|1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, newEngine(t))
			must(t, s, outboxTable)
			must(t, s, `INSERT e (id, event_type, payload) SELECT value, 'a', CONCAT('p', value) FROM GENERATE_SERIES(1, 100)`)
			must(t, s, `BEGIN TRAN; `+c.sql)
			if got := must(t, s, keyLocks).text(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// An nvarchar value cannot seek a varchar column under a SQL collation.
func TestImplicitConversionKeepsFromSeeking(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE s (k VARCHAR(10) NOT NULL PRIMARY KEY); CREATE TABLE w (k VARCHAR(10) COLLATE Latin1_General_100_CI_AS NOT NULL PRIMARY KEY);
		  CREATE TABLE n (k INT NOT NULL PRIMARY KEY); INSERT s VALUES ('a'); INSERT w VALUES ('a'); INSERT n VALUES (1)`, ""},
		{`SELECT k FROM s WITH (FORCESEEK) WHERE k = 'A'`, "a"},
		{`SELECT k FROM s WITH (FORCESEEK) WHERE k = N'A'`, "error 8622"},
		{`SELECT k FROM s WHERE k = N'A'`, "a"},
		{`SELECT k FROM w WITH (FORCESEEK) WHERE k = N'A'`, "a"},
		{`SELECT k FROM n WITH (FORCESEEK) WHERE k = '1'`, "1"},
		{`SELECT k FROM n WITH (FORCESEEK) WHERE k = CAST(1 AS BIGINT)`, "1"},
		{`SELECT k FROM n WITH (FORCESEEK) WHERE CAST(k AS BIGINT) = 1`, "error 8622"},
	})
}

func TestReadCommittedWithoutVersions(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, `ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF; `+smallTable+`; INSERT t VALUES (1, 1)`)
	must(t, a, `BEGIN TRAN; UPDATE t SET v = 2`)
	if got := run(t, b, `SET LOCK_TIMEOUT 0; SELECT v FROM t`).text(); got != "error 1222" {
		t.Error(got)
	}
	if got := run(t, b, `SET TRANSACTION ISOLATION LEVEL SNAPSHOT; SELECT v FROM t`).text(); got != "1" {
		t.Error(got)
	}
}

// A plan that is older than the table must not write rows of the old shape.
func TestWritersWhileTheTableChanges(t *testing.T) {
	e := newEngine(t)
	ddl := open(t, e)
	must(t, ddl, smallTable)
	const perWriter = 200
	done := make(chan struct{})
	for w := range 2 {
		s := open(t, e)
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range perWriter {
				rpcInsert(t, s, int64(w*perWriter+i))
			}
		}()
	}
	for _, col := range []string{"a", "b", "c"} {
		must(t, ddl, `ALTER TABLE t ADD `+col+` INT NOT NULL DEFAULT (7)`)
	}
	<-done
	<-done
	if got := must(t, ddl, `SELECT COUNT(*), MIN(a), MAX(b), SUM(c) FROM t`).text(); got != "400|7|7|2800" {
		t.Error(got)
	}
}

func rpcInsert(t *testing.T, s tds.Session, id int64) {
	r := &recorder{}
	err := s.RPC(context.Background(), "sp_executesql", []tds.Param{
		text(`INSERT t (id, v) VALUES (@id, 1)`), text(`@id INT`), {Name: "@id", Type: intType, Value: intValue(id)},
	}, r)
	if err != nil || strings.Contains(r.text(), "error") {
		t.Error(err, r.text())
	}
}
