package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// withFailed is a table with n FAILED events of the type bad, ids 1 to n; retryAt
// is the expression of their retry_at.
func withFailed(t *testing.T, n int, retryAt string) *table {
	t.Helper()
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.exec(fmt.Sprintf(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, status, retry_at, retry_count, last_error)
SELECT g.value, 'Order', '1', 'bad', '{}', 2, %s, 3, 'no' FROM GENERATE_SERIES(1, %d) AS g;`, retryAt, n))
	return b
}

// One that fails again while the run goes on is not given back by it again: that
// would take its limit of attempts away, and need never end.
func TestRetryTakesEachEventOnce(t *testing.T) {
	for name, retryAt := range map[string]string{"waiting": "DATEADD(SECOND, g.value, '2099-01-01')", "parked": "NULL"} {
		t.Run(name, func(t *testing.T) {
			b := withFailed(t, 500, retryAt)
			target := b.target()
			// A worker whose sends fail at once: they wait among those that are left.
			target.Progress = func(maintenance.Progress) {
				b.exec(`UPDATE {events} SET status = 2, retry_count = retry_count + 1, retry_at = '2099-01-01 00:08' WHERE status = 0;`)
			}
			r, err := maintenance.SettleFailed{Target: target, Filter: maintenance.FailedFilter{EventType: "bad"}, PerSecond: 1e6}.Run(t.Context())
			if err != nil || r.Settled != 500 || r.Stopped != "" || r.Seconds <= 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if n := b.value(`SELECT COUNT(*) FROM {events} WHERE status = 2 AND retry_count = 1`); fmt.Sprint(n) != "500" {
				t.Errorf("%v events have spent one attempt since, want 500", n)
			}
		})
	}
}

// A low rate is no burst of a whole batch with a long pause behind it.
func TestRetryAtALowRate(t *testing.T) {
	for rate, want := range map[float64]int64{0.1: 1, 2.5: 2, 150: 150, 1000: 200} {
		b := withFailed(t, 300, "NULL")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		target := b.target()
		target.Progress = func(p maintenance.Progress) {
			cancel()
			if p.Done != want {
				t.Errorf("at %g events a second the first %d come back at once, want %d", rate, p.Done, want)
			}
		}
		r, err := maintenance.SettleFailed{Target: target, PerSecond: rate}.Run(ctx)
		if err != nil || r.Settled != int(want) || r.Stopped != "interrupted" {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// The answer to a commit is lost: the events that it settled are no room for
// others.
func TestNoMoreThanTheLimitWhenACommitIsNotAnswered(t *testing.T) {
	for _, drop := range []emulator.DropPoint{emulator.DropBefore, emulator.DropAfter} {
		b := withFailed(t, 2000, "NULL")
		target, first := b.target(), true
		target.Progress = func(maintenance.Progress) {
			if first {
				first = false
				b.server.Inject(emulator.Fault{Statement: emulator.Commit, Drop: drop})
			}
		}
		r, err := maintenance.SettleFailed{Target: target, Discard: true, Reason: "r", By: "b", Limit: 600}.Run(t.Context())
		if err != nil || r.Settled != 600 || r.Stopped != "limit" || r.Matching != 2000 {
			t.Errorf("%+v, %v", r, err)
		}
		if n := b.value(`SELECT COUNT(*) FROM {events} WHERE status = 1`); fmt.Sprint(n) != "600" {
			t.Errorf("%v events are discarded, and the limit was 600", n)
		}
	}
}

// What a worker parked for having no aggregate can be looked at; text of a UTF-8
// column is what it was.
func TestFailedEventsOfAnyTableAreShown(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.exec(`DROP INDEX IX_outbox_claim ON {events};`)
	b.exec(`ALTER TABLE {events} ALTER COLUMN aggregate_id VARCHAR(100) NULL;`)
	b.exec(`ALTER TABLE {events} ALTER COLUMN aggregate_type VARCHAR(100) COLLATE Latin1_General_100_BIN2_UTF8 NULL;`)
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, status) VALUES (1, N'Größe 漢', NULL, 'bad', '{}', 2);`)
	list, err := maintenance.ListFailed(t.Context(), b.target(), maintenance.FailedFilter{}, 10)
	if err != nil || len(list) != 1 || list[0].AggregateType != "Größe 漢" || list[0].AggregateID != "" {
		t.Errorf("%+v, %v", list, err)
	}
	if d, err := maintenance.ShowFailed(t.Context(), b.target(), 1); err != nil || d.AggregateType != "Größe 漢" || d.AggregateID != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := maintenance.ShowFailed(t.Context(), b.target(), 2); !errors.Is(err, maintenance.ErrNotFailed) {
		t.Errorf("%v", err)
	}
}

// An age that would become none, or overflow, is refused; half a second more
// means a second more.
func TestAgeOfFailedEvents(t *testing.T) {
	b := withFailed(t, 1, "NULL")
	b.exec(`UPDATE {events} SET created_at = DATEADD(MILLISECOND, -60500, SYSUTCDATETIME());`)
	for age, want := range map[time.Duration]string{
		500 * time.Millisecond: "OlderThan", -time.Second: "OlderThan", 70 * 365 * 24 * time.Hour: "OlderThan",
		time.Minute: "1", 30 * 365 * 24 * time.Hour: "0", 90*time.Second + 1: "0",
	} {
		list, err := maintenance.ListFailed(t.Context(), b.target(), maintenance.FailedFilter{OlderThan: age}, 10)
		if got := fmt.Sprint(len(list), " ", err); !strings.Contains(got, want) {
			t.Errorf("older than %s: %s, want %s", age, got, want)
		}
	}
}
