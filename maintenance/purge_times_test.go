package maintenance_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
)

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
