package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// itself is the destination of types that have one each.
func itself(eventType string) string { return eventType }

func (b *breakers) probing(eventType string) bool {
	_, is := b.probe(eventType)
	return is
}

func TestBreakerGrowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBreakers(zap.NewNop(), itself, time.Minute)
		busy := errors.New("server busy")
		asleep := func() bool { return !slices.Contains(c.awake([]string{"a", "b"}), "a") }
		var rests []time.Duration
		for range 12 {
			c.failed("a", busy)
			begun := time.Now()
			for asleep() {
				c.failed("a", busy) // another batch of the same failure
				time.Sleep(10 * time.Millisecond)
			}
			rests = append(rests, time.Since(begun))
		}
		if rests[0] > time.Second {
			t.Errorf("the first rest is %s, want at most a second", rests[0])
		}
		last := rests[len(rests)-1]
		if last < longestPause/2 || last > longestPause*3/2 {
			t.Errorf("the last rest is %s, want %s give or take a half", last, longestPause)
		}
		if err := c.err(); err == nil || !strings.Contains(err.Error(), `publishing to "a" has been failing`) {
			t.Errorf("err is %v, want one that names the type", err)
		}
		// One batch that passes is no proof yet, and one that began before the
		// failure is none at all.
		c.failed("a", busy)
		before := time.Now()
		time.Sleep(time.Second)
		c.failed("a", busy)
		c.passed("a", before)
		if !asleep() || !c.probing("a") {
			t.Error("a batch from before the failure ended the rest")
		}
		for range 20 {
			time.Sleep(time.Millisecond)
			c.passed("a", time.Now())
		}
		if asleep() || c.probing("a") || c.err() != nil {
			t.Errorf("the type still rests after twenty batches passed: %v", c.err())
		}
		if got := c.awake([]string{"a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("awake are %v", got)
		}
	})
}

// A broker that refuses every second batch is one outage, and is asked ever
// more rarely.
func TestBreakerOfEverySecondBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, seen := observer.New(zap.InfoLevel)
		c := newBreakers(zap.New(logs), itself, time.Minute)
		asked := 0
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if len(c.awake([]string{"a"})) == 0 {
				continue
			}
			began := time.Now()
			time.Sleep(5 * time.Millisecond)
			if asked++; asked%2 == 0 {
				c.passed("a", began)
			} else {
				c.failed("a", errors.New("server busy"))
			}
		}
		if asked > 120 || asked < 20 {
			t.Errorf("asked %d times in ten minutes, want two for each pause of up to half a minute", asked)
		}
		if seen.Len() != 1 {
			t.Errorf("%d log lines for one outage", seen.Len())
		}
	})
}

func TestBreakerForgetsWhatNobodyWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBreakers(zap.NewNop(), itself, time.Minute)
		c.failed("a", errors.New("server busy"))
		time.Sleep(time.Minute)
		c.want(nil)
		if c.err() == nil {
			t.Error("forgotten while a batch could still be in flight")
		}
		time.Sleep(2 * time.Minute)
		c.want(nil)
		if err := c.err(); err != nil {
			t.Errorf("nothing is pending for minutes, still failing: %v", err)
		}
	})
}

// What waits behind an open breaker is wanted, also where a person has paused it.
func TestABreakerStaysWhileSomethingIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 10)
		down := publisherFunc(func(_ context.Context, events []Event) []Outcome {
			return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("entity disabled")})
		})
		w, stop := start(t, Config{Store: store, Publisher: down, EventTypes: []string{"a"}})
		time.Sleep(time.Minute)
		store.tell(Control{Scope: ScopeEventType, Name: "a", Paused: true})
		for _, c := range []struct{ pending, breakers int }{{10, 1}, {0, 0}} {
			time.Sleep(2 * forgetBreaker)
			if got := w.Status().Breakers; store.count("pending") != c.pending || len(got) != c.breakers {
				t.Errorf("with %d events pending the breakers are %+v", store.count("pending"), got)
			}
			store.discard("a")
		}
		stop()
	})
}

