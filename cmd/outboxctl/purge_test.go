package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"azsqloutbox/sqlserver/emulator"
)

// purgeEngine is an engine with an outbox of old and young events: 5,000 that
// are due, and 1,003 that are not.
func purgeEngine(t *testing.T) *emulator.Server {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	engine := newEngine(t, emulator.Config{})
	for _, rows := range []string{"1, 5000, -96, 1", "5001, 5001, -95, 0", "5002, 5002, -95, 2", "5003, 6002, -1, 1"} {
		part := strings.Split(rows, ", ")
		runSQL(t, engine, fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
			SELECT g.value, 'order', '42', 'placed', '{"total":12.5}', %s, t.at, CASE WHEN %s = 1 THEN t.at END
			FROM (SELECT DATEADD(HOUR, %s, SYSUTCDATETIME()) AS at) AS t CROSS JOIN GENERATE_SERIES(%s, %s) AS g`,
			part[3], part[3], part[2], part[0], part[1]))
	}
	runSQL(t, engine, `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at)
		VALUES (7000, 'order', '42', 'placed', '{}', 1, DATEADD(DAY, -9, SYSUTCDATETIME()))`)
	return engine
}

func runSQL(t *testing.T, engine *emulator.Server, batch string) [][]any {
	t.Helper()
	sets, err := engine.Exec(context.Background(), "SET QUOTED_IDENTIFIER ON;\n"+batch)
	if err != nil {
		t.Fatalf("%v in %s", err, batch)
	}
	if len(sets) == 0 {
		return nil
	}
	return sets[len(sets)-1].Rows
}

func rowsLeft(t *testing.T, engine *emulator.Server) int64 {
	t.Helper()
	return runSQL(t, engine, `SELECT COUNT(*) FROM dbo.outbox_event`)[0][0].(int64)
}

var purgeNumbers = []replacement{
	replacing(`in \d+\.\d s, [\d,]+ rows/s`, "in N s, N rows/s"),
	replacing(`"(seconds|rows_per_second)": [\d.e+-]+`, `"$1": N`),
}

func TestPurgePlanDeletesNothing(t *testing.T) {
	engine := purgeEngine(t)
	for name, args := range map[string][]string{"purge-plan": nil, "purge-plan-json": {"--json"}} {
		code, stdout, stderr := outboxctl(t, append([]string{"purge", "--sql-dsn", engine.DSN()}, args...)...)
		if code != exitDone || stderr != "" {
			t.Errorf("%s: exit %d, stderr %q", name, code, stderr)
		}
		golden(t, name, stdout, purgeNumbers...)
		if args != nil {
			documented(t, "purge", stdout)
		}
	}
	if n := rowsLeft(t, engine); n != 6003 {
		t.Errorf("%d of 6003 rows are left", n)
	}
}

func TestPurgeDeletes(t *testing.T) {
	for name, args := range map[string][]string{"purge": nil, "purge-json": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			engine := purgeEngine(t)
			code, stdout, stderr := outboxctl(t, append([]string{"purge", "--sql-dsn", engine.DSN(), "--pause", "0s", "--execute"}, args...)...)
			if code != exitDone {
				t.Errorf("exit %d, stderr %q", code, stderr)
			}
			if !strings.Contains(stderr, "purge: 0 of 5000 rows") {
				t.Errorf("no progress in %q", stderr)
			}
			golden(t, name, stdout, purgeNumbers...)
			if args != nil {
				documented(t, "purge", stdout)
			}
			if n := rowsLeft(t, engine); n != 1003 {
				t.Errorf("%d rows are left, want 1003", n)
			}
		})
	}
}

func TestPurgeHeldBackByAReceipt(t *testing.T) {
	engine := purgeEngine(t)
	runSQL(t, engine, `INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		SELECT '0d9c6b0e-8f3e-4b0a-9a55-3d1c2b6f7a10', 'worker-1/77', 'placed', t.at, DATEADD(MINUTE, 1, t.at), 1, '[1]'
		FROM (SELECT DATEADD(DAY, -7, SYSUTCDATETIME()) AS at) AS t`)
	said := func(code int, stderr string) {
		t.Helper()
		// A job that deletes nothing night after night is what the alert on jobs is for.
		if code != exitFound || !strings.Contains(stderr, "outboxctl: the purge of dbo.outbox_event is held back by the claim 0D9C6B0E-8F3E-4B0A-9A55-3D1C2B6F7A10 of worker-1/77") {
			t.Errorf("exit %d, stderr %q", code, stderr)
		}
	}
	code, stdout, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--execute")
	said(code, stderr)
	golden(t, "purge-held-back", stdout, purgeNumbers...)
	code, stdout, stderr = outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--json")
	said(code, stderr)
	documented(t, "purge", stdout)
	if n := rowsLeft(t, engine); n != 6003 {
		t.Errorf("%d of 6003 rows are left", n)
	}
}

func TestPurgeOutsideOfItsWindow(t *testing.T) {
	engine := purgeEngine(t)
	now := time.Now().UTC()
	window := now.Add(2*time.Hour).Format("15:04") + "-" + now.Add(3*time.Hour).Format("15:04")
	code, stdout, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--window", window, "--execute")
	if code != exitDone {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	golden(t, "purge-outside-window", strings.ReplaceAll(stdout, window, "WINDOW"), purgeNumbers...)
	if n := rowsLeft(t, engine); n != 6003 {
		t.Errorf("%d of 6003 rows are left", n)
	}
	open := now.Add(-time.Hour).Format("15:04") + "-" + now.Add(time.Hour).Format("15:04")
	if code, _, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--window", open, "--execute"); code != exitDone || rowsLeft(t, engine) != 1003 {
		t.Errorf("in the window %s: exit %d, stderr %q", open, code, stderr)
	}
}

func TestPurgeExitCodes(t *testing.T) {
	engine := purgeEngine(t)
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, []string{"--retention", "30s"}, "--retention"},
		{exitUsage, []string{"--retention", "119s"}, "twice the lease"},
		{exitUsage, []string{"--retention", "soon"}, "retention"},
		{exitUsage, []string{"--batch", "2001"}, "--batch"},
		{exitUsage, []string{"--pause", "-1s"}, "--pause"},
		{exitUsage, []string{"--max-duration", "-1s"}, "--max-duration"},
		{exitUsage, []string{"--window", "night"}, "--window"},
		{exitFound, []string{"--table", "no_such"}, "no_such"},
	} {
		code, stdout, stderr := outboxctl(t, append([]string{"purge", "--sql-dsn", engine.DSN(), "--execute"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
	if n := rowsLeft(t, engine); n != 6003 {
		t.Errorf("%d of 6003 rows are left", n)
	}
}

// Times that cannot be hold up no other event and are told to a person. Those that
// hours explain go later by themselves; the others stay, and the one statement that
// the message has mends all of them.
func TestPurgeOfTimesThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		times   string
		deleted int64
		stray   bool
	}{
		// All others are 96 h old and less than 26 h above the retention.
		"local time": {`processed_at = DATEADD(HOUR, CASE id WHEN 7 THEN -1 ELSE 1 END, created_at), created_at = CASE id WHEN 7 THEN created_at ELSE DATEADD(HOUR, 3, created_at) END`, 4998, false},
		"far ahead":  {`created_at = CASE id WHEN 7 THEN '2030-01-01' ELSE '9999-12-31' END`, 4998, true},
		"never":      {`processed_at = CASE id WHEN 7 THEN '9999-12-31T23:59:59.999' ELSE '0001-01-01' END`, 4998, true},
		"year one":   {`created_at = '0001-01-01'`, 5000, false},
	} {
		t.Run(name, func(t *testing.T) {
			engine := purgeEngine(t)
			runSQL(t, engine, `UPDATE dbo.outbox_event SET `+c.times+` WHERE id IN (7, 4999)`)
			code, stdout, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--execute", "--json")
			documented(t, "purge", stdout)
			_, said, _ := strings.Cut(stderr, "outboxctl: ") // behind the progress
			if want := 6003 - c.deleted; rowsLeft(t, engine) != want {
				t.Errorf("%d of 6003 rows are left, want %d", rowsLeft(t, engine), want)
			}
			if !c.stray {
				if code != exitDone || said != "" {
					t.Errorf("exit %d, stderr %q", code, stderr)
				}
				_, plan, _ := outboxctl(t, "purge", "--sql-dsn", engine.DSN())
				if line := "wrong clock  "; strings.Contains(plan, line) != (c.deleted < 5000) || strings.Contains(stdout, `"doubtful_times": null`) != (c.deleted == 5000) {
					t.Errorf("plan %q\nresult %s", plan, stdout)
				}
				return
			}
			if code != exitFound || !strings.Contains(stdout, `"stopped": "done"`) {
				t.Errorf("exit %d, stdout %q", code, stdout)
			}
			golden(t, "purge-"+strings.ReplaceAll(name, " ", "-"), said, replacing(`'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+'`, "'CUTOFF'"))
			_, remedy, _ := strings.Cut(said, "today: ")
			runSQL(t, engine, remedy)
			if code, _, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--execute"); code != exitDone || strings.Contains(stderr, "outboxctl: ") || rowsLeft(t, engine) != 1005 {
				t.Errorf("after %s: exit %d, stderr %q, %d rows left", remedy, code, stderr, rowsLeft(t, engine))
			}
		})
	}
}

// interrupted is a purge that is stopped while it pauses behind its first batch.
func interrupted(t *testing.T, engine *emulator.Server, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"purge", "--sql-dsn", engine.DSN(), "--execute", "--batch", "1000", "--pause", "1m"}, args...), &out, &errs)
	}()
	for patience := time.Now().Add(30 * time.Second); rowsLeft(t, engine) == 6003; {
		if time.Now().After(patience) {
			t.Fatal("nothing was deleted")
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	return <-ended, out.String(), errs.String()
}

func TestPurgeInterruptedSaysWhatItDid(t *testing.T) {
	engine := purgeEngine(t)
	code, stdout, stderr := interrupted(t, engine, "--json")
	if code != exitFailed || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	golden(t, "purge-interrupted-json", stdout, purgeNumbers...)
	var result struct {
		Rows    int64
		Stopped string
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Stopped != "interrupted" || rowsLeft(t, engine) != 6003-result.Rows {
		t.Errorf("%v, %+v, %d rows are left", err, result, rowsLeft(t, engine))
	}
	// The next one goes on.
	if code, _, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--execute"); code != exitDone || rowsLeft(t, engine) != 1003 {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

func TestTwoPurgesAtOnce(t *testing.T) {
	engine := purgeEngine(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		var out, errs bytes.Buffer
		ended <- run(ctx, []string{"purge", "--sql-dsn", engine.DSN(), "--execute", "--batch", "1000", "--pause", "1m"}, &out, &errs)
	}()
	for patience := time.Now().Add(30 * time.Second); rowsLeft(t, engine) == 6003; {
		if time.Now().After(patience) {
			t.Fatal("nothing was deleted")
		}
		time.Sleep(time.Millisecond)
	}
	code, stdout, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--execute", "--json")
	if code != exitFound || !strings.Contains(stdout, `"executed": false`) || !strings.Contains(stdout, `"stopped": "refused"`) {
		t.Errorf("exit %d, stdout %q", code, stdout)
	}
	golden(t, "purge-second", stderr)
	stop()
	if code := <-ended; code != exitFailed {
		t.Errorf("the first one: exit %d", code)
	}
}
