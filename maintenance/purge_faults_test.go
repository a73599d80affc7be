package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

func serverError(number int32, class uint8) *emulator.Error {
	return &emulator.Error{Number: number, Class: class, Message: fmt.Sprintf("scripted error %d", number)}
}

// Whatever happens to a statement on the way, the run goes on to its end.
func TestPurgeGoesOnAfterFaults(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{
		"a deadlock":             {Error: serverError(1205, 13), Times: 3},
		"a lock timeout":         {Error: serverError(1222, 16), Times: 3},
		"a failover":             {Error: serverError(40197, 17), Times: 2},
		"an old primary":         {Error: serverError(3906, 16)},
		"a lost connection":      {Drop: emulator.DropBefore},
		"a lost answer":          {Drop: emulator.DropAfter},
		"a fatal error":          {Error: serverError(596, 21)},
		"throttling, unheard of": {Error: serverError(49999, 17)},
	} {
		for _, statement := range []string{"PurgeDelete", "PurgeLook", "PurgeCutoff", "PurgeLogWaits"} {
			t.Run(statement+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := newPurgeOutbox(t, scripts.Options{})
				b.processed(1, 500, "DAY, -9")
				fault := fault
				fault.Statement, fault.Nth = statement, 1
				if statement == "PurgeDelete" {
					fault.Nth = 2
				}
				injected := b.engine.Inject(fault)
				p := b.purge()
				p.Batch = 150
				r := b.run(p)
				if injected.Fired() != max(1, fault.Times) || len(b.ids()) != 0 || r.Stopped != maintenance.StopDone || r.Retries < 1 {
					t.Errorf("fired %d times, %d rows are left, %+v", injected.Fired(), len(b.ids()), r)
				}
				// Of a batch whose answer was lost nobody knows the rows.
				if lost := fault.Drop == emulator.DropAfter && statement == "PurgeDelete"; r.Rows != 500 && !lost || r.Rows < 300 {
					t.Errorf("it says it deleted %d rows", r.Rows)
				}
			})
		}
	}
}

func TestPurgeGivesUpWhereWaitingDoesNotHelp(t *testing.T) {
	for name, e := range map[string]*emulator.Error{"a missing right": serverError(229, 14), "a statement's own fault": serverError(8134, 16)} {
		t.Run(name, func(t *testing.T) {
			b := newPurgeOutbox(t, scripts.Options{})
			b.processed(1, 300, "DAY, -9")
			b.engine.Inject(emulator.Fault{Statement: "PurgeDelete", Nth: 2, Error: e})
			p := b.purge()
			p.Batch = 100
			r, err := p.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "delete 100 events of dbo.outbox_event") || r.Stopped != maintenance.StopFailed || r.Rows != 100 {
				t.Errorf("error is %v, result %+v", err, r)
			}
		})
	}
}

// A name that cannot be reached is no outage to wait for.
func TestPurgeDoesNotWaitForAHostThatIsNotThere(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	if err := b.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.purge().Plan(t.Context()); err == nil {
		t.Error("the plan was made without a database")
	}
}

// Every connection is cut while it runs: it comes back, with its lock.
func TestPurgeReconnectsWithItsLock(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 600, "DAY, -9")
	p := b.purge()
	p.Batch = 100
	cut := sync.OnceFunc(b.engine.KillConnections)
	p.Progress = func(r maintenance.Progress) {
		if r.Done > 0 {
			cut()
		}
	}
	if r := b.run(p); len(b.ids()) != 0 || r.Retries == 0 || r.Stopped != maintenance.StopDone {
		t.Errorf("%d rows are left, %+v", len(b.ids()), r)
	}
	if n := b.engine.StatementCount("TakeAppLock"); n < 2 {
		t.Errorf("the lock was taken %d times", n)
	}
}

// What someone holds is passed by and left to the next run, and nobody waits.
func TestPurgePassesLockedRows(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 100, "DAY, -9")
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `UPDATE dbo.outbox_event SET last_error = 'mine' WHERE id IN (7, 8, 50)`); err != nil {
		t.Fatal(err)
	}
	if r := b.run(b.purge()); r.Rows != 97 || r.Retries != 0 {
		t.Errorf("%+v", r)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := b.ids(); !slices.Equal(got, []int64{7, 8, 50}) {
		t.Errorf("left are %v", got)
	}
	if r := b.run(b.purge()); r.Rows != 3 {
		t.Errorf("the next run: %+v", r)
	}
}

