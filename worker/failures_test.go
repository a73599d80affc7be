package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

var errAway = errors.New("connection reset by peer")

func TestHangingProbeHoldsUpNothingForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		var hang atomic.Bool
		hang.Store(true)
		store.setHang(func(call string) bool { return call == "Pending" && hang.Load() })
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Lanes: 4})
		time.Sleep(time.Minute)
		if w.Ready() == nil {
			t.Error("ready although no look for work comes back")
		}
		hang.Store(false)
		time.Sleep(time.Minute)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		stop()
		if got := store.count("processed"); got != 10 {
			t.Errorf("%d of 10 events were processed after the network came back", got)
		}
	})
}

// One claim that can never be settled must not make others late: their leases
// would end and their events be sent again.
func TestOneBadSettleHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.fails("Settle", errors.New("a trigger on the table says no"))
		broker := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			if events[0].Type == "bad" {
				return all(len(events), Outcome{Verdict: Refused, Err: errors.New("no JSON")})
			}
			return sent.Publish(ctx, events)
		})
		_, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"bad", "good"}})
		store.add("bad", 1)
		for range 300 {
			store.add("good", 1)
			time.Sleep(time.Second)
		}
		stop()
		for id := int64(2); id <= 301; id++ {
			if got := sent.times(id); got != 1 {
				t.Fatalf("event %d was sent %d times, want once", id, got)
			}
		}
	})
}

// Nor must one that is refused for good: claiming stops with its first try and goes
// on as soon as others are settled.
func TestOneRefusedSettleStopsClaimingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.fails("Settle", fmt.Errorf("a constraint of the table refuses the value: %w", ErrPermanent))
		store.add("bad", 1)
		_, stop := start(t, Config{Store: store, EventTypes: []string{"bad", "good"}, Publisher: publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			if events[0].Type == "bad" {
				return all(len(events), Outcome{Verdict: Refused, Err: errors.New("no JSON")})
			}
			return sent.Publish(ctx, events)
		})})
		for id := int64(2); id <= 50; id++ { // within the lease of the first
			store.add("good", 1)
			time.Sleep(time.Second)
			if id > 10 && sent.times(id) != 1 {
				t.Errorf("event %d was sent %d times a second after it came, want once", id, sent.times(id))
			}
		}
		stop()
	})
}

func TestHangingSettleIsTriedAgainInsideTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 10)
		store.setHang(func(call string) bool { return call == "SettleSent" && store.called(call) == 1 })
		_, stop := start(t, Config{Store: store, Publisher: sent, EventTypes: []string{"a"}})
		time.Sleep(3 * DefaultLease)
		stop()
		if err := sent.check(10); err != nil {
			t.Error(err)
		}
	})
}

// Reads that work while writes do not, as on a read-only replica, are one
// outage.
func TestReadableButNotWritableIsOneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		store.fails("Claim", errors.New("3906: the database is read-only"))
		logs, seen := observer.New(zap.InfoLevel)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if store.called("Claim") > 0 && w.Ready() == nil {
				t.Fatal("ready in the middle of the outage")
			}
		}
		if got := seen.Len(); got != 1 {
			t.Errorf("%d log lines for one outage: %v", got, seen.All())
		}
		stop()
	})
}

func TestProbesBackOffWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.fails("Pending", errAway)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, IdlePoll: 5 * time.Millisecond})
		time.Sleep(10 * time.Minute)
		stop()
		if got := store.called("Pending"); got > 300 {
			t.Errorf("%d probes in ten minutes of an outage, want one every few seconds", got)
		}
	})
}

// The way in and out of a claim costs the database a write for every event, so
// a destination that is down must not be given the backlog again and again.
func TestDeadDestinationIsGivenFewEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		store.add("down", 5_000)
		broker := publisherFunc(func(_ context.Context, events []Event) []Outcome {
			return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("entity not found")})
		})
		_, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"down"}})
		time.Sleep(10 * time.Minute)
		stop()
		// The first batches of both lanes, then trials of ten.
		if got := store.claimedEvents(); got > 2500 {
			t.Errorf("%d events were claimed in ten minutes for a destination that is down", got)
		}
		if got := store.count("pending"); got != 5_000 {
			t.Errorf("%d of 5000 events are pending", got)
		}
	})
}

