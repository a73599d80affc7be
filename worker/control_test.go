package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestPauseAndResume(t *testing.T) {
	destination := func(eventType string) string { return "to-" + eventType[:1] }
	for name, c := range map[string]struct {
		pause Control
		moves []string // the types that still move
	}{
		"all":        {Control{Scope: ScopeAll}, nil},
		"event type": {Control{Scope: ScopeEventType, Name: "a1"}, []string{"a2", "b1"}},
		"entity":     {Control{Scope: ScopeEntity, Name: "to-a"}, []string{"b1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.retryDue = true
				c.pause.Paused, c.pause.By, c.pause.Reason = true, "ops@host", "the consumer is being moved"
				store.tell(c.pause)
				types := []string{"a1", "a2", "b1"}
				for _, eventType := range types {
					store.add(eventType, 10)
				}
				w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: types, Destination: destination})
				time.Sleep(time.Minute)
				if got, want := store.count("processed"), 10*len(c.moves); got != want {
					t.Errorf("%d events were processed during the pause, want %d", got, want)
				}
				if err := w.Ready(); err != nil {
					t.Errorf("a worker that was paused by a person is not ready: %v", err)
				}
				status := w.Status()
				if len(status.Pauses) != 1 || status.Pauses[0].By != "ops@host" || status.Paused != (c.moves == nil) {
					t.Errorf("status says %+v", status)
				}
				if c.moves == nil && (store.called("Reap") > 0 || store.called("RetryDue") > 0 || store.called("Pending") > 0) {
					t.Error("a pause of everything still reaps, retries or probes")
				}
				c.pause.Paused, c.pause.SinceStart = false, true
				store.tell(c.pause)
				time.Sleep(time.Minute)
				if got := store.count("processed"); got != 30 {
					t.Errorf("%d of 30 events were processed after the resume", got)
				}
				// And in the middle of the work.
				c.pause.Paused = true
				store.tell(c.pause)
				time.Sleep(2 * DefaultHeartbeatEvery)
				store.add("a1", 10)
				time.Sleep(time.Minute)
				if got := store.count("processed"); got != 30 {
					t.Errorf("%d events were processed, want none of those written after the second pause", got)
				}
				stop()
			})
		})
	}
}

// While everything is paused nobody looks for work, but the backlog's age must be
// counted all the same, and at no more than a scan in ten seconds.
func TestAPausedWorkerLearnsTypesWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("before", 3)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, Discover: true, Paused: true})
		for _, c := range []struct {
			add   string
			after time.Duration
			want  []string
			scans int
		}{
			{"", time.Second, []string{"before"}, 1},
			{"during", time.Second, []string{"before"}, 1},
			{"", learnAfter, []string{"before", "during"}, 2},
		} {
			store.add(c.add, min(len(c.add), 1))
			time.Sleep(c.after)
			if err := w.LearnTypes(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, w.Status().EventTypes); diff != "" {
				t.Errorf("event types (-want +got):\n%s", diff)
			}
			if n := store.called("DiscoverPending"); n != c.scans {
				t.Errorf("%d scans, want %d", n, c.scans)
			}
		}
		stop()
	})
}

// One line when a pause begins and one when it ends, whatever the number of
// heartbeats between them; saying it again is neither.
func TestPausesAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		at := func(c Control, paused bool, by string, minutes int) Control {
			c.Paused, c.By, c.Reason, c.ChangedAt = paused, by, "", since.Add(time.Duration(minutes)*time.Minute)
			return c
		}
		all, eventType, entity := Control{Scope: ScopeAll}, Control{Scope: ScopeEventType, Name: "a"}, Control{Scope: ScopeEntity, Name: "orders"}
		store := newFakeStore()
		early := at(eventType, true, "ops", 0)
		early.Reason = "the consumer moves"
		store.tell(early)
		logs, seen := observer.New(zap.InfoLevel)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Logger: zap.New(logs)})
		for _, told := range [][]Control{
			{early},
			{early, at(entity, true, "ops", 1), at(all, true, "ops", 1)},
			{at(eventType, true, "dev", 2), at(entity, true, "ops", 1), at(all, true, "ops", 1)},
			{at(eventType, true, "dev", 2), at(entity, true, "ops", 1), at(all, false, "dev", 3)},
			{at(eventType, false, "dev", 4), at(all, false, "dev", 3)},
		} {
			store.tell(told...)
			time.Sleep(5 * DefaultHeartbeatEvery)
		}
		stop()
		var got []string
		for _, line := range seen.All() {
			if word, _, _ := strings.Cut(line.Message, ":"); word == "paused" || word == "resumed" {
				f := line.ContextMap()
				got = append(got, fmt.Sprintf("%s %s by %v since %v at %v: %v", word, f["what"], f["by"], f["since"], f["at"], f["reason"]))
			}
		}
		want := []string{
			`paused event_type "a" by ops since 2026-01-02T03:04:05Z at <nil>: the consumer moves`,
			`paused entity "orders" by ops since 2026-01-02T03:05:05Z at <nil>: <nil>`,
			`paused everything by ops since 2026-01-02T03:05:05Z at <nil>: <nil>`,
			`resumed everything by dev since <nil> at 2026-01-02T03:07:05Z: <nil>`,
			`resumed event_type "a" by dev since <nil> at 2026-01-02T03:08:05Z: <nil>`,
			`resumed entity "orders" by <nil> since <nil> at <nil>: <nil>`, // its row is gone
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log lines (-want +got):\n%s", diff)
		}
	})
}

