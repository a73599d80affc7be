package worker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// busy is an error that asks for a pause, as the database's throttling does.
type busy struct{ error }

func (busy) RetryAfter() time.Duration { return 30 * time.Second }

func TestAnErrorThatAsksForAPauseGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		store.fails("Claim", fmt.Errorf("claim: %w", busy{errors.New("40501")}))
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Lanes: 1})
		time.Sleep(5 * time.Minute)
		if n := store.called("Claim"); n < 9 || n > 11 {
			t.Errorf("%d claims in five minutes of pauses of 30 s", n)
		}
		stop()
	})
}

// Every outage counts for itself.
func TestAnOutageIsTwoLines(t *testing.T) {
	logs, seen := observer.New(zap.InfoLevel)
	o := &outage{subject: "the sea", log: zap.New(logs)}
	o.passed()
	var got []any
	for _, failures := range []int{3, 1} {
		for range failures {
			o.failed(errAway)
		}
		if since, count, last := o.facts(); since.IsZero() || count != failures || last == nil {
			t.Errorf("in the outage there are %d failures, the last %v", count, last)
		}
		o.passed()
		o.passed()
		got = append(got, seen.FilterMessage("the sea works again").All()[len(got)].ContextMap()["failures"])
	}
	if fmt.Sprint(got) != "[3 1]" || seen.Len() != 4 || o.err() != nil {
		t.Errorf("two outages had failures %v and made %d lines: %v", got, seen.Len(), seen.All())
	}
}
