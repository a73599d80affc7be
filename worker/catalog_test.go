package worker

import (
	"slices"
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
