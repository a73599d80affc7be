package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// doubtfulError is about a message or its destination: nobody knows.
type doubtfulError struct{ error }

func (doubtfulError) Doubtful() bool { return true }

// A batch of which only a part was not answered says nothing against its
// destination: the others go on at full speed.
func TestOneUnansweredEventOpensNoBreaker(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		open bool
	}{
		"no answer": {doubtfulError{errors.New("no answer")}, false},
		"throttled": {errors.New("server busy"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.took = time.Millisecond
				store.add("a", 2_000)
				broker := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
					out := all(len(events), Outcome{Verdict: Sent})
					for i, e := range events {
						if e.ID == 7 {
							out[i] = Outcome{Verdict: Unsent, Err: c.err}
							sleep(ctx, 10*time.Second)
						}
					}
					return out
				})
				w, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"a"}, Batch: 100})
				time.Sleep(11 * time.Second) // the batch is over, and its event not given up a second time
				if open := len(w.Status().Breakers) > 0; open != c.open {
					t.Errorf("the breakers are %+v", w.Status().Breakers)
				}
				if got := store.count("processed"); !c.open && got < 1_999 {
					t.Errorf("%d of 1999 other events were processed", got)
				}
				stop()
			})
		})
	}
}

// A destination that answers nothing holds its batches until their deadline. The
// others must not wait for places meanwhile, neither when it begins nor while it
// is probed.
func TestADestinationThatAnswersNothingStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		store.add("dead", 10_000)
		var worst atomic.Int64
		born := make(map[int64]time.Time)
		var mu sync.Mutex
		probes := 0
		broker := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			if events[0].Type == "dead" {
				mu.Lock()
				probes++
				mu.Unlock()
				<-ctx.Done()
				return all(len(events), Outcome{Verdict: Unsent, Err: doubtfulError{errors.New("no answer")}})
			}
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				worst.Store(max(worst.Load(), int64(time.Since(born[e.ID]))))
			}
			return all(len(events), Outcome{Verdict: Sent})
		})
		w, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"dead", "good"}})
		for range 8 * 60 {
			time.Sleep(time.Second)
			mu.Lock()
			store.add("good", 1)
			born[store.next] = time.Now()
			mu.Unlock()
		}
		if err := w.Working(); err != nil {
			t.Errorf("the worker does not count as working: %v", err)
		}
		if err := w.Ready(); err == nil {
			t.Error("it counts as ready although a destination is down")
		}
		stop()
		if wait := time.Duration(worst.Load()); wait > time.Second {
			t.Errorf("an event of the healthy destination waited for %s", wait)
		}
		// Three at first, then one at a time: each lasts for its deadline, and the
		// pauses between grow.
		if probes > 8*60/20+3 {
			t.Errorf("%d batches went to the dead destination in eight minutes", probes)
		}
	})
}

// A probe of which a part went out is no reason to wait: the next one follows,
// and what is not the guilty event's fault is out within seconds.
func TestAProbeThatPassesInPartIsFollowedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		store.add("a", 50)
		begun := time.Now()
		broker := publisherFunc(func(ctx context.Context, events []Event) []Outcome {
			out := all(len(events), Outcome{Verdict: Unsent, Err: doubtfulError{errors.New("no answer")}})
			if len(events) > probeBatch || time.Since(begun) < time.Minute { // the outage
				return out
			}
			out[len(out)-1] = Outcome{Verdict: Sent}
			return out
		})
		_, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"a"}, Batch: 100})
		time.Sleep(2*time.Minute + longestPause)
		if got := store.count("processed"); got < 50 {
			t.Errorf("%d of 50 events were processed", got)
		}
		stop()
	})
}
