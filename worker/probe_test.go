package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// dropping is a destination that drops the connection of every batch with one of
// the first events in it, and takes all others.
func dropping(first int64, sent Publisher) Publisher {
	return publisherFunc(func(ctx context.Context, events []Event) []Outcome {
		for _, e := range events {
			if e.ID <= first {
				return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("connection dropped")})
			}
		}
		return sent.Publish(ctx, events)
	})
}

// The next probe begins behind the last one, so that events which bring their
// batches down do not hold a breaker closed to all others.
func TestAProbeBeginsBehindTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 3*probeBatch)
		_, stop := start(t, Config{Store: store, Publisher: dropping(probeBatch, sent), EventTypes: []string{"a"}})
		time.Sleep(time.Minute)
		for id := range int64(2 * probeBatch) {
			if n := sent.times(probeBatch + 1 + id); n != 1 {
				t.Errorf("event %d was sent %d times in a minute, want once", probeBatch+1+id, n)
			}
		}
		stop()
	})
}

// A probe that never reached the destination says nothing of it: the next one need
// not wait until it would have been over.
func TestAProbeThatWasNotSentIsFollowedByTheNext(t *testing.T) {
	for name, spoil := range map[string]func(s *fakeStore){
		"its claim failed":        func(s *fakeStore) { s.failsFirst("Claim", 2, errAway) },
		"its claim took too long": func(s *fakeStore) { s.slowClaims.Store(int64(2400 * time.Millisecond)) }, // of a deadline of 2.5 s
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, sent := newFakeStore(), &journal{}
				store.add("a", 1)
				var up atomic.Bool
				_, stop := start(t, Config{Store: store, EventTypes: []string{"a"}, Lanes: 1, Lease: 5 * time.Second, Publisher: publisherFunc(func(ctx context.Context, events []Event) []Outcome {
					if !up.Swap(true) {
						return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("server busy")})
					}
					return sent.Publish(ctx, events)
				})})
				synctest.Wait()
				spoil(store)
				for store.called("Claim") < 2 { // the probe is claimed
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(3 * time.Second)
				store.slowClaims.Store(0)
				time.Sleep(3 * time.Second)
				if n := sent.times(1); n != 1 {
					t.Errorf("six seconds after a probe that came to nothing the event was sent %d times, want once", n)
				}
				stop()
			})
		})
	}
}

// A destination that refuses events for their own sake answers: its outage is over.
func TestADestinationThatAnswersWithFailuresIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 20)
		var up atomic.Bool
		w, stop := start(t, Config{Store: store, EventTypes: []string{"a"}, Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
			if !up.Swap(true) {
				return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("server busy")})
			}
			return all(len(events), Outcome{Verdict: Failed, Err: errors.New("no such session")})
		})})
		time.Sleep(time.Minute)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready a minute after the destination answered again: %v", err)
		}
		stop()
	})
}

// A claim that brings nothing leaves its destination's place to the next.
func TestFailedClaimsLeaveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		store.add("b", 1)
		store.fails("Claim", errAway)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a", "b"}})
		time.Sleep(2 * time.Minute)
		store.setFail(nil)
		time.Sleep(20 * time.Second)
		if n := store.count("processed"); n != 2 {
			t.Errorf("%d of 2 events are out after an outage of claiming", n)
		}
		stop()
	})
}
