package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// overdue is a store whose calls of one kind hang, and come back only some time after
// their context has ended.
type overdue struct {
	*fakeStore
	late time.Duration
}

func (s overdue) SettleSent(ctx context.Context, _ []Receipt) (int, error) {
	<-ctx.Done()
	time.Sleep(s.late)
	return 0, ctx.Err()
}

// However a call to the database hangs, a stop is over within the grace period.
func TestStopWithCallsThatHangKeepsTheGracePeriod(t *testing.T) {
	for name, c := range map[string]struct {
		store func(*fakeStore) Store
		grace time.Duration
	}{
		"claims": {func(s *fakeStore) Store {
			s.setHang(func(call string) bool { return call == "Claim" })
			return s
		}, 10 * time.Second},
		"settling, past its context": {func(s *fakeStore) Store { return overdue{s, 4 * time.Second} }, DefaultGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFakeStore()
				fake.add("a", 1)
				_, stop := start(t, Config{Store: c.store(fake), Publisher: publishAll, EventTypes: []string{"a"}, Grace: c.grace})
				time.Sleep(time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took > c.grace {
					t.Errorf("the stop took %s of a grace period of %s", took, c.grace)
				}
			})
		})
	}
}

// A heartbeat under way may outlive the stop; it must not be written behind the
// deletion of the row, or the worker would look like one that was killed.
func TestAHeartbeatUnderWayComesBeforeTheLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.stick("Heartbeat", 2, 500*time.Millisecond)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
		for store.called("Heartbeat") < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		stop()
		time.Sleep(time.Second)
		store.mu.Lock()
		defer store.mu.Unlock()
		if store.calls["Leave"] != 1 || store.present {
			t.Errorf("after %d calls of Leave the heartbeat is there: %v", store.calls["Leave"], store.present)
		}
	})
}

// Where settling gets no answer, nor would the deletion of the heartbeat.
func TestNoLeaveWhereSettlingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		store.fails("SettleSent", errAway)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
		time.Sleep(time.Second)
		stop()
		if n := store.called("Leave"); n != 0 {
			t.Errorf("Leave was called %d times", n)
		}
	})
}

// What ends only after the grace period is given up and counted too.
func TestABatchThatEndsAfterTheGracePeriodIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		var seen settledCounts
		w, stop := start(t, Config{Store: store, EventTypes: []string{"a"}, Observer: &seen, Grace: 4 * time.Second, Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
			time.Sleep(10 * time.Second) // whatever its context says
			return all(len(events), Outcome{Verdict: Sent})
		})})
		time.Sleep(time.Second)
		stop()
		if n := w.Status().OpenClaims; n != 0 || seen.lostReceipts() != 1 {
			t.Errorf("%d claims are open after the stop and %d were given up, want 0 and 1", n, seen.lostReceipts())
		}
	})
}
