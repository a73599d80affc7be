package engine

import (
	"context"
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

const triggerTables = `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(10) NULL, n INT NOT NULL DEFAULT 0);
CREATE TABLE seen (what VARCHAR(200) NOT NULL)`

// A trigger runs once a statement, also for no rows, and sees its rows.
func TestTriggerSeesTheStatement(t *testing.T) {
	play(t, []batch{
		{triggerTables, ""},
		{`CREATE TRIGGER tr ON t AFTER INSERT, UPDATE, DELETE AS
			INSERT seen SELECT CONCAT('rows ', @@ROWCOUNT, ' new ', (SELECT COUNT(*) FROM inserted), ' old ', (SELECT COUNT(*) FROM DELETED),
				' ', (SELECT STRING_AGG(CONCAT(i.id, ':', d.v, '>', i.v), ' ') FROM inserted AS i LEFT JOIN deleted AS d ON d.id = i.id))`, ""},
		{`INSERT t (id, v) VALUES (1, 'a'), (2, 'b'); SELECT @@ROWCOUNT`, "2"},
		{`UPDATE t SET v = 'c' WHERE id = 2`, ""},
		{`UPDATE t SET v = 'c' WHERE id = 9`, ""},
		{`DELETE t`, ""},
		{`TRUNCATE TABLE t`, ""},
		{`SELECT what FROM seen`, "rows 2 new 2 old 0 1:>a 2:>b\nrows 1 new 1 old 1 2:b>c\nrows 0 new 0 old 0 \nrows 2 new 0 old 2 "},
		{`SELECT 1 FROM inserted`, "error 208"},
		{`EXEC ('SELECT 1 FROM deleted')`, "error 208"},
	})
}

func TestUpdateOfColumn(t *testing.T) {
	play(t, []batch{
		{triggerTables, ""},
		{`CREATE TRIGGER tr ON t FOR INSERT, UPDATE, DELETE AS SET NOCOUNT ON; IF UPDATE(v) AND NOT UPDATE(n) INSERT seen VALUES ('v') ELSE IF UPDATE(v) INSERT seen VALUES ('both') ELSE INSERT seen VALUES ('no')`, ""},
		{`INSERT t (id) VALUES (1)`, ""},
		{`UPDATE t SET v = v`, ""},
		{`WITH c AS (SELECT n AS m FROM t) UPDATE c SET m += 1`, ""},
		{`DELETE t`, ""},
		{`SELECT what FROM seen`, "both\nv\nno\nno"},
		{`IF UPDATE(v) SELECT 1`, "error 140"},
		{`CREATE TRIGGER tr2 ON t FOR UPDATE AS IF UPDATE(nope) SELECT 1`, "error 207"},
	})
}

// THROW in a trigger takes the statement, the transaction and the batch.
func TestTriggerThrows(t *testing.T) {
	play(t, []batch{
		{triggerTables + `; INSERT t (id) VALUES (1)`, ""},
		{`CREATE TRIGGER guard ON t AFTER UPDATE AS IF EXISTS (SELECT 1 FROM inserted WHERE n > 5) THROW 50001, 'too much', 1`, ""},
		{`UPDATE t SET n = 5; SELECT n FROM t`, "5"},
		{`UPDATE t SET n = 6; SELECT 1`, "error 50001"},
		{`SELECT n, @@TRANCOUNT FROM t`, "5|0"},
		{`BEGIN TRAN; INSERT t (id) VALUES (2); UPDATE t SET n = 6; SELECT 1`, "began\nerror 50001\nrolled back"},
		{`SELECT COUNT(*), @@TRANCOUNT FROM t`, "1|0"},
		{`BEGIN TRAN; BEGIN TRY UPDATE t SET n = 6 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_PROCEDURE(), XACT_STATE(); ROLLBACK END CATCH`, "began\n50001|guard|-1\nrolled back"},
		{`BEGIN TRY UPDATE t SET n = 6 END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH; SELECT n FROM t`, "50001\n5"},
	})
}

// A statement that fails in a trigger ends the transaction, as XACT_ABORT is ON
// there; RAISERROR does not; SET XACT_ABORT OFF lasts as long as the trigger.
func TestTriggerErrors(t *testing.T) {
	play(t, []batch{
		{triggerTables, ""},
		{`CREATE TRIGGER tr ON t AFTER INSERT AS IF (16384 & @@OPTIONS) = 16384 INSERT seen VALUES (NULL)`, ""},
		{`BEGIN TRAN; INSERT t (id) VALUES (1); SELECT 1`, "began\nerror 515\nrolled back"},
		{`ALTER TRIGGER tr ON t AFTER INSERT AS SET XACT_ABORT OFF; INSERT seen VALUES (NULL)`, ""},
		{`INSERT t (id) VALUES (1); SELECT COUNT(*), 16384 & @@OPTIONS FROM t`, "error 515\n1|0"},
		{`ALTER TRIGGER tr ON t AFTER INSERT AS RAISERROR ('only a word', 16, 1)`, ""},
		{`INSERT t (id) VALUES (2); SELECT COUNT(*) FROM t`, "error 50000\n2"},
		{`ALTER TRIGGER tr ON t AFTER INSERT AS BEGIN TRY INSERT seen VALUES (NULL) END TRY BEGIN CATCH SELECT XACT_STATE() END CATCH`, ""},
		{`INSERT t (id) VALUES (3); SELECT 1`, "-1\nerror 3616"},
		{`BEGIN TRAN; INSERT t (id) VALUES (3); SELECT 1`, "began\n-1\nerror 3616\nrolled back"},
		{`SELECT COUNT(*), @@TRANCOUNT FROM t`, "2|0"},
	})
}

// ROLLBACK in a trigger: the trigger goes on, the batch does not (3609).
func TestTriggerRollsBack(t *testing.T) {
	play(t, []batch{
		{triggerTables, ""},
		{`CREATE TRIGGER tr ON t AFTER INSERT AS SELECT @@TRANCOUNT; ROLLBACK; INSERT seen SELECT CONCAT('kept ', @@TRANCOUNT) FROM inserted; UPDATE t SET n = 1`, ""},
		{`CREATE TRIGGER tu ON t AFTER UPDATE AS INSERT seen VALUES ('nested')`, ""},
		{`CREATE TRIGGER tr3 ON t AFTER INSERT AS INSERT seen VALUES ('next')`, ""},
		{`INSERT t (id) VALUES (1); SELECT 1`, "1\nerror 3609"},
		{`BEGIN TRAN; INSERT t (id) VALUES (1); SELECT 1`, "began\n2\nrolled back\nerror 3609"},
		{`BEGIN TRY INSERT t (id) VALUES (1) END TRY BEGIN CATCH SELECT ERROR_NUMBER(), @@TRANCOUNT, XACT_STATE() END CATCH`, "1\n3609|0|0"},
		{`SELECT what FROM seen; SELECT COUNT(*) FROM t`, "kept 0\nkept 0\nkept 0\n0"},
		{`ALTER TRIGGER tr ON t AFTER INSERT AS COMMIT`, ""},
		{`INSERT t (id) VALUES (1); SELECT 1`, "error 3609"},
		{`SELECT COUNT(*) FROM t`, "1"},
		{`ALTER TRIGGER tr ON t AFTER INSERT AS BEGIN TRAN`, ""},
		{`INSERT t (id) VALUES (2)`, "error 50999"},
		{`SELECT COUNT(*), @@TRANCOUNT FROM t`, "1|0"},
	})
}

// Triggers nest, to 32 levels, but none fires itself.
func TestTriggersNest(t *testing.T) {
	play(t, []batch{
		{triggerTables, ""},
		{`CREATE TRIGGER tr ON t AFTER UPDATE AS IF TRIGGER_NESTLEVEL() < 3 BEGIN UPDATE t SET n += 1; INSERT seen SELECT CONCAT(@@NESTLEVEL, ' ', TRIGGER_NESTLEVEL()) END`, ""},
		{`INSERT t (id) VALUES (1); UPDATE t SET n = 10; SELECT n FROM t; SELECT what FROM seen`, "11\n1 1"},
		{`CREATE TRIGGER seen_tr ON seen AFTER INSERT AS UPDATE t SET n += 100`, ""},
		{`ALTER TRIGGER tr ON t AFTER UPDATE AS INSERT seen VALUES ('x')`, ""},
		{`UPDATE t SET n = 0; SELECT 1`, "error 217"},
		{`SELECT n FROM t; SELECT COUNT(*), @@NESTLEVEL FROM seen`, "11\n1|0"},
	})
}

func TestOutputAndTriggers(t *testing.T) {
	play(t, []batch{
		{triggerTables + `; CREATE TABLE checked (id INT CHECK (id > 0))`, ""},
		{`CREATE TRIGGER tr ON t AFTER UPDATE AS SET NOCOUNT ON`, ""},
		{`INSERT t (id) OUTPUT inserted.id VALUES (1)`, "1"},
		{`UPDATE t SET n = 1 OUTPUT inserted.n`, "error 334"},
		{`DECLARE @o TABLE (n INT); UPDATE t SET n = 1 OUTPUT inserted.n INTO @o; SELECT n FROM @o`, "1"},
		{`DISABLE TRIGGER tr ON t`, ""},
		{`UPDATE t SET n = 2 OUTPUT inserted.n`, "2"},
		{`DELETE t OUTPUT deleted.id INTO t (id)`, ""},
		{`ALTER TABLE t ENABLE TRIGGER ALL`, ""},
		{`DELETE t OUTPUT deleted.id INTO t (id)`, "error 331"},
		{`DELETE t OUTPUT deleted.id INTO checked (id)`, "error 333"},
		{`UPDATE t SET n = 2 OUTPUT inserted.n`, "error 334"},
	})
}

// Bulk load fires triggers where it is asked to.
func TestBulkLoadAndTriggers(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, triggerTables)
	must(t, s, `CREATE TRIGGER tr ON t AFTER INSERT AS INSERT seen SELECT CONCAT('loaded ', COUNT(*)) FROM inserted`)
	for i, options := range []string{``, `WITH (FIRE_TRIGGERS)`} {
		r := run(t, s, `INSERT BULK t ([id] int) `+options)
		ids := []int64{int64(i*2 + 1), int64(i*2 + 2)}
		next := func() ([]sqltype.Value, bool, error) {
			if len(ids) == 0 {
				return nil, false, nil
			}
			id := ids[0]
			ids = ids[1:]
			return []sqltype.Value{intValue(id)}, true, nil
		}
		if err := s.Bulk(context.Background(), r.bulk, next, &recorder{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := run(t, s, `SELECT COUNT(*) FROM t; SELECT what FROM seen`).text(); got != "4\nloaded 2" {
		t.Error(got)
	}
}

func TestTriggerDefinition(t *testing.T) {
	play(t, []batch{
		{triggerTables + `; CREATE TABLE #x (a INT)`, ""},
		{`CREATE TRIGGER tr ON nope AFTER INSERT AS SELECT 1`, "error 8197"},
		{`CREATE TRIGGER tr ON #x AFTER INSERT AS SELECT 1`, "error 8197"},
		{`CREATE TRIGGER dbo.tr ON t AFTER INSERT AS SELECT nope FROM t`, "error 207"},
		{`CREATE TRIGGER tr ON t AFTER INSERT AS UPDATE inserted SET id = 1`, "error 286"},
		{`CREATE TRIGGER tr ON t AFTER INSERT AS DELETE deleted`, "error 286"},
		{`CREATE TRIGGER tr ON t AFTER INSERT, INSERT AS SELECT 1`, "error 1034"},
		{`CREATE TRIGGER tr ON t WITH NOSUCH AFTER INSERT AS SELECT 1`, "error 102"},
		{`CREATE TRIGGER tr ON t AFTER MERGE AS SELECT 1`, "error 102"},
		{`SELECT 1; CREATE TRIGGER tr ON t AFTER INSERT AS SELECT 1`, "error 111"},
		{`IF 1 = 1 EXEC ('SELECT 1') ELSE CREATE TRIGGER tr ON t AFTER INSERT AS SELECT 1`, "error 156"},
		{`ALTER TRIGGER tr ON t AFTER INSERT AS SELECT 1`, "error 208"},
		{`CREATE OR ALTER TRIGGER t ON t AFTER INSERT AS SELECT 1`, "error 2714"},
		{`CREATE OR ALTER TRIGGER tr ON t AFTER INSERT AS SELECT 1`, ""},
		{`CREATE TRIGGER tr ON t AFTER INSERT AS SELECT 1`, "error 2714"},
		{`ALTER TRIGGER tr ON seen AFTER INSERT AS SELECT 1`, "error 2110"},
		{`CREATE TRIGGER s.tr ON t AFTER INSERT AS SELECT 1`, "error 2103"},
		{`DROP TRIGGER nope`, "error 3701"},
		{`DROP TRIGGER IF EXISTS nope`, ""},
		{`DROP TRIGGER t`, "error 3701"},
		{`DISABLE TRIGGER nope ON t`, "error 4920"},
		{`ENABLE TRIGGER tr ON nope`, "error 1088"},
		{`CREATE TRIGGER tr2 ON t AFTER INSERT AS ALTER TABLE t ADD z INT NULL`, ""},
		{`INSERT t (id) VALUES (1)`, "1\nerror 50999"},
		{`DROP TRIGGER tr2, tr`, ""},
		{`INSERT t (id) VALUES (1)`, ""},
		{`CREATE TRIGGER tr ON t INSTEAD OF INSERT AS SELECT 1`, "error 50999"},
		{`CREATE TRIGGER tr ON DATABASE FOR CREATE_TABLE AS SELECT 1`, "error 50999"},
		{`CREATE TRIGGER tr ON t WITH ENCRYPTION AFTER INSERT AS SELECT 1`, "error 50999"},
	})
}

func TestTriggerViews(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, triggerTables)
	must(t, s, `SET ANSI_NULLS OFF`)
	must(t, s, `CREATE TRIGGER tr ON t AFTER DELETE, INSERT AS SELECT 1`)
	must(t, s, `SET ANSI_NULLS ON; DISABLE TRIGGER tr ON t`)
	got := run(t, s, `SELECT t.name, OBJECT_NAME(t.parent_id), t.type, t.is_disabled, t.is_instead_of_trigger, o.parent_object_id - t.parent_id, m.uses_ansi_nulls, m.uses_quoted_identifier, LEFT(m.definition, 17)
		FROM sys.triggers AS t JOIN sys.objects AS o ON o.object_id = t.object_id JOIN sys.sql_modules AS m ON m.object_id = t.object_id
		WHERE t.object_id = OBJECT_ID('dbo.tr', 'TR');
		SELECT type, type_desc FROM sys.trigger_events`).text()
	if want := "tr|t|TR|1|0|0|0|1|CREATE TRIGGER tr\n1|INSERT\n3|DELETE"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	must(t, s, `BEGIN TRAN; DROP TABLE t; ROLLBACK`)
	must(t, s, `BEGIN TRAN; DROP TRIGGER tr; ROLLBACK; ENABLE TRIGGER tr ON t`)
	if got := run(t, s, `INSERT t (id) VALUES (1)`).text(); got != "1" {
		t.Errorf("after the rollback: %q", got)
	}
	must(t, s, `DROP TABLE t`)
	if got := run(t, s, `SELECT COUNT(*) FROM sys.triggers; SELECT OBJECT_ID('tr')`).text(); got != "0\nNULL" {
		t.Error(got)
	}
}

// A trigger keeps the QUOTED_IDENTIFIER of its creation: what it writes to a
// table with a filtered index fails with 1934, whatever the session has.
func TestTriggerKeepsItsSettings(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, triggerTables+`; CREATE TABLE f (id INT NOT NULL, s INT NOT NULL); CREATE INDEX i ON f (id) WHERE s = 0; SET QUOTED_IDENTIFIER OFF`)
	must(t, s, `CREATE TRIGGER tr ON t AFTER INSERT AS INSERT f SELECT id, 0 FROM inserted`)
	must(t, s, `SET QUOTED_IDENTIFIER ON`)
	if got := run(t, s, `INSERT t (id) VALUES (1)`).text(); got != "error 1934" {
		t.Error(got)
	}
}

// CREATE TRIGGER and DISABLE TRIGGER wait for who uses the table (Sch-M), and a
// trigger's own writes hold their locks to the end of the transaction.
func TestTriggerLocks(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, triggerTables)
	must(t, a, `CREATE TRIGGER tr ON t AFTER INSERT AS INSERT seen VALUES ('x')`)
	must(t, a, `BEGIN TRAN; INSERT t (id) VALUES (1)`)
	for _, sql := range []string{`DISABLE TRIGGER tr ON t`, `DROP TRIGGER tr`, `SELECT COUNT(*) FROM seen WITH (READCOMMITTEDLOCK)`} {
		if got := run(t, b, `SET LOCK_TIMEOUT 0; `+sql).text(); !strings.HasPrefix(got, "error 1222") {
			t.Errorf("%s: %q", sql, got)
		}
	}
	must(t, a, `COMMIT`)
	must(t, b, `DISABLE TRIGGER tr ON t`)
}
