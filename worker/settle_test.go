package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lossy is a store whose first settling commits and then loses its answer, or
// whose receipts were reaped before.
type lossy struct {
	*fakeStore
	unanswered, reaped bool
	once               sync.Once
}

func (s *lossy) before(r Receipt) {
	if s.reaped {
		s.mu.Lock()
		delete(s.receipts, r.ID)
		s.mu.Unlock()
	}
}

func (s *lossy) answer(err error) error {
	if s.unanswered {
		s.once.Do(func() { err = errAway })
	}
	return err
}

func (s *lossy) SettleSent(ctx context.Context, receipts []Receipt) (int, error) {
	for _, r := range receipts {
		s.before(r)
	}
	lost, err := s.fakeStore.SettleSent(ctx, receipts)
	return lost, s.answer(err)
}

func (s *lossy) Settle(ctx context.Context, st Settlement) error {
	s.before(st.Receipt)
	return s.answer(s.fakeStore.Settle(ctx, st))
}

// settledCounts counts what an Observer hears of settling.
type settledCounts struct {
	Observers
	mu             sync.Mutex
	receipts, lost int
	reaps          int
}

func (o *settledCounts) Reaped(Reaped) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reaps++
}

func (o *settledCounts) Settled(receipts []Receipt, lost int, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.receipts += len(receipts)
	o.lost += lost
}

func (o *settledCounts) lostReceipts() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// An alert hangs on what is counted as lost: a receipt that the reaper took is,
// one that the worker's own unanswered try took is not.
func TestLostReceiptsAreThoseOfTheReaper(t *testing.T) {
	for name, c := range map[string]struct {
		outcome            Outcome
		unanswered, reaped bool
		lost               int
	}{
		"sent":                        {outcome: Outcome{Verdict: Sent}},
		"sent, without an answer":     {outcome: Outcome{Verdict: Sent}, unanswered: true},
		"sent, reaped":                {outcome: Outcome{Verdict: Sent}, reaped: true, lost: 1},
		"returned":                    {outcome: Outcome{Verdict: Failed, Err: errAway}},
		"returned, without an answer": {outcome: Outcome{Verdict: Failed, Err: errAway}, unanswered: true},
		"returned, reaped":            {outcome: Outcome{Verdict: Failed, Err: errAway}, reaped: true, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &lossy{fakeStore: newFakeStore(), unanswered: c.unanswered, reaped: c.reaped}
				store.add("a", 1)
				var seen settledCounts
				_, stop := start(t, Config{
					Store: store, EventTypes: []string{"a"}, Observer: &seen,
					Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome { return all(len(events), c.outcome) }),
				})
				time.Sleep(10 * time.Second)
				stop()
				if seen.receipts != 1 || seen.lost != c.lost {
					t.Errorf("%d claims settled, %d lost, want 1 and %d", seen.receipts, seen.lost, c.lost)
				}
			})
		})
	}
}

// Claims that end within the linger of the first of them share its statement.
func TestClaimsThatEndTogetherShareAStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		store.add("b", 1)
		_, stop := start(t, Config{
			Store: store, EventTypes: []string{"a", "b"}, Lanes: 2,
			Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
				if events[0].Type == "b" {
					time.Sleep(settleLinger / 2)
				}
				return all(len(events), Outcome{Verdict: Sent})
			}),
		})
		time.Sleep(10 * time.Second)
		if n := store.called("SettleSent"); n != 1 || store.openReceipts() != 0 {
			t.Errorf("two claims took %d statements, %d receipts are left", n, store.openReceipts())
		}
		stop()
	})
}

// counting is a store that keeps the most receipts of one statement.
type counting struct {
	*fakeStore
	most *atomic.Int64
}

func (s counting) SettleSent(ctx context.Context, receipts []Receipt) (int, error) {
	s.most.Store(max(s.most.Load(), int64(len(receipts))))
	return s.fakeStore.SettleSent(ctx, receipts)
}

// However many claims end together, a statement has a bound.
func TestAStatementSettlesSoManyClaimsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := counting{newFakeStore(), new(atomic.Int64)}
		store.add("a", 2*settleGroup)
		_, stop := start(t, Config{
			Store: store, EventTypes: []string{"a"}, Batch: 1, MaxRounds: 1000, MaxInFlight: 2 * settleGroup,
			Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
				time.Sleep(time.Minute / 6)
				return all(len(events), Outcome{Verdict: Sent})
			}),
		})
		time.Sleep(time.Minute)
		if n := store.most.Load(); n != settleGroup || store.openReceipts() != 0 {
			t.Errorf("a statement settled %d claims at most, want %d; %d receipts are left", n, settleGroup, store.openReceipts())
		}
		stop()
	})
}

