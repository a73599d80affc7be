package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A rate is kept over any length of time, by claims that are worth making.
func TestRateBoundsADestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		store.add("slow1", 20_000)
		store.add("slow2", 20_000)
		store.add("fast", 20_000)
		_, stop := start(t, Config{
			Store: store, Publisher: publishAll, EventTypes: []string{"slow1", "slow2", "fast"},
			Destination: func(eventType string) string {
				if eventType == "fast" {
					return "fast"
				}
				return "slow"
			},
			Rate: func(destination string) float64 {
				if destination == "slow" {
					return 100
				}
				return 0
			},
		})
		time.Sleep(time.Minute)
		fast := 0
		store.mu.Lock()
		slow, byType := 0, make(map[string]int)
		for _, r := range store.rows {
			switch {
			case r.status != "processed":
			case r.event.Type == "fast":
				fast++
			default:
				slow++
				byType[r.event.Type]++
			}
		}
		claims := store.calls["Claim"]
		store.mu.Unlock()
		stop()
		// One second's worth to begin with, then a hundred a second.
		if slow < 5_500 || slow > 6_100 {
			t.Errorf("%d events in a minute at 100/s", slow)
		}
		if a, b := byType["slow1"], byType["slow2"]; a < 2_000 || b < 2_000 {
			t.Errorf("of the two types that share the rate %d and %d events went out", a, b)
		}
		if fast != 20_000 {
			t.Errorf("%d of 20000 events of the destination without a rate", fast)
		}
		if claims > 4*60+100 {
			t.Errorf("%d claims in a minute, want four a second at most for the slow destination", claims)
		}
	})
}

func TestPaceWaitsForAQuantum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaces(func(string) float64 { return 40 }, itself)
		if got := p.take("a", 500); got != 40 {
			t.Fatalf("took %d at first, want a second's worth", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := p.take("a", 500); got != 0 {
			t.Errorf("took %d after 200 ms, want to wait for a quarter of a second", got)
		}
		time.Sleep(100 * time.Millisecond)
		if got := p.take("a", 500); got != 12 {
			t.Errorf("took %d after 300 ms at 40/s, want 12", got)
		}
		p.give("a", 12)
		if got := p.take("a", 5); got != 5 {
			t.Errorf("took %d of what was given back, want 5", got)
		}
		if got := newPaces(func(string) float64 { return 0.5 }, itself).take("a", 500); got != 1 {
			t.Errorf("a rate of one event in two seconds gave %d", got)
		}
	})
}

// A claim that found fewer events than the rate let through leaves the rest to
// the other types of its destination.
func TestShortClaimsCostTheRateNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		store.add("deep", 2_000)
		_, stop := start(t, Config{
			Store: store, Publisher: publishAll, EventTypes: []string{"deep", "trickle"},
			Destination: func(string) string { return "one" },
			Rate:        func(string) float64 { return 100 },
		})
		for range 100 {
			store.add("trickle", 1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := store.claimedEvents(); n < 950 || n > 1_150 {
			t.Errorf("%d events in ten seconds at 100/s", n)
		}
		stop()
	})
}

// A probe that the rate does not let through yet is none under way: the next one
// comes with the next events of the rate.
func TestPaceDoesNotKeepAProbeWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		calls := make(chan time.Time, 1000)
		_, stop := start(t, Config{
			Store: store, EventTypes: []string{"a"},
			Rate: func(string) float64 { return 0.1 },
			Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
				calls <- time.Now()
				return all(len(events), Outcome{Verdict: Unsent, Err: errAway})
			}),
		})
		first := <-calls
		if second := <-calls; second.Sub(first) > 15*time.Second {
			t.Errorf("the next probe came %s after the failure, the rate allows one event in 10s", second.Sub(first))
		}
		stop()
	})
}

// What a quiet minute would have let through is not made up for: a destination gets
// one second's worth at once at the most.
func TestPaceSavesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaces(func(string) float64 { return 100 }, func(s string) string { return s })
		for range 2 {
			if n := p.take("a", 1000); n != 100 {
				t.Errorf("took %d at once, want 100", n)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestARateThatNoIntHolds(t *testing.T) {
	p := newPaces(func(string) float64 { return 1e300 }, func(t string) string { return t })
	if n := p.take("a", 500); n != 500 {
		t.Errorf("%d events may be claimed, want 500", n)
	}
}
