package worker

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A claim that takes the time to send with it is the database's doing. The
// destination gets no blame, the events are pending again, and the loop does not
// spin.
func TestASlowClaimIsNotBlamedOnTheDestination(t *testing.T) {
	for name, took := range map[string]time.Duration{
		"the claim comes too late":       2400 * time.Millisecond, // of a deadline of 2.5 s
		"the claim does not come at all": 2600 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, sent := newFakeStore(), &journal{}
				store.add("a", 10)
				store.slowClaims.Store(int64(took))
				w, stop := start(t, Config{Store: store, Publisher: sent, EventTypes: []string{"a"}, Lease: 5 * time.Second})
				var blamed atomic.Bool
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					if len(w.Status().Breakers) > 0 {
						blamed.Store(true)
					}
				}
				if blamed.Load() {
					t.Error("a breaker opened for a destination that nothing was sent to")
				}
				if err := w.Ready(); err == nil || !strings.Contains(err.Error(), `a claim of "a" took 2.`) || !strings.Contains(err.Error(), "--lease, now 5s") {
					t.Errorf("the worker says %v", err)
				}
				if n := store.called("Claim"); n > 50 {
					t.Errorf("%d claims in a minute", n)
				}
				store.slowClaims.Store(0)
				time.Sleep(time.Minute)
				if err := sent.check(10); err != nil {
					t.Error(err)
				}
				if err := w.Ready(); err != nil {
					t.Errorf("not ready although the database is quick again: %v", err)
				}
				stop()
			})
		})
	}
}

// One event type that cannot be claimed is one outage, also for those who read the
// heartbeat, however often claims of the others pass; and over once nothing of it is
// pending.
func TestOneFailingEventTypeIsOneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.refused = map[string]error{"bad": errors.New("its pages are locked")}
		logs, seen := observer.New(zap.InfoLevel)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"bad", "good"}, Logger: zap.New(logs)})
		store.add("bad", 1)
		for range 600 {
			store.add("good", 1)
			time.Sleep(time.Second)
		}
		if n := seen.FilterMessageSnippet("claiming").Len(); n != 1 {
			t.Errorf("%d log lines for one outage: %v", n, seen.All())
		}
		if err := w.Working(); err == nil || !strings.Contains(err.Error(), "its pages are locked") {
			t.Errorf("while one type fails the worker says %v", err)
		}
		if err := store.lastBeat().Trouble; err == nil || !strings.Contains(err.Error(), "claiming has been failing for ") {
			t.Errorf("while one type fails the heartbeat says %v", err)
		}
		store.discard("bad")
		time.Sleep(DefaultHeartbeatEvery * 2)
		if err := errors.Join(w.Working(), store.lastBeat().Trouble); err != nil {
			t.Errorf("with nothing pending of what failed: %v", err)
		}
		if n := seen.FilterMessageSnippet("claiming").Len(); n != 2 {
			t.Errorf("%d log lines for the whole outage: %v", n, seen.All())
		}
		stop()
	})
}
