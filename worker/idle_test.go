package worker

import (
	"testing"
	"testing/synctest"
	"time"
)

// An idle worker asks the database for less than four things a second: the look
// for events, housekeeping and the heartbeat together.
func TestIdleWorkerAsksForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		var seen settledCounts
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a", "b"}, Observer: &seen})
		time.Sleep(time.Minute)
		before := store.requests()
		const minutes = 10
		time.Sleep(minutes * time.Minute)
		if n, most := store.requests()-before, minutes*60*4; n > most {
			t.Errorf("%d requests in %d minutes, want at most %d", n, minutes, most)
		}
		if n := store.called("RetryDue"); n != 0 {
			t.Errorf("what is due was brought back %d times, and nothing was", n)
		}
		store.mu.Lock()
		store.retryDue = true
		store.mu.Unlock()
		time.Sleep(2 * DefaultReapEvery)
		if n := store.called("RetryDue"); n != 1 {
			t.Errorf("what is due was brought back %d times, want once", n)
		}
		stop()
		if seen.reaps != 0 {
			t.Errorf("%d reaps were told of, and nothing was reaped", seen.reaps)
		}
	})
}
