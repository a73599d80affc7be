package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A worker that stops takes its heartbeat away, and is through in time and
// without an error whatever the database says to that.
func TestStopTakesTheHeartbeatAway(t *testing.T) {
	away := errors.New("the database is away")
	for name, c := range map[string]struct {
		drain  bool
		fail   func(call string, nth int) error
		hang   string
		calls  int
		within time.Duration
		lines  int // of the log, about a row that stays
	}{
		"stopped":                            {calls: 1},
		"drained":                            {drain: true, calls: 1},
		"refused":                            {calls: 1, lines: 1, fail: func(call string, _ int) error { return map[string]error{"Leave": away}[call] }},
		"hangs":                              {calls: 1, lines: 1, hang: "Leave", within: leavePatience},
		"nobody answers":                     {fail: func(call string, nth int) error { return map[bool]error{true: away}[call == "Heartbeat" && nth > 1] }},
		"never there":                        {fail: func(call string, _ int) error { return map[string]error{"Check": away}[call] }},
		"stopped during its first heartbeat": {calls: 1, hang: "Heartbeat"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.setFail(c.fail)
				store.setHang(func(call string) bool { return call == c.hang })
				logs, seen := observer.New(zap.InfoLevel)
				w, err := New(Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Drain: c.drain, Logger: zap.New(logs)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var stopped time.Time
				time.AfterFunc(time.Minute, func() { stopped = time.Now(); cancel() })
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
				if !c.drain && time.Since(stopped) > c.within {
					t.Errorf("the stop took %s, want at most %s", time.Since(stopped), c.within)
				}
				cancel()
				if got := store.called("Leave"); got != c.calls {
					t.Errorf("Leave was called %d times, want %d", got, c.calls)
				}
				if got := seen.FilterMessageSnippet("could not be deleted").Len(); got != c.lines {
					t.Errorf("%d log lines about a row that stays, want %d", got, c.lines)
				}
			})
		})
	}
}

// However long the deletion hangs, the grace period holds, also for a worker that
// is stopped in its first heartbeat.
func TestStopWithAHangingDatabaseKeepsTheGracePeriod(t *testing.T) {
	for name, hangs := range map[string][]string{"working": {"Leave"}, "starting": {"Heartbeat", "Leave"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.setHang(func(call string) bool { return slices.Contains(hangs, call) })
				const grace = 2 * time.Second
				_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Grace: grace})
				time.Sleep(time.Minute)
				began := time.Now()
				stop()
				if took := time.Since(began); took > grace {
					t.Errorf("the stop took %s of a grace period of %s", took, grace)
				}
			})
		})
	}
}

// A worker whose RetryDue failed is ready again when there is nothing to bring
// back any more, though it was another worker that did it.
func TestReadyWhenAnotherWorkerBroughtBackWhatWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.retryDue = true // the fake takes it for done by another
		store.setFail(func(call string, _ int) error {
			return map[string]error{"RetryDue": errors.New("deadlock")}[call]
		})
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
		time.Sleep(DefaultReapEvery / 2)
		if w.Ready() == nil {
			t.Error("it is ready while RetryDue fails")
		}
		time.Sleep(2 * DefaultReapEvery)
		if err := w.Ready(); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		stop()
	})
}

// A Reap that takes all the time it has leaves RetryDue its own.
func TestRetryDueAfterASlowReap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.retryDue = true
		store.setHang(func(call string) bool { return call == "Reap" })
		logs, seen := observer.New(zap.InfoLevel)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		time.Sleep(2 * keeperPatience)
		if n := store.called("RetryDue"); n == 0 {
			t.Error("what is due was not brought back")
		}
		if lines := seen.FilterMessageSnippet("bringing back failed events fails").All(); len(lines) > 0 {
			t.Errorf("RetryDue had no time: %v", lines[0].ContextMap()["error"])
		}
		stop()
	})
}
