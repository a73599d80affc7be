package maintenance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// purgeOutbox is an empty outbox on an engine of its own.
type purgeOutbox struct {
	*testing.T
	engine *emulator.Server
	db     *sql.DB
}

func newPurgeOutbox(t *testing.T, o scripts.Options) *purgeOutbox {
	t.Helper()
	return newPurgeOutboxOn(t, emulator.Config{}, o)
}

func newPurgeOutboxOn(t *testing.T, c emulator.Config, o scripts.Options) *purgeOutbox {
	t.Helper()
	engine, err := emulator.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &purgeOutbox{T: t, engine: engine}
	script, err := scripts.Outbox(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		b.exec(batch)
	}
	if b.db, err = sqlserver.Open(engine.DSN(), sqlserver.Options{LongStatements: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.db.Close() })
	return b
}

func (b *purgeOutbox) exec(batch string) []emulator.ResultSet {
	b.Helper()
	sets, err := b.engine.Exec(context.Background(), "SET QUOTED_IDENTIFIER ON;\n"+batch)
	if err != nil {
		b.Fatalf("%v in %s", err, batch)
	}
	return sets
}

// processed writes n events with the ids from first on, processed so long ago.
func (b *purgeOutbox) processed(first, n int, ago string) {
	b.Helper()
	b.exec(fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
		SELECT g.value, 'order', '42', 'placed', '{"n":1}', 1, DATEADD(SECOND, -1, t.at), t.at
		FROM (SELECT DATEADD(%s, SYSUTCDATETIME()) AS at) AS t CROSS JOIN GENERATE_SERIES(%d, %d) AS g`, ago, first, first+n-1))
}

func (b *purgeOutbox) ids() []int64 {
	b.Helper()
	var ids []int64
	for _, row := range b.exec(`SELECT id FROM dbo.outbox_event ORDER BY id`)[0].Rows {
		ids = append(ids, row[0].(int64))
	}
	return ids
}

func (b *purgeOutbox) purge() maintenance.Purge {
	return maintenance.Purge{Target: maintenance.Target{DB: b.db, Logger: zaptest.NewLogger(b)}, Retention: 72 * time.Hour}
}

func (b *purgeOutbox) run(p maintenance.Purge) maintenance.PurgeResult {
	b.Helper()
	r, err := p.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// What may go and what may not, one row each.
func TestPurgeDeletesOldProcessedEventsOnly(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	for id, row := range map[int]string{
		1:  "1, DATEADD(DAY, -9, @now), DATEADD(DAY, -9, @now)",                        // goes
		2:  "1, DATEADD(DAY, -9, @now), DATEADD(SECOND, 5, DATEADD(HOUR, -72, @now))",  // too young
		3:  "1, DATEADD(DAY, -9, @now), DATEADD(SECOND, -5, DATEADD(HOUR, -72, @now))", // goes
		4:  "0, DATEADD(DAY, -9, @now), NULL",                                          // PENDING
		5:  "0, DATEADD(DAY, -9, @now), DATEADD(DAY, -8, @now)",                        // PENDING, whatever its time
		6:  "2, DATEADD(DAY, -9, @now), NULL",                                          // FAILED
		7:  "2, DATEADD(DAY, -9, @now), DATEADD(DAY, -8, @now)",                        // FAILED
		8:  "1, DATEADD(DAY, -9, @now), NULL",                                          // nobody knows when
		9:  "1, DATEADD(DAY, -9, @now), DATEADD(DAY, -8, @now)",                        // goes, behind all of them
		10: "1, DATEADD(HOUR, -1, @now), DATEADD(HOUR, -1, @now)",                      // young
		-3: "1, DATEADD(DAY, -9, @now), DATEADD(DAY, -9, @now)",                        // goes: a negative id
	} {
		b.exec(fmt.Sprintf(`DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
			INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers, status, created_at, processed_at)
			VALUES (%d, 'order', '42', 'placed', 'äöü', '{}', %s)`, id, row))
	}
	plan, err := b.purge().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan.EstimatedRows != 4 || !plan.Exact || plan.TableRows != 11 || plan.Oldest.ID != -3 {
		t.Errorf("the plan is %+v", plan)
	}
	if n := len(b.ids()); n != 11 {
		t.Fatalf("the plan left %d of 11 rows", n)
	}
	r := b.run(b.purge())
	if got, want := b.ids(), []int64{2, 4, 5, 6, 7, 8, 10}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if r.Rows != 4 || r.PendingRows != 2 || r.FailedRows != 2 || r.UnstampedRows != 1 || r.Stopped != maintenance.StopDone || r.Windows != 1 || r.Batches != 1 {
		t.Errorf("the result is %+v", r)
	}
	// 4 + 48 fixed + 4 of NULL bitmap + 14 of offsets + 2, and the texts.
	if want := int64(4 * (4 + (8 + 1 + 7 + 7 + 7 + 4) + (2 + 2) + (2 + 2*6) + 2 + len("order42placedäöü{}"))); r.BytesFreed != want || plan.EstimatedBytes != want {
		t.Errorf("freed %d bytes, estimated %d, want %d", r.BytesFreed, plan.EstimatedBytes, want)
	}
	if again := b.run(b.purge()); again.Rows != 0 || again.Stopped != maintenance.StopDone {
		t.Errorf("a second purge: %+v", again)
	}
}

func TestPurgeOfAnEmptyTable(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	if r := b.run(b.purge()); r.Rows != 0 || r.Stopped != maintenance.StopDone || r.Oldest != nil || !r.Exact {
		t.Errorf("%+v", r)
	}
}

// What a receipt may name stays, whoever wrote it and whether or not its ids
// can be read.
func TestPurgeKeepsWhatOpenReceiptsMayName(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 5, "DAY, -9")
	b.processed(6, 5, "DAY, -5")
	b.processed(11, 5, "DAY, -4")
	b.exec(`INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		SELECT NEWID(), 'another version', 'placed', processed_at, DATEADD(MINUTE, 1, processed_at), 7, '<6 to 12>' FROM dbo.outbox_event WHERE id = 6;
		INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		SELECT NEWID(), 'ours', 'placed', SYSUTCDATETIME(), DATEADD(MINUTE, 1, SYSUTCDATETIME()), 1, '[99]'`)
	r := b.run(b.purge())
	if got, want := b.ids(), []int64{6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if h := r.HeldBackBy; h == nil || h.Owner != "another version" || r.OpenReceipts != 2 || !r.Cutoff.Equal(h.ClaimedAt) {
		t.Errorf("held back by %+v, result %+v", h, r)
	}
	b.exec(`DELETE FROM dbo.outbox_event_claim WHERE owner = 'another version'`)
	if r := b.run(b.purge()); r.Rows != 10 || r.HeldBackBy != nil {
		t.Errorf("without it: %+v", r)
	}
}

// Ids are no order of time: a block that was taken early and used late must not
// end the walk.
func TestPurgePassesYoungRowsBetweenOldOnes(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 300, "HOUR, -1") // a writer's block, late
	b.processed(1001, 700, "DAY, -4")
	b.processed(2001, 9000, "HOUR, -2")
	b.processed(20001, 50, "DAY, -4") // behind more than any block: the next run's
	p := b.purge()
	p.Batch = 100
	r := b.run(p)
	if r.Rows != 700 || r.Stopped != maintenance.StopDone {
		t.Errorf("%+v", r)
	}
	if r.Windows > 3+7+41 {
		t.Errorf("%d windows were looked at: the walk did not end", r.Windows)
	}
}

func TestPurgeWalksInBatches(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 5000, "DAY, -4")
	b.processed(5001, 100, "HOUR, -4")
	p := b.purge()
	var reports []maintenance.Progress
	p.Progress = func(r maintenance.Progress) { reports = append(reports, r) }
	r := b.run(p)
	if r.Rows != 5000 || len(b.ids()) != 100 || r.Batches < 3 || r.RowsPerSecond <= 0 || r.Seconds <= 0 {
		t.Errorf("%+v", r)
	}
	if len(reports) != int(r.Batches)+1 {
		t.Fatalf("%d reports of %d batches", len(reports), r.Batches)
	}
	if first, last := reports[0], reports[len(reports)-1]; first.Done != 0 || first.Total != 5000 || last.Done != 5000 || last.Unit != "rows" {
		t.Errorf("reports from %+v to %+v", first, last)
	}
}

// One row whose times cannot be holds up nothing else, wherever it stands. Where
// it may be a clock of another time zone, it goes 26 hours later than others.
func TestPurgePassesOverTimesThatCannotBe(t *testing.T) {
	const created = "DATEADD(DAY, -9, @now), "
	for name, c := range map[string]struct {
		times          string
		shifted, stray int64
		kept           bool
	}{
		"a zone in the east":          {created + "DATEADD(HOUR, 2, @now)", 1, 0, true},
		"a writer in the east, older": {"DATEADD(HOUR, -90, @now), DATEADD(HOUR, -99, @now)", 1, 0, false},
		"a zone in the west":          {created + "DATEADD(HOUR, -5, DATEADD(DAY, -9, @now))", 1, 0, false},
		"a writer in the east":        {"DATEADD(HOUR, 9, @now), @now", 1, 0, true},
		"a writer in the east, old":   {"DATEADD(HOUR, -80, @now), DATEADD(HOUR, -89, @now)", 1, 0, true},
		"the farthest zones":          {"DATEADD(HOUR, -150, @now), DATEADD(HOUR, -176, @now)", 1, 0, false},
		"farther than zones":          {"DATEADD(HOUR, -150, @now), DATEADD(HOUR, -177, @now)", 0, 1, true},
		"the last processed_at":       {created + "'9999-12-31T23:59:59.999'", 0, 1, true},
		"the first processed_at":      {created + "'0001-01-01'", 0, 1, true},
		"the last created_at":         {"'9999-12-31T23:59:59.999', DATEADD(DAY, -9, @now)", 0, 1, true},
		"the last created_at, young":  {"'9999-12-31T23:59:59.999', @now", 0, 0, true},
		"the first created_at":        {"'0001-01-01', DATEADD(DAY, -9, @now)", 0, 0, false},
		"the first created_at, young": {"'0001-01-01', @now", 0, 0, true},
		"the first of both":           {"'0001-01-01', '0001-01-01'", 0, 0, false},
		"the last of both":            {"'9999-12-31T23:59:59.999', '9999-12-31T23:59:59.999'", 0, 1, true},
	} {
		for _, id := range []int64{0, 5000, 99999} {
			t.Run(fmt.Sprint(name, id), func(t *testing.T) {
				b := newPurgeOutbox(t, scripts.Options{})
				b.processed(1, 10, "DAY, -9")
				b.processed(90, 1, "HOUR, -73")
				b.processed(10000, 10, "DAY, -9")
				b.exec(fmt.Sprintf(`DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
					INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
					VALUES (%d, 'order', '42', 'placed', '{}', 1, %s)`, id, c.times))
				plan, err := b.purge().Plan(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				r := b.run(b.purge())
				for what, d := range map[string]*maintenance.DoubtfulTimes{"plan": plan.Doubtful, "run": r.Doubtful} {
					if c.shifted+c.stray == 0 {
						if d != nil {
							t.Errorf("the %s doubts %+v", what, d)
						}
						continue
					}
					if d == nil || d.ShiftedRows != c.shifted || d.StrayRows != c.stray || !strings.Contains(d.Shifted()+d.Stray(), fmt.Sprint("id ", id)) {
						t.Errorf("the %s doubts %+v", what, d)
					}
				}
				var want []int64
				if c.kept {
					want = append(want, id)
				}
				if got := b.ids(); !slices.Equal(got, want) {
					t.Errorf("left are %v, want %v", got, want)
				}
				if int(plan.EstimatedRows) != 22-len(want) || r.Rows != plan.EstimatedRows || r.Stopped != maintenance.StopDone {
					t.Errorf("estimated %d, result %+v", plan.EstimatedRows, r)
				}
			})
		}
	}
}

// The clock of an application that writes created_at may be a little ahead.
func TestPurgeForgivesSeconds(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 10, "DAY, -9")
	b.exec(`UPDATE dbo.outbox_event SET created_at = DATEADD(SECOND, 20, processed_at) WHERE id = 3`)
	if r := b.run(b.purge()); r.Rows != 10 {
		t.Errorf("%+v", r)
	}
}

// The statement that the message has leaves alone what a claim may give back: a
// receipt knows its events by their processed_at.
func TestPurgeRemedyKeepsTheFence(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, processed_at) VALUES (7, 'order', '42', 'placed', '{}', 1, '2999-01-01');
		INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		VALUES (NEWID(), 'w', 'placed', '2999-01-01', '2999-01-01T00:01:00', 1, '[7]');`)
	r := b.run(b.purge())
	if r.Doubtful == nil || r.Doubtful.StrayRows != 1 {
		t.Fatalf("%+v", r)
	}
	_, remedy, _ := strings.Cut(r.Doubtful.Remedy, "today: ")
	for _, c := range []struct {
		then  string
		stray bool
	}{{"", true}, {"DELETE FROM dbo.outbox_event_claim", false}} {
		if c.then != "" {
			b.exec(c.then)
		}
		b.exec(remedy)
		if r := b.run(b.purge()); (r.Doubtful != nil) != c.stray {
			t.Errorf("after %q and the remedy: %+v", c.then, r.Doubtful)
		}
	}
}

