package engine

import (
	"context"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

const smallTable = `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT NOT NULL)`

func TestTransactions(t *testing.T) {
	play(t, []batch{
		{smallTable, ""},
		{`BEGIN TRAN; INSERT t VALUES (1, 1); ROLLBACK; SELECT COUNT(*) FROM t`, "began\nrolled back\n0"},
		{`BEGIN TRAN; BEGIN TRAN; SELECT @@TRANCOUNT; COMMIT; COMMIT; SELECT @@TRANCOUNT`, "began\n2\ncommitted\n0"},
		{`COMMIT`, "error 3902"},
		{`ROLLBACK`, "error 3903"},
		{`SAVE TRAN x`, "error 628"},
		{`BEGIN TRAN; INSERT t VALUES (1, 1); SAVE TRAN sp; INSERT t VALUES (2, 2); ROLLBACK TRAN sp; COMMIT; SELECT id FROM t`, "began\ncommitted\n1"},
		{`BEGIN TRAN outermost; ROLLBACK TRAN nothing; ROLLBACK TRAN outermost`, "began\nerror 6401\nrolled back"},
		// a statement that fails leaves nothing behind, and the batch goes on
		{`INSERT t VALUES (5, 5), (1, 1); SELECT COUNT(*) FROM t WHERE id = 5`, "error 2627\n0"},
		// without XACT_ABORT the transaction survives
		{`BEGIN TRAN; INSERT t VALUES (6, 6); INSERT t VALUES (1, 1); COMMIT; SELECT id FROM t`, "began\nerror 2627\ncommitted\n1\n6"},
		// with it, it does not, and the batch ends
		{`SET XACT_ABORT ON; BEGIN TRAN; INSERT t VALUES (7, 7); INSERT t VALUES (1, 1); SELECT 'not reached'`, "began\nerror 2627\nrolled back"},
		{`SELECT @@TRANCOUNT, COUNT(*) FROM t; SET XACT_ABORT OFF`, "0|2"},
		// a conversion error ends the batch and the transaction
		{`BEGIN TRAN; SELECT CAST('x' AS INT); SELECT 'not reached'`, "began\nerror 245\nrolled back"},
		// DDL rolls back
		{`BEGIN TRAN; CREATE TABLE u (a INT); ROLLBACK; SELECT OBJECT_ID('u')`, "began\nrolled back\nNULL"},
		{`BEGIN TRAN; DROP TABLE t; ROLLBACK; SELECT COUNT(*) FROM t`, "began\nrolled back\n2"},
		// a compile error keeps the whole batch from running
		{`INSERT t VALUES (50, 50); SELECT nope FROM t`, "error 207"},
		{`SELECT COUNT(*) FROM t WHERE id = 50`, "0"},
		// a missing object does not: deferred name resolution
		{`INSERT t VALUES (50, 50); SELECT * FROM nowhere`, "error 208"},
		{`SELECT COUNT(*) FROM t WHERE id = 50`, "1"},
	})
}

func TestTryCatch(t *testing.T) {
	play(t, []batch{
		{smallTable + `; INSERT t VALUES (1, 1)`, ""},
		{`BEGIN TRY INSERT t VALUES (1, 1); SELECT 'no' END TRY BEGIN CATCH SELECT ERROR_NUMBER(), XACT_STATE(), ERROR_SEVERITY() END CATCH`, "2627|0|14"},
		{`BEGIN TRY THROW 50001, 'mine', 3 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_MESSAGE(), ERROR_STATE(); THROW; END CATCH SELECT 'not reached'`, "50001|mine|3\nerror 50001"},
		{`BEGIN TRY RAISERROR('a %s %d', 16, 1, 'b', 7) END TRY BEGIN CATCH SELECT ERROR_MESSAGE() END CATCH`, "a b 7"},
		{`RAISERROR('now', 0, 1) WITH NOWAIT, LOG; SELECT 'reached'`, "info now\nflushed\nreached"},
		{`RAISERROR('x', 0, 1) WITH SETERROR`, "error 50999"},
		{`RAISERROR('only said', 10, 1); RAISERROR('loud', 16, 1); SELECT 'reached'`, "info only said\nerror 50000\nreached"},
		{`THROW 50000, 'x', 1; SELECT 'not reached'`, "error 50000"},
		{`THROW 49999, 'x', 1`, "error 35100"},
		// a doomed transaction can only be rolled back
		{`SET XACT_ABORT ON; BEGIN TRAN; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH SELECT XACT_STATE(); ROLLBACK END CATCH; SELECT @@TRANCOUNT`, "began\n-1\nrolled back\n0"},
		{`BEGIN TRAN; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH INSERT t VALUES (2, 2) END CATCH`, "began\nerror 3930\nrolled back"},
		{`BEGIN TRAN; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH SELECT 'caught' END CATCH`, "began\ncaught\nerror 3998\nrolled back"},
		{`BEGIN TRAN; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH COMMIT END CATCH`, "began\nerror 3930\nrolled back"},
		// without XACT_ABORT a caught 2627 leaves the transaction usable
		{`SET XACT_ABORT OFF; BEGIN TRAN; BEGIN TRY INSERT t VALUES (1, 1) END TRY BEGIN CATCH INSERT t VALUES (2, 2) END CATCH; COMMIT; SELECT COUNT(*) FROM t`, "began\ncommitted\n2"},
	})
}

func TestControlFlow(t *testing.T) {
	play(t, []batch{
		{`DECLARE @i INT = 0; WHILE 1 = 1 BEGIN SET @i += 1; IF @i = 2 CONTINUE; IF @i > 3 BREAK; SELECT @i END`, "1\n3"},
		{`IF EXISTS (SELECT 1 FROM sys.tables) SELECT 'some' ELSE SELECT 'none'`, "none"},
		{`DECLARE @x INT; IF @x = 1 SELECT 'a' ELSE SELECT 'b'`, "b"},
		{`SELECT 1; RETURN; SELECT 2`, "1"},
		{`PRINT CONCAT('a', 1)`, "info a1"},
		{`DECLARE @x INT = 1, @x INT`, "error 134"},
		{`SELECT 1 foo bar`, "error 102"},
		{`SELECT 1 SELECT 2`, "1\n2"},
		{`BEGIN SELECT 1`, "error 102"},
		{`SELECT 'abc`, "error 105"},
		{`SELECT 1 FROM t WITH (NOLOK)`, "error 321"},
		{`SELECT 1 OPTION (MXDOP 1)`, "error 102"},
		{`nosuchproc`, "error 2812"},
		{`SELECT name FROM sys.objects WHERE type = 'U' AND 'type' <> 'x' ORDER BY type`, ""},
		{`CREATE TABLE type (type INT, message INT); INSERT type (type, message) VALUES (1, 2); SELECT type, message FROM type WHERE message = 2`, "1|2"},
		{`SELECT from FROM x`, "error 156"},
		{`EXEC nosuchproc`, "error 2812"},
		{`MERGE x USING y ON 1 = 1 WHEN MATCHED THEN DELETE;`, "error 50999"},
		{`SELECT 1 AS x FROM t FOR JSON PATH`, "error 50999"},
		{`EXEC ('SELECT 1 AS x')`, "1"},
		{`set ansi_nulls on; set ansi_null_dflt_on on; set ansi_padding on; set ansi_warnings on; set arithabort on; set concat_null_yields_null on;
		  set cursor_close_on_commit off; set datefirst 7; set dateformat mdy; set deadlock_priority normal; set implicit_transactions off; set language us_english;
		  set lock_timeout -1; set textsize 2147483647; set quoted_identifier on; set transaction isolation level read committed; set xact_abort off`, ""},
		{`WAITFOR DELAY '00:00:00'; SELECT 1`, "1"},
	})
}

func TestProcedures(t *testing.T) {
	play(t, []batch{
		{`CREATE PROCEDURE p @a INT, @b INT = 5, @out INT OUTPUT AS BEGIN SET NOCOUNT ON; SET @out = @a + @b; SELECT @a; RETURN 3 END`, ""},
		{`DECLARE @r INT, @o INT; EXEC @r = p @a = 1, @out = @o OUTPUT; SELECT @r, @o`, "1\n3|6"},
		{`DECLARE @o INT; EXEC p 1, DEFAULT, @o OUTPUT; SELECT @o`, "1\n6"},
		{`EXEC p`, "error 201"},
		{`EXEC p 1, 2, 3, 4`, "error 8144"},
		{`EXEC p @nope = 1`, "error 8145"},
		{`CREATE PROCEDURE p AS SELECT 1`, "error 2714"},
		{`CREATE OR ALTER PROCEDURE p AS BEGIN TRAN`, ""},
		{`EXEC p; SELECT @@TRANCOUNT; ROLLBACK`, "began\nerror 266\n1\nrolled back"},
		{`DROP PROCEDURE p; EXEC p`, "error 2812"},
		{`CREATE TYPE ids AS TABLE (id BIGINT NOT NULL PRIMARY KEY)`, ""},
		{`CREATE PROCEDURE q @list dbo.ids READONLY AS SELECT COUNT(*) FROM @list`, ""},
		{`DECLARE @l dbo.ids; INSERT @l VALUES (1), (2); EXEC q @l`, "2"},
		{`EXEC sp_executesql N'SELECT @x + 1', N'@x INT', @x = 4`, "5"},
		{`DECLARE @y INT; EXEC sp_executesql N'SET @z = 9', N'@z INT OUTPUT', @z = @y OUTPUT; SELECT @y`, "9"},
		{`EXEC sp_executesql N'SELECT @nope'`, "error 137"},
		{`EXEC sp_executesql N'SELECT @x + @y', N'@x INT, @y INT', @x = 4`, "error 8178"},
	})
}

func TestSettingsAndFilteredIndexes(t *testing.T) {
	play(t, []batch{
		{outboxTable, ""},
		{`INSERT e (id, event_type, payload) VALUES (1, 'a', 'x')`, ""},
		{`SET QUOTED_IDENTIFIER OFF`, ""},
		{`INSERT e (id, event_type, payload) VALUES (2, 'a', 'x')`, "error 1934"},
		{`UPDATE e SET status = 1`, "error 1934"},
		{`DELETE e`, "error 1934"},
		{`SELECT COUNT(*) FROM e WHERE status = 0`, "1"},
		{`SELECT COUNT(*) FROM e WITH (INDEX(IX_claim)) WHERE status = 0`, "error 8622"},
		{`SET QUOTED_IDENTIFIER ON`, ""},
		{`SELECT COUNT(*) FROM e WITH (INDEX(IX_claim)) WHERE status = 0`, "1"},
		{`SELECT COUNT(*) FROM e WITH (INDEX(IX_claim)) WHERE status IN (0)`, "1"},
		{`SELECT COUNT(*) FROM e WITH (INDEX(IX_claim)) WHERE status IN (0, 1)`, "error 8622"},
		{`SELECT p.rows FROM sys.partitions p JOIN sys.indexes i ON i.object_id = p.object_id AND i.index_id = p.index_id WHERE i.name = 'IX_claim'`, "1"},
		{`UPDATE e SET status = 1; SELECT p.rows FROM sys.partitions p JOIN sys.indexes i ON i.object_id = p.object_id AND i.index_id = p.index_id WHERE i.name = 'IX_claim'`, "0"},
		{`SELECT filter_definition, is_unique, fill_factor FROM sys.indexes WHERE name = 'IX_claim'`, "([status]=(0))|0|0"},
		{`SELECT definition FROM sys.check_constraints`, "([status]=(2) OR [status]=(1) OR [status]=(0))"},
		{
			`SELECT c.name, d.definition FROM sys.default_constraints d JOIN sys.columns c ON c.object_id = d.parent_object_id AND c.column_id = d.parent_column_id ORDER BY c.column_id`,
			"status|((0))\ncreated_at|(sysutcdatetime())\nretry_count|((0))",
		},
		{`SELECT nope FROM sys.tables`, "error 207"},
		{`ALTER DATABASE CURRENT SET PARAMETERIZATION FORCED`, ""},
		{`SELECT COUNT(*) FROM e WITH (INDEX(IX_claim)) WHERE status = 0`, "error 8622"},
		{`SELECT COUNT(*) FROM e WITH (INDEX(IX_claim)) WHERE status = 0 OPTION (RECOMPILE)`, "0"},
		{`DECLARE @t INT = 1; SELECT TOP (@t) id FROM e WITH (INDEX(IX_claim)) WHERE status = 0`, ""},
		{`ALTER DATABASE CURRENT SET PARAMETERIZATION SIMPLE; SELECT is_parameterization_forced, is_read_committed_snapshot_on FROM sys.databases WHERE name = DB_NAME()`, "0|1"},
		{`SELECT 1 FROM sys.nothing`, "error 208"},
		{`SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT id FROM e WITH (READPAST)`, "error 650"},
		{`SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT id FROM e WITH (READPAST, READCOMMITTEDLOCK)`, "1"},
	})
}

func TestAlterTable(t *testing.T) {
	play(t, []batch{
		{smallTable + `; INSERT t VALUES (1, 1), (2, 2)`, ""},
		{`ALTER TABLE t ADD w VARCHAR(5) NOT NULL CONSTRAINT DF_w DEFAULT ('d'), z INT NULL`, ""},
		{`SELECT * FROM t`, "1|1|d|NULL\n2|2|d|NULL"},
		{`ALTER TABLE t ADD n INT NOT NULL`, "error 4901"},
		{`ALTER TABLE t ADD CONSTRAINT CK_v CHECK (v < 2)`, "error 547"},
		{`ALTER TABLE t ADD CONSTRAINT CK_v CHECK (v < 9); INSERT t (id, v) VALUES (3, 9)`, "error 547"},
		{`ALTER TABLE t ALTER COLUMN v BIGINT NOT NULL`, "error 5074\nerror 4922"},
		{`ALTER TABLE t DROP CONSTRAINT CK_v; ALTER TABLE t ALTER COLUMN v BIGINT NOT NULL; INSERT t (id, v) VALUES (3, 3000000000); SELECT v FROM t WHERE id = 3`, "3000000000"},
		{`CREATE UNIQUE INDEX UX ON t (w)`, "error 1505"},
		{`CREATE INDEX IX ON t (v) INCLUDE (w); ALTER INDEX IX ON t DISABLE; SELECT is_disabled FROM sys.indexes WHERE name = 'IX'; ALTER INDEX IX ON t REBUILD WITH (FILLFACTOR = 90)`, "1"},
		{`SELECT is_disabled, fill_factor FROM sys.indexes WHERE name = 'IX'; SELECT v FROM t WITH (INDEX(IX)) WHERE v = 2`, "0|90\n2"},
		{`DROP INDEX IX ON t; DROP INDEX IF EXISTS IX ON t; DROP INDEX IX ON t`, "error 3701"},
		{`ALTER TABLE nowhere ADD x INT`, "error 4902"},
		{`CREATE SCHEMA s2`, ""},
		{`CREATE TABLE s2.t (a INT); DROP SCHEMA s2`, "error 3729"},
		{`DROP TABLE s2.t; DROP SCHEMA s2; SELECT SCHEMA_ID('s2')`, "NULL"},
		{`CREATE TABLE nope.t (a INT)`, "error 2760"},
		{`TRUNCATE TABLE t; SELECT COUNT(*) FROM t`, "0"},
		{`CREATE TABLE c (a INT, b AS a + 1)`, "error 50999"},
	})
}

// Two sessions: what one holds, the other skips, waits for or does not see.
func TestLocksBetweenSessions(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, outboxTable)
	must(t, a, `INSERT e (id, event_type, payload) VALUES (1, 'a', 'x'), (2, 'a', 'x'), (3, 'a', 'x')`)
	const claim = `SELECT TOP (1) id FROM e WITH (INDEX(IX_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE event_type = 'a' AND status = 0 ORDER BY id`
	expect := func(r *recorder, want string) {
		t.Helper()
		if got := r.text(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	expect(run(t, a, `BEGIN TRAN; `+claim), "began\n1")
	expect(run(t, b, claim), "2")
	expect(run(t, b, `SELECT COUNT(*) FROM e`), "3")
	expect(run(t, b, `SET LOCK_TIMEOUT 0; UPDATE e SET status = 1 WHERE id = 2`), "")
	expect(run(t, a, `UPDATE e SET status = 1 WHERE id = 1`), "")
	expect(run(t, b, `SELECT status FROM e WHERE id = 1`), "0")
	expect(run(t, b, `SELECT status FROM e WITH (NOLOCK) WHERE id = 1`), "1")
	expect(run(t, b, `SELECT status FROM e WITH (READCOMMITTEDLOCK) WHERE id = 1`), "error 1222")
	expect(run(t, b, `SELECT id FROM e WITH (READCOMMITTEDLOCK, READPAST)`), "2\n3")
	expect(run(t, b, `UPDATE e SET retry_count = 1 WHERE id = 1; SELECT 'goes on'`), "error 1222\ngoes on")
	expect(run(t, a, `COMMIT`), "committed")
	expect(run(t, b, `SELECT status FROM e WHERE id = 1`), "1")
}

// An attention in the middle of a lock wait ends the wait and the batch; it
// rolls back when XACT_ABORT is on, and only then.
func TestAttention(t *testing.T) {
	for _, c := range []struct{ option, want string }{{"ON", "0|1"}, {"OFF", "1|2"}} {
		e := newEngine(t)
		a, b := open(t, e), open(t, e)
		must(t, a, smallTable+`; INSERT t VALUES (1, 1)`)
		must(t, a, `BEGIN TRAN; UPDATE t SET v = 2`)
		must(t, b, `SET XACT_ABORT `+c.option+`; BEGIN TRAN; INSERT t VALUES (2, 2)`)
		ctx, cancel := context.WithCancel(context.Background())
		done := startWithin(ctx, b, `UPDATE t SET v = 3 WHERE id = 1; INSERT t VALUES (9, 9)`)
		untilWaiting(t, e)
		cancel()
		<-done
		for _, l := range e.db.Locks() {
			if l.Status != storage.Granted {
				t.Errorf("XACT_ABORT %s: the wait outlived the attention", c.option)
			}
		}
		if got := run(t, b, `SELECT @@TRANCOUNT, COUNT(*) FROM t`).text(); got != c.want {
			t.Errorf("XACT_ABORT %s: @@TRANCOUNT and rows are %s after an attention, want %s", c.option, got, c.want)
		}
	}
}

// Each of two sessions wants what the other holds: one of them is 1205.
func TestDeadlock(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, smallTable+`; INSERT t VALUES (1, 1), (2, 2)`)
	must(t, b, `SET DEADLOCK_PRIORITY LOW`)
	must(t, a, `BEGIN TRAN; UPDATE t SET v = 0 WHERE id = 1`)
	must(t, b, `BEGIN TRAN; UPDATE t SET v = 0 WHERE id = 2`)
	done := make(chan *recorder)
	go func() {
		r := &recorder{}
		_ = a.Batch(context.Background(), `UPDATE t SET v = 0 WHERE id = 2`, r)
		done <- r
	}()
	got := run(t, b, `UPDATE t SET v = 0 WHERE id = 1; SELECT 'not reached'`).text()
	if got != "error 1205\nrolled back" {
		t.Errorf("the victim: %q", got)
	}
	if r := <-done; len(r.errors) > 0 {
		t.Errorf("the other: %v", r.errors[0])
	}
	if got := run(t, b, `SELECT @@TRANCOUNT`).text(); got != "0" {
		t.Errorf("@@TRANCOUNT of the victim is %s", got)
	}
}

func TestApplicationLocks(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	const get = `DECLARE @r INT; EXEC @r = sp_getapplock @Resource = 'x', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 0; SELECT @r`
	if got := run(t, a, get).text(); got != "0" {
		t.Fatal(got)
	}
	if got := run(t, b, get).text(); got != "-1" {
		t.Fatal(got)
	}
	must(t, a, `EXEC sp_releaseapplock @Resource = 'x', @LockOwner = 'Session'`)
	if got := run(t, b, get).text(); got != "0" {
		t.Fatal(got)
	}
	if got := run(t, a, `EXEC sp_releaseapplock @Resource = 'x', @LockOwner = 'Session'`).text(); got != "error 1223" {
		t.Fatal(got)
	}
}
