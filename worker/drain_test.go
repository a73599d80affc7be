package worker

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A drain ends at whatever rate, and does not take its own claims for those of
// others.
func TestDrainUnderARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 50)
		logs, seen := observer.New(zap.InfoLevel)
		w, err := New(Config{
			Store: store, EventTypes: []string{"a"}, Drain: true, Logger: zap.New(logs), Rate: func(string) float64 { return 10 },
			Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
				time.Sleep(time.Second)
				return all(len(events), Outcome{Verdict: Sent})
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Run(ctx); err != nil || ctx.Err() != nil || store.count("processed") != 50 {
			t.Errorf("%d of 50 events are out; %v, %v", store.count("processed"), err, ctx.Err())
		}
		if n := seen.FilterMessageSnippet("claims of other workers").Len(); n != 0 {
			t.Errorf("the drain waited for other workers, and there are none: %v", seen.All())
		}
	})
}

// A lane that waits for the next look wakes when a type turns out to be worth a
// second lane.
func TestADeepTypeWakesTheSecondLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1000)
		store.slowClaims.Store(int64(time.Second))
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Batch: 100, Lanes: 2, IdlePoll: 20 * time.Second})
		time.Sleep(8 * time.Second) // alone it would take ten
		if n := store.count("processed"); n != 1000 {
			t.Errorf("%d of 1000 events are out after eight seconds, want all", n)
		}
		stop()
	})
}

// Who started a drain takes its end for an empty table.
func TestDrainThatIsStoppedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		w, err := New(Config{Store: store, EventTypes: []string{"a"}, Drain: true, Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
			return all(len(events), Outcome{Verdict: Unsent, Err: errAway})
		})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Run(ctx); err == nil || !strings.Contains(err.Error(), `not drained`) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("a drain that was stopped: %v", err)
		}
	})
}