// While some clock is taken to tell local time, nothing goes that may be in flight:
// 26 hours and two leases old is old in any zone.
func TestPurgeOfAShortRetentionBesideAWrongClock(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 10, "MINUTE, -1561") // 26 hours and a minute
	b.processed(11, 10, "MINUTE, -1563")
	b.processed(21, 1, "DAY, -9")
	p := b.purge()
	p.Retention = time.Hour
	b.exec(`UPDATE dbo.outbox_event SET created_at = DATEADD(HOUR, 5, processed_at) WHERE id = 21`)
	if r := b.run(p); r.Rows != 11 || len(b.ids()) != 10 {
		t.Errorf("beside it: %+v", r)
	}
	if r := b.run(p); r.Rows != 10 || r.Doubtful != nil {
		t.Errorf("without it: %+v", r)
	}
}

// Shifted times in a window that the plan's samples do not reach: from there on
// nothing goes that may be in flight.
func TestPurgeFindsShiftedTimesOnTheWay(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 30000, "HOUR, -20")
	p := b.purge()
	p.Retention = time.Hour
	odd := sync.OnceFunc(func() {
		b.exec(`UPDATE dbo.outbox_event SET processed_at = DATEADD(HOUR, -3, created_at) WHERE id = 20500`)
	})
	p.Progress = func(maintenance.Progress) { odd() }
	r := b.run(p)
	if d := r.Doubtful; d == nil || d.ShiftedRows != 1 || d.FirstShiftedID == nil || *d.FirstShiftedID != 20500 || r.Stopped != maintenance.StopDone {
		t.Fatalf("result %+v", r)
	}
	if age := r.Now.Sub(r.Cutoff); age < 25*time.Hour {
		t.Errorf("the cutoff is %s before the plan", age)
	}
	ids := b.ids()
	if r.Rows == 0 || int64(len(ids)) != 30000-r.Rows || !slices.Contains(ids, 20500) || !slices.Contains(ids, 20501) || !slices.Contains(ids, 30000) {
		t.Errorf("%d rows are left, %d were deleted", len(ids), r.Rows)
	}
}

