package engine

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// Each option that a filtered index needs, set wrong: writing is 1934 and names
// it, reading goes on without the index (sql-docs, "CREATE INDEX", required SET
// options for filtered indexes).
func TestEveryWrongOptionRulesFilteredIndexesOut(t *testing.T) {
	for _, c := range []struct{ option, wrong, right string }{
		{"QUOTED_IDENTIFIER", "OFF", "ON"},
		{"ANSI_NULLS", "OFF", "ON"},
		{"ANSI_PADDING", "OFF", "ON"},
		{"ANSI_WARNINGS", "OFF", "ON"},
		{"CONCAT_NULL_YIELDS_NULL", "OFF", "ON"},
		{"NUMERIC_ROUNDABORT", "ON", "OFF"},
	} {
		t.Run(c.option, func(t *testing.T) {
			s := open(t, newEngine(t))
			must(t, s, outboxTable)
			must(t, s, `INSERT e (id, event_type, payload) VALUES (1, 'a', 'x')`)
			must(t, s, fmt.Sprintf(`SET %s %s`, c.option, c.wrong))
			for _, write := range []string{
				`INSERT e (id, event_type, payload) VALUES (2, 'a', 'x')`,
				`UPDATE e SET status = 1 WHERE id = 1`,
				`DELETE e WHERE id = 1`,
				`CREATE INDEX IX_other ON e (id) WHERE status = 1`,
			} {
				r := run(t, s, write)
				if len(r.errors) != 1 || r.errors[0].Number != 1934 || !strings.Contains(r.errors[0].Message, "'"+c.option+"'") {
					t.Errorf("%s: %v, want 1934 that names %s", write, r.lines, c.option)
				}
			}
			if got := run(t, s, `SELECT id FROM e WHERE status = 0 AND event_type = 'a'`).text(); got != "1" {
				t.Errorf("reading: %q", got)
			}
			if got := run(t, s, `SELECT id FROM e WITH (INDEX(IX_claim)) WHERE status = 0 AND event_type = 'a'`).text(); got != "error 8622" {
				t.Errorf("the hint of an index that must not be used: %q", got)
			}
			must(t, s, fmt.Sprintf(`SET %s %s`, c.option, c.right))
			if got := run(t, s, `UPDATE e SET retry_count = 1 WHERE id = 1; SELECT id FROM e WITH (INDEX(IX_claim)) WHERE status = 0 AND event_type = 'a'`).text(); got != "1" {
				t.Errorf("after SET %s %s: %q", c.option, c.right, got)
			}
		})
	}
}

// ANSI_WARNINGS implies ARITHABORT (sql-docs, "SET ARITHABORT", compatibility
// level 90 and above), so OFF alone is harmless.
func TestArithabortOffAloneIsHarmless(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, outboxTable)
	must(t, s, `SET ARITHABORT OFF; INSERT e (id, event_type, payload) VALUES (2, 'a', 'x')`)
}

// What a client gets depends on the ODBC flag of its login.
func TestLoginDefaults(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct {
		odbc bool
		want string
	}{
		{true, "5432|1|1|1|1|1|0|0"}, // 8+16+32+256+1024+4096
		{false, "0|0|0|0|0|0|0|0"},
	} {
		s, err := e.Login(context.Background(), tds.Login{User: "sa", Database: "test", ODBC: c.odbc})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got := run(t, s, `SELECT @@OPTIONS, SESSIONPROPERTY('ANSI_NULLS'), SESSIONPROPERTY('ANSI_PADDING'), SESSIONPROPERTY('ANSI_WARNINGS'),
			SESSIONPROPERTY('CONCAT_NULL_YIELDS_NULL'), SESSIONPROPERTY('QUOTED_IDENTIFIER'), SESSIONPROPERTY('ARITHABORT'), SESSIONPROPERTY('NUMERIC_ROUNDABORT')`).text()
		if got != c.want {
			t.Errorf("ODBC %v: %q, want %q", c.odbc, got, c.want)
		}
	}
}

// The bits of @@OPTIONS (sql-docs, "Configure the user options").
func TestOptionBits(t *testing.T) {
	const login = 5432
	for _, c := range []struct {
		set string
		bit int
		on  bool
	}{
		{"CURSOR_CLOSE_ON_COMMIT ON", 4, true},
		{"ANSI_WARNINGS OFF", 8, false},
		{"ANSI_PADDING OFF", 16, false},
		{"ANSI_NULLS OFF", 32, false},
		{"ARITHABORT ON", 64, true},
		{"ARITHIGNORE ON", 128, true},
		{"QUOTED_IDENTIFIER OFF", 256, false},
		{"NOCOUNT ON", 512, true},
		{"ANSI_NULL_DFLT_ON OFF", 1024, false},
		{"CONCAT_NULL_YIELDS_NULL OFF", 4096, false},
		{"NUMERIC_ROUNDABORT ON", 8192, true},
		{"XACT_ABORT ON", 16384, true},
	} {
		want := login &^ c.bit
		if c.on {
			want = login | c.bit
		}
		if got := run(t, open(t, newEngine(t)), `SET `+c.set+`; SELECT @@OPTIONS`).text(); got != fmt.Sprint(want) {
			t.Errorf("SET %s: @@OPTIONS is %s, want %d", c.set, got, want)
		}
	}
}