// Claims whose settling hangs, one after the other, do not keep those waiting that
// can be settled.
func TestHangingReturnsLetOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("bad", 5)
		store.setHang(func(call string) bool { return call == "Settle" })
		_, stop := start(t, Config{
			Store: store, EventTypes: []string{"bad", "good"}, Batch: 1,
			Publisher: publisherFunc(func(_ context.Context, events []Event) []Outcome {
				if events[0].Type == "bad" {
					return all(len(events), Outcome{Verdict: Refused, Err: errAway})
				}
				return all(len(events), Outcome{Verdict: Sent})
			}),
		})
		time.Sleep(time.Second)
		store.add("good", 1)
		time.Sleep(settlePatience)
		if n := store.called("SettleSent"); n != 1 {
			t.Errorf("what was sent was settled %d times after the first hanging call, want once", n)
		}
		stop()
	})
}

// Where nothing can be settled, claiming stops after a while: what is claimed and
// not settled is published again.
func TestUnsettledClaimsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 5000)
		store.fails("SettleSent", errAway)
		const lanes, inFlight = 2, 2
		w, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Batch: 1, Lanes: lanes, MaxInFlight: inFlight})
		time.Sleep(DefaultLease / 2)
		// The settler's own, those in its channel, those that wait for a place in it.
		if n, most := w.Status().OpenClaims, int64(2*4*inFlight+inFlight+lanes); n > most {
			t.Errorf("%d claims are open, want at most %d", n, most)
		}
		store.setFail(nil)
		stop()
	})
}

// An error that may be over with the next try does not stop claiming.
func TestSettlingThatFailsForNowStopsNoClaiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.fails("SettleSent", errAway)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}})
		for range 10 {
			store.add("a", 1)
			time.Sleep(time.Second)
		}
		if n := store.claimedEvents(); n != 10 {
			t.Errorf("%d of 10 events were claimed in ten seconds", n)
		}
		store.setFail(nil)
		stop()
	})
}

// A store that gives less than the worker was told is believed: what would be
// sent behind its lease is sent by another worker too.
func TestTheReceiptsLeaseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 10 * time.Second
		store := newFakeStore()
		store.lease = lease
		store.add("a", 1)
		sending := make(chan time.Duration, 1000)
		_, stop := start(t, Config{
			Store: store, EventTypes: []string{"a"},
			Publisher: publisherFunc(func(ctx context.Context, events []Event) []Outcome {
				began := time.Now()
				<-ctx.Done()
				sending <- time.Since(began)
				return all(len(events), Outcome{Verdict: Unsent, Err: ctx.Err()})
			}),
		})
		if took := <-sending; took > LongestPublishDeadline(lease) {
			t.Errorf("events were being sent %s after their claim, under a lease of %s", took, lease)
		}
		stop()
	})
}

// After the lease that the receipt has, its events are another worker's to send, and
// no settling helps.
func TestSettlingEndsWithTheReceiptsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.lease = 10 * time.Second
		store.add("a", 1)
		store.fails("SettleSent", errAway)
		var seen settledCounts
		w, stop := start(t, Config{Store: store, EventTypes: []string{"a"}, Publisher: publishAll, Observer: &seen})
		time.Sleep(store.lease - time.Second)
		if n := w.Status().OpenClaims; n != 1 {
			t.Errorf("%d claims are open within the lease, want 1", n)
		}
		if n := store.called("SettleSent"); n < 3 || n > 20 { // pauses that double from 50 ms to 2 s
			t.Errorf("settling was tried %d times in nine seconds", n)
		}
		time.Sleep(10 * time.Second) // pauses of 2 s, half as long again at most, and a reap every 5 s
		if seen.lostReceipts() == 0 {
			t.Error("the claim is not given up with its lease")
		}
		stop()
	})
}

// A database that refuses every claim is asked less and less often.
func TestRefusedClaimsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		store.fails("Claim", errAway)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Lanes: 1})
		time.Sleep(5 * time.Minute)
		// Pauses of 5 s, down to half with their jitter.
		if n := store.called("Claim"); n > 130 {
			t.Errorf("%d claims in five minutes", n)
		}
		stop()
	})
}

// What was refused for long is tried again at once after the next failure, if claims
// passed in between.
func TestClaimsThatPassEndTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("a", 1)
		store.fails("Claim", errAway)
		_, stop := start(t, Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}, Lanes: 1})
		time.Sleep(5 * time.Minute)
		store.setFail(nil)
		time.Sleep(10 * time.Second)
		store.failsFirst("Claim", store.called("Claim")+1, errAway)
		store.add("a", 1)
		time.Sleep(time.Second)
		if n := store.count("processed"); n != 2 {
			t.Errorf("%d of 2 events are out a second after a lone failure", n)
		}
		stop()
	})
}