// A claim that took its time before the retention and hangs before its commit:
// its rows look free and old the moment it commits, while they are its own.
func TestPurgeWaitsForAClaimThatIsCommitting(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, created_at)
		SELECT g.value, 'order', '42', 'placed', '{}', DATEADD(DAY, -9, SYSUTCDATETIME()) FROM GENERATE_SERIES(1, 20) AS g`)
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `
		DECLARE @at DATETIME2(3) = DATEADD(DAY, -4, SYSUTCDATETIME());
		UPDATE dbo.outbox_event SET status = 1, processed_at = @at WHERE status = 0 AND id <= 10;
		INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		VALUES (NEWID(), 'frozen', 'placed', @at, DATEADD(MINUTE, 1, @at), 10, '[1,2,3,4,5,6,7,8,9,10]')`); err != nil {
		t.Fatal(err)
	}
	p := b.purge()
	p.LockTimeout = 20 * time.Millisecond
	type ended struct {
		maintenance.PurgeResult
		error
	}
	end := make(chan ended, 1)
	go func() {
		r, err := p.Run(context.WithoutCancel(t.Context()))
		end <- ended{r, err}
	}()
	for b.engine.StatementCount("PurgeCutoff") < 3 {
		time.Sleep(time.Millisecond)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r := <-end
	if r.error != nil || r.Rows != 0 || r.HeldBackBy == nil || r.HeldBackBy.Owner != "frozen" || r.Retries < 2 {
		t.Errorf("error is %v, result %+v", r.error, r.PurgeResult)
	}
	if n := len(b.ids()); n != 20 {
		t.Errorf("%d of 20 rows are left", n)
	}
}

// Rows that someone holds for ever, and that READPAST does not pass by, hold up
// their window and no other.
func TestPurgeLeavesAWindowThatSomeoneHolds(t *testing.T) {
	defer maintenance.SetLockPatience(200 * time.Millisecond)()
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 600, "DAY, -9")
	held := b.engine.Inject(emulator.Fault{Statement: "PurgeDelete", Nth: 2, Times: -1, Error: serverError(1222, 16)})
	p := b.purge()
	p.Batch = 200
	p.Progress = func(r maintenance.Progress) {
		if r.Done > 200 {
			t.Error("the held window was deleted")
		}
	}
	r := b.run(p)
	if r.Rows != 200 || r.LockedWindows < 2 || r.Stopped != maintenance.StopDone || held.Fired() < 4 {
		t.Errorf("%+v after %d timeouts", r, held.Fired())
	}
	held.Remove()
	p.Progress = nil
	if r := b.run(p); r.Rows != 400 || r.LockedWindows != 0 {
		t.Errorf("the next run: %+v", r)
	}
}

func TestPurgeOneAtATime(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 100, "DAY, -9")
	conn, err := b.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), `EXEC sp_getapplock @Resource = N'outbox:purge:[dbo].[outbox_event]', @LockMode = 'Exclusive', @LockOwner = 'Session', @DbPrincipal = 'public'`); err != nil {
		t.Fatal(err)
	}
	_, err = b.purge().Run(t.Context())
	var refusal *maintenance.Refusal
	if !errors.As(err, &refusal) || len(b.ids()) != 100 {
		t.Errorf("error is %v", err)
	}
	if plan, err := b.purge().Plan(t.Context()); err != nil || plan.EstimatedRows != 100 {
		t.Errorf("the plan needs no lock: %v, %+v", err, plan)
	}
}

// A right that is missing costs that input, and is said once.
func TestPurgeWithoutASightOfTheLog(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 600, "DAY, -9")
	for _, view := range []string{"sys.dm_db_wait_stats", "sys.dm_db_resource_stats"} {
		if _, err := b.engine.FakeView(emulator.FakeView{Name: view, Denied: true}); err != nil {
			t.Fatal(err)
		}
	}
	p := b.purge()
	p.Batch = 100
	r := b.run(p)
	if r.Rows != 600 || r.Retries != 0 || len(r.Notes) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, view := range []string{"sys.dm_db_wait_stats", "sys.dm_db_resource_stats"} {
		if !strings.Contains(r.Notes[i], view) || !strings.Contains(r.Notes[i], "GRANT VIEW DATABASE STATE") {
			t.Errorf("note %q", r.Notes[i])
		}
	}
	for _, statement := range []string{"PurgeLogWaits", "PurgeLogWrite"} {
		if n := b.engine.StatementCount(statement); n != 1 {
			t.Errorf("%s was sent %d times", statement, n)
		}
	}
}

func TestPurgeOnABoxedServer(t *testing.T) {
	b := newPurgeOutboxOn(t, emulator.Config{Edition: emulator.SQLServerStandard}, scripts.Options{})
	b.processed(1, 600, "DAY, -9")
	if r := b.run(b.purge()); r.Rows != 600 || len(r.Notes) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestPurgeSeesThatTheLogIsShort(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 600, "DAY, -9")
	if _, err := b.engine.FakeView(emulator.FakeView{
		Name: "sys.dm_db_resource_stats", Columns: []string{"end_time", "avg_log_write_percent"},
		Rows: [][]any{{time.Now().UTC(), 96.5}, {time.Now().UTC().Add(-15 * time.Second), 12.0}},
	}); err != nil {
		t.Fatal(err)
	}
	p := b.purge()
	p.Batch = 300
	if r := b.run(p); r.Rows != 600 || r.LogShortages != 1 || len(r.Notes) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestPurgeEndsWhenItsTimeIsOver(t *testing.T) {
	for want, limit := range map[maintenance.Stop]func(*maintenance.Purge, time.Duration){
		maintenance.StopMaxDuration: func(p *maintenance.Purge, left time.Duration) { p.MaxDuration = left },
		maintenance.StopWindow: func(p *maintenance.Purge, left time.Duration) {
			now := time.Now().UTC()
			sinceMidnight := now.Sub(now.Truncate(24 * time.Hour))
			p.Window = maintenance.Hours{
				From:  (sinceMidnight + 23*time.Hour) % (24 * time.Hour),
				Until: (sinceMidnight + left) % (24 * time.Hour),
			}
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			b := newPurgeOutbox(t, scripts.Options{})
			b.processed(1, 600, "DAY, -9")
			var r maintenance.PurgeResult
			// A machine that is too slow finds the window closed before it begins.
			for left := 500 * time.Millisecond; ; left *= 2 {
				p := b.purge()
				p.Batch, p.Pause = 100, time.Minute
				limit(&p, left)
				if r = b.run(p); r.Stopped != maintenance.StopOutside || left > time.Minute {
					break
				}
			}
			// One batch, or none where the machine is slow: the pause is a minute.
			if r.Stopped != want || r.Rows > 100 || int64(len(b.ids())) != 600-r.Rows {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The lowest and the highest id of every type of integer.
func TestPurgeAtTheEndsOfTheIDs(t *testing.T) {
	for kind, ids := range map[string][2]int64{
		"BIGINT": {math.MinInt64, math.MaxInt64}, "INT": {math.MinInt32, math.MaxInt32},
		"SMALLINT": {math.MinInt16, math.MaxInt16}, "TINYINT": {0, math.MaxUint8},
	} {
		for batch := 1; batch <= 4; batch++ {
			t.Run(fmt.Sprint(kind, batch), func(t *testing.T) {
				b := newPurgeOutbox(t, scripts.Options{})
				b.exec(fmt.Sprintf(`DROP TABLE dbo.outbox_event;
					CREATE TABLE dbo.outbox_event (id %s PRIMARY KEY, status TINYINT NOT NULL, created_at DATETIME2(3) NOT NULL, processed_at DATETIME2(3) NULL);`, kind))
				for _, id := range []int64{ids[0], 1, 2, ids[1]} {
					b.exec(fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, status, created_at, processed_at) VALUES (CAST('%d' AS %s), 1, DATEADD(DAY, -9, SYSUTCDATETIME()), DATEADD(DAY, -8, SYSUTCDATETIME()))`, id, kind))
				}
				p := b.purge()
				p.Batch = batch
				if r := b.run(p); r.Rows != 4 || r.EstimatedRows != 4 {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

// A table that is too long to count is sampled: gaps, and rows that stay.
func TestPurgeEstimatesBySamples(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at)
		VALUES (-9000000, 'order', '42', 'placed', '{}', 2, DATEADD(DAY, -99, SYSUTCDATETIME()))`)
	// Blocks of 50 ids of which 20 were used.
	b.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
		SELECT 1000000 + g.value / 20 * 50 + g.value % 20, 'order', '42', 'placed', '{}', 1, t.at, t.at
		FROM GENERATE_SERIES(1, 39000) AS g
		CROSS APPLY (SELECT DATEADD(SECOND, 10 * (g.value - 30001), DATEADD(HOUR, -72, SYSUTCDATETIME())) AS at) AS t`)
	plan, err := b.purge().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan.Exact || plan.EstimatedRows < 28_000 || plan.EstimatedRows > 32_000 {
		t.Errorf("the estimate of 30,000 rows is %+v", plan.PurgeEstimate)
	}
	if reads := b.engine.StatementCount("PurgeLook"); reads > 110 {
		t.Errorf("it took %d looks", reads)
	}
}

// The rights that docs/operations.md names are enough, and no fewer are.
func TestPurgeNeedsFewRights(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 100, "DAY, -9")
	b.exec(`CREATE USER purger WITH PASSWORD = 'Purger-1-Local'`)
	db, err := sqlserver.Open(b.engine.DSNFor("purger", "Purger-1-Local"), sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := b.purge()
	p.DB = db
	for _, right := range []string{"SELECT, DELETE ON dbo.outbox_event", "SELECT ON dbo.outbox_event_claim", "SELECT ON dbo.outbox_event_worker"} {
		if _, err := p.Run(t.Context()); err == nil || len(b.ids()) != 100 {
			t.Fatalf("without %s: %v", right, err)
		}
		b.exec("GRANT " + right + " TO purger")
	}
	r := b.run(p)
	if r.Rows != 100 || len(r.Notes) != 2 {
		t.Errorf("%+v", r)
	}
	b.processed(1, 100, "DAY, -9")
	b.exec("GRANT VIEW DATABASE STATE TO purger")
	if r := b.run(p); r.Rows != 100 || len(r.Notes) != 0 {
		t.Errorf("with a sight of the log: %+v", r)
	}
}