func TestPausedWorkerThatWaitedForTheDatabaseIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.failsFirst("Check", 1, errAway)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Paused: true})
		time.Sleep(time.Minute)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready a minute after the database came: %v", err)
		}
		stop()
		if w.Ready() == nil {
			t.Error("still ready after the stop")
		}
	})
}

// A drain ends when every event is out, also those whose claim had to be left
// to the reaper.
func TestDrainWaitsForWhatItGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 10)
		var unsent atomic.Bool
		unsent.Store(true)
		broker := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			if unsent.CompareAndSwap(true, false) {
				return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("server busy")})
			}
			return sent.Publish(ctx, events)
		})
		begun := time.Now()
		store.setFail(func(call string, _ int) error {
			if call == "Settle" && time.Since(begun) < 2*DefaultLease {
				return errAway
			}
			return nil
		})
		drain(t, Config{Store: store, Publisher: broker, EventTypes: []string{"a"}, Drain: true})
		if err := sent.check(10); err != nil {
			t.Error(err)
		}
	})
}

// A drain also waits for what a worker that was killed may not have sent.
func TestDrainWaitsForClaimsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 10)
		if _, err := store.Claim(t.Context(), ClaimRequest{EventType: "a", Batch: 10}); err != nil {
			t.Fatal(err)
		}
		drain(t, Config{Store: store, Publisher: sent, EventTypes: []string{"a"}, Drain: true})
		if err := sent.check(10); err != nil {
			t.Error(err)
		}
	})
}

func TestUnrelatedTroubleIsNotCalledReaping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.fails("DiscoverPending", errAway)
		logs, seen := observer.New(zap.InfoLevel)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		time.Sleep(10 * time.Minute)
		stop()
		if seen.Len() != 1 || seen.FilterMessageSnippet("without a route").Len() != 1 {
			t.Errorf("log lines %v, want the one of its own outage", seen.All())
		}
	})
}

func TestRowsTakeTheirRouteWhateverTheirSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, discover := range []bool{true, false} {
			store := newFakeStore()
			store.foldCase = true
			store.add("order-placed", 3)
			var routed atomic.Int64
			broker := publisherFunc(func(_ context.Context, events []Event) []Outcome {
				for _, e := range events {
					if e.Type == "Order-Placed" {
						routed.Add(1)
					}
				}
				return all(len(events), Outcome{Verdict: Sent})
			})
			w, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"Order-Placed"}, Discover: discover})
			time.Sleep(time.Minute)
			if got := w.Status(); len(got.Unrouted) != 0 || len(got.EventTypes) != 1 {
				t.Errorf("discover %v: status %+v, want the one routed type", discover, got)
			}
			stop()
			if got := routed.Load(); got != 3 {
				t.Errorf("discover %v: %d of 3 events took the route of their type", discover, got)
			}
		}
	})
}

func TestRoutesThatTheColumnCallsEqualAreRefused(t *testing.T) {
	w, err := New(Config{Store: newFakeStore(), Publisher: publishAll, EventTypes: []string{"paid", "PAID"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); !errors.Is(err, ErrPermanent) {
		t.Errorf("Run returned %v, want a permanent error", err)
	}
}

// The outage is over with the first batch that passes, however rarely one comes.
func TestReadyAgainWithTheFirstBatchThatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		var down atomic.Bool
		down.Store(true)
		broker := publisherFunc(func(_ context.Context, events []Event) []Outcome {
			if down.Load() {
				return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("entity disabled")})
			}
			return all(len(events), Outcome{Verdict: Sent})
		})
		logs, seen := observer.New(zap.InfoLevel)
		w, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		store.add("a", 1)
		time.Sleep(5 * time.Minute)
		down.Store(false)
		time.Sleep(time.Minute)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready a minute after the destination came back: %v", err)
		}
		for range 3 {
			store.add("a", 1)
			time.Sleep(time.Minute)
		}
		if got := seen.FilterMessageSnippet("publishing to").Len(); got != 2 || len(w.Status().Breakers) != 0 {
			t.Errorf("%d log lines of one outage, breakers %+v", got, w.Status().Breakers)
		}
		stop()
	})
}

// What people say reaches a worker by its heartbeat, so one that fails must show.
func TestAFailingHeartbeatShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
		time.Sleep(time.Minute)
		store.fails("Heartbeat", errors.New("229: permission denied"))
		time.Sleep(time.Minute)
		if err := w.Ready(); err == nil {
			t.Error("ready although the heartbeat is denied")
		}
		stop()
	})
}