// A lease of centuries is a long one, and no negative one: a time.Duration wraps
// around at 292 years, and at 584 again.
func TestPurgeOfALeaseWithoutEnd(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 10, "DAY, -9")
	b.exec(`INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		VALUES (NEWID(), 'w', 'placed', SYSUTCDATETIME(), SYSUTCDATETIME(), 1, '[1]')`)
	for _, end := range []string{"DATEADD(YEAR, 500, claimed_at)", "'9999-12-31'"} {
		b.exec(`UPDATE dbo.outbox_event_claim SET lease_until = ` + end)
		if r, err := b.purge().Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) || len(b.ids()) != 10 {
			t.Errorf("a lease until %s: %v, %+v", end, err, r)
		}
	}
	b.exec(`UPDATE dbo.outbox_event_claim SET claimed_at = '0001-01-01', lease_until = '0001-01-02'`)
	p := b.purge()
	p.Retention = 100 * time.Hour
	b.exec(`UPDATE dbo.outbox_event SET created_at = DATEADD(HOUR, 3, processed_at) WHERE id = 4`)
	if r := b.run(p); r.Rows != 0 || r.HeldBackBy == nil || !r.Cutoff.Equal(time.Time{}) {
		t.Errorf("%+v", r)
	}
}

func TestPurgeRefusesARetentionBelowTwiceTheLease(t *testing.T) {
	for name, insert := range map[string]string{
		"none known": ``,
		"a worker": `INSERT INTO dbo.outbox_event_worker (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at)
			VALUES ('w', '1', 's', 300000, 1, 0, SYSUTCDATETIME(), SYSUTCDATETIME())`,
		"a receipt": `INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
			VALUES (NEWID(), 'w', 'placed', SYSUTCDATETIME(), DATEADD(SECOND, 300, SYSUTCDATETIME()), 1, '[1]')`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newPurgeOutbox(t, scripts.Options{})
			b.processed(1, 10, "DAY, -9")
			lease := time.Minute
			if insert != "" {
				lease = 5 * time.Minute
				b.exec(insert)
			}
			p := b.purge()
			p.Retention = 2*lease - time.Second
			if _, err := p.Plan(t.Context()); !errors.Is(err, maintenance.ErrSetting) {
				t.Errorf("planning: %v", err)
			}
			if r, err := p.Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) || r.Rows != 0 || len(b.ids()) != 10 {
				t.Errorf("running: %v, %+v", err, r)
			}
			p.Retention = 2 * lease
			if r := b.run(p); r.Rows != 10 {
				t.Errorf("twice the lease: %+v", r)
			}
		})
	}
}