// What the options do to results (sql-docs, "SET ANSI_NULLS", "SET
// CONCAT_NULL_YIELDS_NULL").
func TestNullsWithoutTheAnsiOptions(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE n (id INT NOT NULL PRIMARY KEY, a INT NULL, b INT NULL, s VARCHAR(5) NULL); CREATE INDEX IX ON n (a);
		  INSERT n VALUES (1, NULL, NULL, NULL), (2, 5, 5, 'x')`, ""},
		{`SELECT id FROM n WHERE a = NULL; SELECT id FROM n WHERE a <> NULL`, ""},
		{`SET ANSI_NULLS OFF`, ""},
		{`SELECT id FROM n WHERE a = NULL; SELECT id FROM n WHERE a <> NULL; SELECT id FROM n WHERE a <> 5`, "1\n2"},
		{`DECLARE @v INT; SELECT id FROM n WHERE a = @v; SET @v = 5; SELECT id FROM n WHERE @v = a; SELECT id FROM n WHERE a <> @v`, "1\n2\n1"},
		{`SELECT id FROM n WHERE a = b`, "2"}, // two columns: no difference
		{`SET ANSI_NULLS ON; SELECT id FROM n WHERE a = NULL`, ""},
		{`SELECT id FROM n WHERE s + 'y' IS NULL`, "1"},
		{`SET CONCAT_NULL_YIELDS_NULL OFF`, ""},
		{`SELECT s + 'y' FROM n ORDER BY id`, "y\nxy"},
	})
}

const ownSession = `SELECT @@OPTIONS, @@LOCK_TIMEOUT, transaction_isolation_level, deadlock_priority, open_transaction_count FROM sys.dm_exec_sessions WHERE session_id = `

func TestResetRestoresEverySetting(t *testing.T) {
	e := newEngine(t)
	s, other := open(t, e), open(t, e)
	must(t, s, `SET NOCOUNT, XACT_ABORT, ARITHABORT, NUMERIC_ROUNDABORT ON; SET ANSI_NULLS, QUOTED_IDENTIFIER OFF; SET LOCK_TIMEOUT 5; SET DEADLOCK_PRIORITY 7;
		SET ROWCOUNT 1; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN TRAN`)
	spid := run(t, s, `SELECT @@SPID`).text()
	if got := run(t, other, `SELECT lock_timeout, transaction_isolation_level, deadlock_priority, open_transaction_count, ansi_nulls, quoted_identifier, arithabort
		FROM sys.dm_exec_sessions WHERE session_id = `+spid).text(); got != "5|4|7|1|0|0|1" {
		t.Errorf("another session sees %q", got)
	}
	s.Reset(context.Background())
	if got := run(t, s, ownSession+`@@SPID`).text(); got != "5432|-1|2|0|0" {
		t.Errorf("after the reset: %q", got)
	}
	if got := run(t, s, `SELECT v FROM (VALUES (1), (2)) AS x (v)`).text(); got != "1\n2" {
		t.Errorf("ROWCOUNT outlived the reset: %q", got)
	}
}

// The session that closes the ring is the victim only when the priorities leave
// the choice open: here the other one yields.
func TestDeadlockPriorityChoosesTheVictim(t *testing.T) {
	for _, c := range []struct{ waits, closes string }{
		{"LOW", "NORMAL"}, {"NORMAL", "HIGH"}, {"-7", "-6"}, {"9", "10"},
	} {
		t.Run(c.waits+" against "+c.closes, func(t *testing.T) {
			e := newEngine(t)
			first, second := open(t, e), open(t, e)
			must(t, first, smallTable+`; INSERT t VALUES (1, 1), (2, 2)`)
			must(t, first, `SET DEADLOCK_PRIORITY `+c.waits+`; BEGIN TRAN; UPDATE t SET v = 0 WHERE id = 1`)
			must(t, second, `SET DEADLOCK_PRIORITY `+c.closes+`; BEGIN TRAN; UPDATE t SET v = 0 WHERE id = 2`)
			done := start(first, `UPDATE t SET v = 0 WHERE id = 2`)
			untilWaiting(t, e)
			if got := run(t, second, `UPDATE t SET v = 0 WHERE id = 1; COMMIT`).text(); got != "committed" {
				t.Errorf("who closed the ring: %q", got)
			}
			if got := (<-done).text(); got != "error 1205\nrolled back" {
				t.Errorf("who waited: %q", got)
			}
		})
	}
}

// start runs a batch on a goroutine of its own.
func start(s tds.Session, text string) <-chan *recorder {
	return startWithin(context.Background(), s, text)
}

func startWithin(ctx context.Context, s tds.Session, text string) <-chan *recorder {
	done := make(chan *recorder, 1)
	go func() {
		r := &recorder{}
		_ = s.Batch(ctx, text, r)
		done <- r
	}()
	return done
}

// untilWaiting returns when some session waits for a lock.
func untilWaiting(t *testing.T, e *Engine) {
	t.Helper()
	for {
		for _, l := range e.db.Locks() {
			if l.Status != storage.Granted {
				return
			}
		}
		runtime.Gosched()
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
}
