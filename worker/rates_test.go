package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRatesOfAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rates
		if got := r.take(); got != nil {
			t.Errorf("before anything was measured: %v", got)
		}
		r.add("a", 100)
		r.add("a", 50)
		r.add("b", 10)
		r.add("c", 0)
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff(map[string]float64{"a": 15, "b": 1}, r.take()); diff != "" {
			t.Errorf("rates (-want +got):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		if got := r.take(); len(got) != 0 {
			t.Errorf("after ten quiet seconds: %v", got)
		}
	})
}

// What did not go out is no part of the rate.
func TestRatesCountWhatWentOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		_, stop := start(t, Config{Store: store, EventTypes: []string{"a"}, Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
			outcomes := all(len(events), Outcome{Verdict: Sent})
			copy(outcomes, all(4, Outcome{Verdict: Refused, Err: errors.New("too large")}))
			return outcomes
		})})
		for store.called("Heartbeat") < 3 { // two come at the start
			time.Sleep(10 * time.Millisecond)
		}
		if rate := store.lastBeat().Rates["a"]; rate < 0.5 || rate > 0.7 {
			t.Errorf("the heartbeat tells of %g events a second, want 6 in 9 to 11 s", rate)
		}
		stop()
	})
}
