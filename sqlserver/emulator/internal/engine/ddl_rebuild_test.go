package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

const rebuildTable = `CREATE TABLE t (id INT NOT NULL CONSTRAINT PK PRIMARY KEY, v INT NULL, s INT NOT NULL); CREATE INDEX ix ON t (v); CREATE INDEX ixf ON t (v) WHERE s = 0`

// What does not go together is refused, as is what is out of range.
func TestRebuildOptions(t *testing.T) {
	play(t, []batch{
		{rebuildTable + `; CREATE TABLE #t (a INT); CREATE INDEX i ON #t (a)`, ""},
		{`ALTER INDEX ix ON t REBUILD WITH (RESUMABLE = ON)`, "error 11438"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON, MAX_DURATION = 5)`, "error 153"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 0)`, "error 153"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 10081 MINUTES)`, "error 153"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON, SORT_IN_TEMPDB = ON)`, "error 11438"},
		{`ALTER INDEX ixf ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON)`, "error 155"},
		{`ALTER INDEX ALL ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON)`, "error 50999"},
		{`BEGIN TRAN; ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON); ROLLBACK`, "began\nerror 574\nrolled back"},
		{`ALTER INDEX i ON #t REBUILD WITH (ONLINE = ON)`, "error 50999"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 71583, ABORT_AFTER_WAIT = NONE)))`, "error 153"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1)))`, "error 102"},
		{`ALTER INDEX ix ON t REBUILD WITH (FILLFACTOR = 0)`, "error 129"},
		{`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 10080)`, ""},
		{`ALTER INDEX ix ON t RESUME`, "error 10638"},
		{`ALTER INDEX ix ON t PAUSE`, "error 10638"},
		{`ALTER INDEX ix ON t ABORT`, "error 10638"},
		{`ALTER INDEX nope ON t ABORT`, "error 2727"},
		{`ALTER INDEX ix ON t DISABLE; ALTER INDEX ix ON t REORGANIZE`, "error 1973"},
		{`ALTER INDEX ix ON t SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON)`, "error 1973"},
		{`ALTER INDEX ix ON t REBUILD; ALTER INDEX ix ON t SET (ALLOW_PAGE_LOCKS = OFF); ALTER INDEX ix ON t REORGANIZE`, "error 1943"},
	})
}

// A resumable rebuild that stops is paused: other DDL on the table is 10637
// until it is resumed or aborted, and its options are those of the beginning.
func TestRebuildIsPaused(t *testing.T) {
	e := newEngine(t)
	s := open(t, e)
	must(t, s, rebuildTable)
	const begin = `ALTER INDEX ix ON dbo.t REBUILD WITH (FILLFACTOR = 90, ONLINE = ON, RESUMABLE = ON, MAXDOP = 2, MAX_DURATION = 1)`
	const state = `SELECT name, state_desc, percent_complete, last_max_dop, sql_text FROM sys.index_resumable_operations; SELECT fill_factor FROM sys.indexes WHERE name = 'ix'`
	e.StopRebuild("dbo.t", "ix", 40)
	for _, st := range []batch{
		{`SELECT 1; ` + begin + `; SELECT 2`, "1\nerror 3643"},
		{state, "ix|PAUSED|40|2|" + begin + "\n0"},
		{`ALTER TABLE t ADD z INT NULL`, "error 10637"},
		{`ALTER INDEX ixf ON t REBUILD`, "error 10637"},
		{`ALTER INDEX ix ON t REBUILD`, "error 10637"},
		{`TRUNCATE TABLE t`, "error 10637"},
		{`DROP TABLE t`, "error 10637"},
		{`INSERT t VALUES (1, 1, 0); SELECT v FROM t`, "1"},
		{`ALTER INDEX ix ON t PAUSE`, "error 10638"},
		{`ALTER INDEX ixf ON t RESUME`, "error 10638"},
		{`BEGIN TRAN; ALTER INDEX ix ON t RESUME; ROLLBACK`, "began\nerror 574\nrolled back"},
		{`ALTER INDEX ix ON t ABORT`, ""},
		{state, "0"},
		{`ALTER TABLE t ADD z INT NULL`, ""},
	} {
		if got := run(t, s, st.sql).text(); got != st.want {
			t.Errorf("%s\n got: %q\nwant: %q", st.sql, got, st.want)
		}
	}
	e.StopRebuild("dbo.t", "ix", 10)
	run(t, s, begin)
	e.StopRebuild("dbo.t", "ix", 60)
	for _, st := range []batch{
		{`ALTER INDEX ix ON t RESUME WITH (MAXDOP = 4, MAX_DURATION = 5)`, "error 3643"},
		{state, "ix|PAUSED|60|4|" + begin + "\n0"},
		{begin, ""}, // the same again goes on
		{state, "90"},
		{`ALTER INDEX ix ON t RESUME`, "error 10638"},
	} {
		if got := run(t, s, st.sql).text(); got != st.want {
			t.Errorf("%s\n got: %q\nwant: %q", st.sql, got, st.want)
		}
	}
}

// A rebuild at low priority waits and lets others pass; then it ends (SELF),
// goes on waiting like everybody (NONE), or would kill, which is not modelled.
func TestRebuildWaitsAtLowPriority(t *testing.T) {
	for _, c := range []struct{ abort, want string }{{"SELF", "error 1222"}, {"BLOCKERS", "error 50999"}, {"NONE", ""}} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine(t)
			a, b, r := login(t, e), login(t, e), login(t, e)
			defer a.Close()
			defer b.Close()
			defer r.Close()
			must(t, a, rebuildTable)
			must(t, a, `BEGIN TRAN; INSERT t VALUES (1, 1, 0)`)
			done := make(chan *recorder)
			began := time.Now()
			go func() {
				done <- run(t, r, `ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 2 MINUTES, ABORT_AFTER_WAIT = `+c.abort+`)))`)
			}()
			time.Sleep(time.Minute)
			if got := run(t, b, `SET LOCK_TIMEOUT 0; INSERT t VALUES (2, 2, 0); SELECT request_status FROM sys.dm_tran_locks WHERE request_mode = 'Sch-M'`).text(); got != "LOW_PRIORITY_WAIT" {
				t.Errorf("%s: one who comes later: %q", c.abort, got)
			}
			if c.abort == "NONE" {
				time.Sleep(2 * time.Minute)
				if got := run(t, b, `INSERT t VALUES (3, 3, 0)`).text(); got != "error 1222" {
					t.Errorf("%s: after the time the others wait behind it: %q", c.abort, got)
				}
				must(t, a, `COMMIT`)
			}
			if got := (<-done).text(); got != c.want {
				t.Errorf("%s: %q, want %q", c.abort, got, c.want)
			}
			if waited := time.Since(began); c.abort == "SELF" && waited != 2*time.Minute {
				t.Errorf("waited %v", waited)
			}
		})
	}
}
