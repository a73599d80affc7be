package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// start runs a worker in the background; stop ends it, and Run must have no error.
func start(t *testing.T, cfg Config) (w *Worker, stop func()) {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return w, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// drain runs a worker until everything is out.
func drain(t *testing.T, cfg Config) {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDrainSendsEveryEventOnceAndReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.took = time.Millisecond
		store.add("a", 3000)
		store.add("b", 7)
		store.add("c", 1500)
		drain(t, Config{Store: store, Publisher: sent, Discover: true, Batch: 100, Lanes: 3, Drain: true})
		if err := sent.check(4507); err != nil {
			t.Error(err)
		}
		if n := store.openReceipts(); n != 0 {
			t.Errorf("%d receipts are left", n)
		}
	})
}

func TestStopFinishesWhatIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		started := make(chan struct{})
		slow := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			close(started)
			if !sleep(ctx, 10*time.Second) {
				return all(len(events), Outcome{Verdict: Unsent, Err: context.Cause(ctx)})
			}
			return all(len(events), Outcome{Verdict: Sent})
		})
		_, stop := start(t, Config{Store: store, Publisher: slow, EventTypes: []string{"a"}})
		<-started
		stop()
		if got := store.count("processed"); got != 10 || store.openReceipts() != 0 {
			t.Errorf("%d of 10 events are settled as sent, %d receipts are open", got, store.openReceipts())
		}
	})
}

func TestStopGivesBackWhatTheGracePeriodDoesNotAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		started := make(chan struct{})
		stuck := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			close(started)
			<-ctx.Done()
			return all(len(events), Outcome{Verdict: Unsent, Err: context.Cause(ctx)})
		})
		w, stop := start(t, Config{Store: store, Publisher: stuck, EventTypes: []string{"a"}, Grace: 4 * time.Second})
		<-started
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("the stop took %s, want at most the grace period of 4s", took)
		}
		if got := store.count("pending"); got != 10 || store.openReceipts() != 0 {
			t.Errorf("%d of 10 events are pending again, %d receipts are open", got, store.openReceipts())
		}
		if b := w.Status().Breakers; len(b) != 0 {
			t.Errorf("the destination is blamed for the stop: %+v", b)
		}
	})
}

func TestBatchesInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 5000)
		var now, most atomic.Int64
		slow := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			sleep(ctx, time.Second)
			return all(len(events), Outcome{Verdict: Sent})
		})
		drain(t, Config{Store: store, Publisher: slow, EventTypes: []string{"a"}, Batch: 100, MaxInFlight: 3, Lanes: 2, Drain: true})
		if got := most.Load(); got != 3 {
			t.Errorf("at most %d batches were in flight, want exactly the allowed 3", got)
		}
	})
}

func TestUnsentEventsGoBackAndTheirTypeRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("down", 50)
		var good atomic.Int64
		broker := publisherFunc(func(_ context.Context, events []Event) []Outcome {
			if events[0].Type == "down" {
				return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("server busy")})
			}
			good.Add(int64(len(events)))
			return all(len(events), Outcome{Verdict: Sent})
		})
		w, stop := start(t, Config{Store: store, Publisher: broker, Discover: true})
		time.Sleep(time.Minute)
		store.add("up", 2000)
		time.Sleep(2 * time.Second)
		if got := good.Load(); got != 2000 {
			t.Errorf("%d of 2000 events of the healthy type were sent while the other rests", got)
		}
		if w.Ready() == nil {
			t.Error("the worker calls itself ready while publishing fails")
		}
		// 0.5 s doubling to 30 s, with jitter: around ten claims in a minute, not
		// one every poll.
		if claims := store.called("Claim"); claims > 40 {
			t.Errorf("%d claims in a minute of a destination that is down", claims)
		}
		stop()
		if got := store.count("pending"); got != 50 {
			t.Errorf("%d of 50 unsent events are pending", got)
		}
	})
}

func TestIdleWorkerAsksRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a", "b"}, Lanes: 4})
		time.Sleep(100 * time.Second)
		stop()
		if got := store.called("Pending"); got > 400 || got < 330 {
			t.Errorf("%d probes in 100 s idle, want 330 to 400 (one every 250 to 300 ms whatever the lanes)", got)
		}
		if got := store.called("Claim"); got != 0 {
			t.Errorf("%d claims with nothing pending", got)
		}
	})
}

func TestLoneEventCostsOneClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Lanes: 4})
		for range 20 {
			time.Sleep(time.Second)
			store.add("a", 1)
		}
		time.Sleep(time.Second)
		stop()
		if got := store.called("Claim"); got != 20 {
			t.Errorf("%d claims for 20 events that came one by one, want 20", got)
		}
	})
}

func TestSettleIsTriedAgainUntilItPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		store.failsFirst("SettleSent", 5, errors.New("connection reset"))
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
		time.Sleep(30 * time.Second)
		stop()
		if store.openReceipts() != 0 || store.count("processed") != 10 {
			t.Errorf("%d receipts are open after the settle could pass", store.openReceipts())
		}
	})
}

func TestRefusedSettleStopsClaiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		var denied atomic.Bool
		denied.Store(true)
		noRight := fmt.Errorf("DELETE on outbox_event_claim is denied: %w", ErrPermanent)
		store.setFail(func(call string, _ int) error {
			if denied.Load() && call == "SettleSent" {
				return noRight
			}
			return nil
		})
		store.add("a", 1000)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Batch: 100, Lanes: 1, MaxInFlight: 1})
		time.Sleep(10 * time.Second)
		before := store.claimedEvents()
		time.Sleep(10 * time.Minute)
		// One event in a trial, and the trials come down to one a minute.
		if after := store.claimedEvents(); after-before > 20 || after == before {
			t.Errorf("%d more events were claimed in ten minutes while settling is refused, want a few trials of one", after-before)
		}
		if err := w.Ready(); !errors.Is(err, noRight) {
			t.Errorf("not-ready reason is %v, want the refused settle", err)
		}
		denied.Store(false)
		time.Sleep(3 * time.Minute)
		if err := w.Ready(); err != nil {
			t.Errorf("still not ready: %v", err)
		}
		stop()
		if store.count("processed") != 1000 || store.openReceipts() != 0 {
			t.Errorf("%d of 1000 events were processed, %d receipts are open", store.count("processed"), store.openReceipts())
		}
	})
}

// Settling that is refused stops claiming, and is said, also where no batch went out
// whole.
func TestRefusedReturnsStopClaiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		noRight := fmt.Errorf("UPDATE on outbox_event is denied: %w", ErrPermanent)
		store.fails("Settle", noRight)
		store.add("a", 1)
		w, stop := start(t, Config{Store: store, EventTypes: []string{"a"}, Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
			return all(len(events), Outcome{Verdict: Refused, Err: errors.New("too large")})
		})})
		time.Sleep(10 * time.Second)
		if err := w.Working(); !errors.Is(err, noRight) || !strings.Contains(err.Error(), "claiming has stopped") {
			t.Errorf("not-ready reason is %v, want the refused settle", err)
		}
		stop()
	})
}

func TestStartWaitsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		store.failsFirst("Check", 4, errors.New("dial tcp: connection refused"))
		logs, seen := observer.New(zap.InfoLevel)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		synctest.Wait()
		if w.Ready() == nil {
			t.Error("ready without a database")
		}
		time.Sleep(time.Minute)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready a minute later: %v", err)
		}
		stop()
		if n := seen.FilterMessageSnippet("the database fails").Len(); n != 1 {
			t.Errorf("%d log lines for one outage at the start, want 1", n)
		}
	})
}

func TestStartEndsWithAPermanentError(t *testing.T) {
	store := newFakeStore()
	missing := fmt.Errorf("invalid object name dbo.outbox_event: %w", ErrPermanent)
	store.setFail(func(string, int) error { return missing })
	w, err := New(Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); !errors.Is(err, missing) {
		t.Errorf("Run returned %v, want the permanent error", err)
	}
}

func TestPausedTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		store.retryDue = true
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Paused: true})
		time.Sleep(time.Minute)
		for _, call := range []string{"Claim", "Reap", "RetryDue", "Settle", "SettleSent"} {
			if n := store.called(call); n != 0 {
				t.Errorf("a paused worker called %s %d times", call, n)
			}
		}
		if store.called("Heartbeat") == 0 {
			t.Error("a paused worker shows no heartbeat")
		}
		stop()
	})
}

func TestReapedBatchGoesOutThroughAnotherClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 10)
		// A worker that was killed between its claim and its publish.
		if _, err := store.Claim(t.Context(), ClaimRequest{EventType: "a", Batch: 10}); err != nil {
			t.Fatal(err)
		}
		_, stop := start(t, Config{Store: store, Publisher: sent, EventTypes: []string{"a"}})
		time.Sleep(DefaultLease + 2*DefaultReapEvery)
		stop()
		if err := sent.check(10); err != nil {
			t.Error(err)
		}
	})
}

func TestPublisherThatBreaksItsContractLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		var mu sync.Mutex
		calls := 0
		broken := publisherFunc(func(_ context.Context, events []Event) []Outcome {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 1 {
				return all(4, Outcome{Verdict: Sent}) // of ten
			}
			return all(len(events), Outcome{Verdict: Sent})
		})
		_, stop := start(t, Config{Store: store, Publisher: broken, EventTypes: []string{"a"}})
		time.Sleep(10 * time.Second)
		stop()
		if calls != 2 || store.count("processed") != 10 {
			t.Errorf("after %d publishes %d of 10 events are processed, want 2 and 10", calls, store.count("processed"))
		}
	})
}

func TestUnroutedTypesAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 5)
		store.add("nobody", 5)
		logs, seen := observer.New(zap.WarnLevel)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		time.Sleep(5 * time.Minute)
		if got := w.Status().Unrouted; len(got) != 1 || got[0] != "nobody" {
			t.Errorf("unrouted types are %v, want [nobody]", got)
		}
		if got := store.count("pending"); got != 5 {
			t.Errorf("%d events without a route are pending, want 5", got)
		}
		store.discard("nobody")
		time.Sleep(time.Minute)
		if got := w.Status().Unrouted; len(got) != 0 {
			t.Errorf("unrouted types are %v, and nothing of them is pending", got)
		}
		stop()
		if n := seen.FilterMessageSnippet("no route names").Len(); n != 1 {
			t.Errorf("%d log lines for the same unrouted type, and none for its end, want 1", n)
		}
	})
}