func TestPurgeRefusesTablesItCannotWalk(t *testing.T) {
	for name, c := range map[string]struct{ change, want string }{
		"no table":       {`DROP TABLE dbo.outbox_event`, "not there"},
		"no column":      {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id BIGINT PRIMARY KEY, status TINYINT, created_at DATETIME2(3))`, "processed_at"},
		"no index by id": {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id BIGINT, status TINYINT, created_at DATETIME2(3), processed_at DATETIME2(3))`, "no index"},
		"an index of some": {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id BIGINT, status TINYINT, created_at DATETIME2(3), processed_at DATETIME2(3));
			CREATE INDEX ix ON dbo.outbox_event (id) WHERE status = 1`, "no index"},
		"an id of text":   {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id VARCHAR(20) PRIMARY KEY, status TINYINT, created_at DATETIME2(3), processed_at DATETIME2(3))`, "no integer"},
		"a coarse time":   {`ALTER TABLE dbo.outbox_event ALTER COLUMN processed_at DATETIME NULL`, "datetime"},
		"a coarser scale": {`ALTER TABLE dbo.outbox_event ALTER COLUMN processed_at DATETIME2(0) NULL`, "datetime2(0)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPurgeOutbox(t, scripts.Options{})
			b.exec(c.change)
			_, err := b.purge().Plan(t.Context())
			var refusal *maintenance.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestPurgeValidates(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	for field, spoil := range map[string]func(*maintenance.Purge){
		"Retention":   func(p *maintenance.Purge) { p.Retention = 59 * time.Second },
		"Batch":       func(p *maintenance.Purge) { p.Batch = sqlserver.MaxBatch + 1 },
		"Pause":       func(p *maintenance.Purge) { p.Pause = -1 },
		"MaxDuration": func(p *maintenance.Purge) { p.MaxDuration = -1 },
		"Window":      func(p *maintenance.Purge) { p.Window = maintenance.Hours{From: time.Hour, Until: time.Hour} },
		"DB":          func(p *maintenance.Purge) { p.DB = nil },
	} {
		p := b.purge()
		spoil(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("field %s: %v", field, err)
		}
		if _, err := p.Run(t.Context()); err == nil {
			t.Errorf("field %s: Run does not mind", field)
		}
	}
}

// What a run reads depends on what it deletes, not on the table.
func TestPurgeReadsTheSameWhateverTheTable(t *testing.T) {
	var read []map[string]int64
	for _, young := range []int{20_000, 40_000} {
		b := newPurgeOutbox(t, scripts.Options{})
		b.processed(1, 3000, "DAY, -4")
		b.processed(10_001, young, "HOUR, -4")
		if r := b.run(b.purge()); r.Rows != 3000 {
			t.Errorf("%+v", r)
		}
		read = append(read, reads(b, b.engine, "PurgeLook", "PurgeNewest", "PurgeDelete"))
	}
	if !maps.Equal(read[0], read[1]) || read[0]["PurgeDelete"] < 3000 || read[0]["PurgeDelete"] > 5000 {
		t.Errorf("rows read in a table of 23,000: %v, of 43,000: %v", read[0], read[1])
	}
}
