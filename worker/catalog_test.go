package worker

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A type that was found is asked for until nothing of it was pending for a while:
// types that come and go would otherwise make every look for work longer.
func TestFoundTypesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"routed"}, Discover: true})
		knows := func(want ...string) {
			t.Helper()
			if got := w.Status().EventTypes; !slices.Equal(got, want) {
				t.Errorf("asked for are %v, want %v", got, want)
			}
		}
		store.add("guest", 1)
		time.Sleep(forgetAfter - 10*time.Second)
		knows("guest", "routed")
		time.Sleep(20 * time.Second)
		knows("routed")
		// Nothing of it is left, its spelling neither: the column is asked again.
		asked := store.called("EqualTypes")
		store.add("guest", 1)
		time.Sleep(10 * time.Second)
		knows("guest", "routed")
		if got := store.called("EqualTypes") - asked; got != 1 {
			t.Errorf("the column was asked %d times for the spelling of a type that is back, want once", got)
		}
		stop()
	})
}

// The types without a route are looked for every half minute, and may be others
// each time.
func TestUnroutedTypesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"routed"}})
		time.Sleep(time.Second) // the start asks too
		asked := 0
		for range 3 {
			before := store.called("EqualTypes")
			store.add("nobody", 1)
			time.Sleep(5 * unroutedEvery)
			if got := w.Status().Unrouted; !slices.Equal(got, []string{"nobody"}) {
				t.Errorf("without a route are %v", got)
			}
			asked += store.called("EqualTypes") - before
			store.discard("nobody")
			time.Sleep(5 * unroutedEvery)
			if got := w.Status().Unrouted; len(got) > 0 {
				t.Errorf("without a route are %v, and nothing is pending", got)
			}
		}
		if asked != 3 {
			t.Errorf("the column was asked %d times for the spelling of a type that came three times, want once each", asked)
		}
		stop()
	})
}

// Types that are not claimed, as of a destination that is down, must not hide those
// behind them in the order of the scan.
func TestTypesBehindAThousandOthersAreFound(t *testing.T) {
	down := func(eventType string) bool { return eventType[0] == 'b' }
	var sent atomic.Int64
	publish := publisherFunc(func(_ context.Context, events []Event) []Outcome {
		if down(events[0].Type) {
			return all(len(events), Outcome{Verdict: Unsent, Err: errAway})
		}
		sent.Add(1)
		return all(len(events), Outcome{Verdict: Sent})
	})
	var many []string
	for i := range 3*discoverLimit + 1 {
		many = append(many, fmt.Sprintf("b%05d", i))
	}
	destination := func(eventType string) string { return eventType[:1] }
	for name, configured := range map[string][]string{"of the default route": nil, "with routes": many} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				for _, eventType := range many {
					store.add(eventType, 1)
				}
				store.add("zlate", 1)
				_, stop := start(t, Config{Store: store, Publisher: publish, EventTypes: configured, Discover: true, Destination: destination})
				time.Sleep(10 * time.Second)
				if got := sent.Swap(0); got != 1 {
					t.Errorf("%d events were sent, want that of the last type", got)
				}
				stop()
			})
		})
	}
}

func TestUnroutedTypesBehindManyRoutesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		var routed []string
		for i := range (unroutedScans + 1) * discoverLimit {
			routed = append(routed, fmt.Sprintf("b%05d", i))
			store.add(routed[i], 1)
		}
		store.add("a", 1)
		store.add("z", 1)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: routed, Paused: true})
		for range 4 {
			time.Sleep(2 * unroutedEvery)
			got := w.Status().Unrouted
			if want := []string{"a", "z"}; !slices.Equal(got, want) {
				t.Errorf("without a route are %q, want %q", got, want)
			}
		}
		stop()
	})
}