// Where the last outage's probes had come to says nothing of the next outage: its
// first probe sends the oldest events.
func TestTheProbesOfANewOutageBeginAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.took = time.Millisecond
		store.add("a", 1000)
		var mu sync.Mutex
		down := true
		var tried []int64 // the first event of each batch that failed
		broker := publisherFunc(func(_ context.Context, events []Event) []Outcome {
			mu.Lock()
			defer mu.Unlock()
			if !down {
				return all(len(events), Outcome{Verdict: Sent})
			}
			tried = append(tried, events[0].ID)
			return all(len(events), Outcome{Verdict: Unsent, Err: errors.New("server busy")})
		})
		w, stop := start(t, Config{Store: store, Publisher: broker, EventTypes: []string{"a"}, Lanes: 1})
		turn := func(to bool) []int64 {
			mu.Lock()
			defer mu.Unlock()
			was := tried
			down, tried = to, nil
			return was
		}
		time.Sleep(3 * time.Minute)
		first := turn(false)
		if last := first[len(first)-1]; last <= 2*probeBatch {
			t.Fatalf("the last probe began with event %d, want one from behind those of the others", last)
		}
		for store.count("processed") < 1000 || store.openReceipts() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if got := w.Status().Breakers; len(got) != 1 || got[0].State != BreakerRecovering {
			t.Fatalf("the breakers are %+v, want one that is recovering", got)
		}
		turn(true)
		store.retry(1, 20)
		store.add("a", 20)
		time.Sleep(longestPause)
		if again := turn(false); len(again) < 2 || again[0] != 1 || again[1] != 1 {
			t.Errorf("the new outage's batches began with the events %v, want its first probe to begin with the oldest again", again)
		}
		stop()
	})
}

// Types that share a destination share its breaker; the half-open one is asked
// by one batch at a time, of another type and another event each time.
func TestBreakerOfADestinationProbesOneTypeAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBreakers(zap.NewNop(), func(eventType string) string { return eventType[:1] }, time.Minute)
		all := []string{"a1", "a2", "a3", "b1"}
		c.failed("a2", errors.New("entity missing"))
		if got := c.awake(slices.Clone(all)); !slices.Equal(got, []string{"b1"}) {
			t.Fatalf("awake are %v, want the other destination's alone", got)
		}
		var probed []string
		for range 6 {
			time.Sleep(longestPause * 2)
			for _, eventType := range c.awake(slices.Clone(all)) {
				from, is := c.probe(eventType)
				if !is {
					continue
				}
				probed = append(probed, eventType)
				if again := len(probed) > 3; from.Set != again {
					t.Errorf("probe %d of %s begins at %+v", len(probed), eventType, from)
				}
				c.probed(eventType, []Event{{ID: 10}, {ID: 11}})
				c.failed(eventType, errors.New("entity missing"))
			}
		}
		if want := []string{"a1", "a2", "a3", "a1", "a2", "a3"}; !slices.Equal(probed, want) {
			t.Errorf("probed %v, want %v", probed, want)
		}
		c.probed("a1", nil)
		if from, _ := c.probe("a1"); from.Set {
			t.Error("after a probe that found nothing behind its events, the next one does not begin at the start")
		}
		list := c.list()
		if len(list) != 1 || list[0].Destination != "a" || list[0].State != BreakerOpen || list[0].Failures != 7 ||
			list[0].Error != "entity missing" || !slices.Equal(list[0].EventTypes, []string{"a1", "a2", "a3"}) {
			t.Errorf("the list says %+v", list)
		}
		c.passed("a3", time.Now().Add(time.Millisecond))
		if got := c.awake(slices.Clone(all)); !slices.Equal(got, []string{"a1", "a2", "a3", "b1"}) {
			t.Errorf("awake are %v after a batch passed", got)
		}
		if list := c.list(); list[0].State != BreakerRecovering {
			t.Errorf("the state after a batch passed is %q", list[0].State)
		}
	})
}