// A worker that starts paused waits for a resume that is said after its start;
// one from before says nothing about it.
// A row that another version or a slip of the hand has left is no pause that holds.
func TestPauseOfAnUnknownScopeIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		store := newFakeStore()
		store.tell(Control{Scope: "event-type", Name: "a1", Paused: true, By: "ops"})
		store.add("a1", 10)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a1"}, Logger: zap.New(core)})
		time.Sleep(time.Minute)
		if got := store.count("processed"); got != 10 {
			t.Errorf("%d of 10 events were processed", got)
		}
		if n := logs.FilterMessageSnippet("unknown scope").Len(); n != 1 || logs.FilterMessageSnippet("paused:").Len() > 0 {
			t.Errorf("an unknown scope was logged %d times, want 1, and no pause: %v", n, logs.All())
		}
		if pauses := w.Status().Pauses; len(pauses) > 0 {
			t.Errorf("status shows %v", pauses)
		}
		store.tell()
		time.Sleep(time.Minute)
		if logs.FilterMessageSnippet("resumed").Len() > 0 {
			t.Error("what never was paused is resumed")
		}
		stop()
	})
}

func TestPausedStartWaitsForAResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.tell(Control{Scope: ScopeAll})
		store.add("a", 10)
		logs, seen := observer.New(zap.InfoLevel)
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Paused: true, Logger: zap.New(logs)})
		time.Sleep(10 * time.Minute)
		if got := store.count("processed"); got != 0 {
			t.Fatalf("%d events were processed by a paused worker", got)
		}
		if why := w.Status().PausedWhy; !strings.Contains(why, "--paused") {
			t.Errorf("the status says %q", why)
		}
		if !store.lastBeat().Paused {
			t.Error("the heartbeat does not say that the worker waits")
		}
		store.tell(Control{Scope: ScopeAll, SinceStart: true})
		beats := store.called("Heartbeat")
		for store.called("Heartbeat") == beats {
			time.Sleep(time.Second)
		}
		if store.lastBeat().Paused {
			t.Error("the worker took the resume, and its heartbeat does not say so for ten more seconds")
		}
		time.Sleep(time.Minute)
		if got := store.count("processed"); got != 10 {
			t.Errorf("%d of 10 events were processed after the resume", got)
		}
		if got := seen.FilterMessageSnippet("paused").Len() + seen.FilterMessageSnippet("resumed").Len(); got != 2 {
			t.Errorf("%d log lines of pause and resume, want 2: %v", got, seen.All())
		}
		stop()
	})
}

// A pause holds from the heartbeat that reads it on, also for a type that would have
// had many more rounds in the cycle under way.
func TestAPauseEndsACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1000)
		_, stop := start(t, Config{
			Store: store, EventTypes: []string{"a"}, Batch: 1, MaxRounds: 1000, Lanes: 1,
			Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
				time.Sleep(100 * time.Millisecond)
				return all(len(events), Outcome{Verdict: Sent})
			}),
		})
		time.Sleep(time.Second)
		store.tell(Control{Scope: ScopeEventType, Name: "a", Paused: true})
		time.Sleep(2 * DefaultHeartbeatEvery)
		before := store.claimedEvents()
		time.Sleep(30 * time.Second)
		if n := store.claimedEvents() - before; n != 0 || before > 900 {
			t.Errorf("%d of %d events were claimed in a pause", n, 1000-before)
		}
		stop()
	})
}

// A claim takes the rows of all spellings that the column calls equal, so a pause of
// one is a pause of all, of types that come later too.
func TestPauseHoldsForEverySpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.foldCase = true
		pause := Control{Scope: ScopeEventType, Name: "order", Paused: true}
		store.tell(pause)
		store.add("Order", 1)
		store.add("other", 1)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, Discover: true})
		time.Sleep(time.Minute)
		store.add("order", 1)
		store.add("ORDER", 1)
		time.Sleep(time.Minute)
		if got := store.count("processed"); got != 1 {
			t.Errorf("%d events were processed, want that of the other type", got)
		}
		pause.Paused = false
		store.tell(pause)
		time.Sleep(time.Minute)
		if got := store.count("processed"); got != 4 {
			t.Errorf("%d events were processed after the resume, want 4", got)
		}
		stop()
	})
}
