package worker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// A receipt that cannot be read is nobody's to end: a drain says so after a lease,
// not before, and waits no longer.
func TestADrainGivesUpOnAReceiptThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 10)
		store.setFail(func(call string, nth int) error {
			if call == "Reap" && nth%2 == 0 {
				return errAway // which says nothing of the receipts
			}
			return nil
		})
		id := uuid.New()
		store.receipts[id] = Receipt{ID: id, EventType: unreadable, LeaseUntil: time.Now()}
		w, err := New(Config{Store: store, Publisher: sent, EventTypes: []string{"a"}, Drain: true})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "1 claims whose leases are over cannot be read") {
			t.Errorf("the drain ends with %v", err)
		}
		if took := time.Since(began); took < DefaultLease || took > 2*DefaultLease {
			t.Errorf("it took %s", took)
		}
		if err := sent.check(10); err != nil {
			t.Error(err)
		}
	})
}

// A claim that ends between a drain's two questions, what is pending and what is
// claimed, is in neither answer.
func TestADrainIsNotOverWhenAClaimComesBackMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := newFakeStore(), &journal{}
		store.add("a", 10)
		others, err := store.Claim(t.Context(), ClaimRequest{EventType: "a", Batch: 10})
		if err != nil {
			t.Fatal(err)
		}
		store.setFail(func(call string, nth int) error {
			if call == "OpenReceipts" && nth == 1 {
				return store.Settle(t.Context(), Settlement{Receipt: others.Receipt, Returned: others.Receipt.EventIDs})
			}
			return nil
		})
		w, err := New(Config{Store: store, Publisher: sent, EventTypes: []string{"a"}, Drain: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sent.check(10); err != nil {
			t.Error(err)
		}
	})
}
