package storage

import (
	"sync/atomic"
	"time"
)

// Operations is what was done to the entries of one index or heap since it was
// made or ResetOperations, what was rolled back included. A row that changes its
// place in the index leaves a ghost and is inserted.
type Operations struct {
	Inserts, Updates, Ghosts int64
	// RowLockWaits are waits for locks on its entries that have ended, and
	// RowLockWait how long they took together.
	RowLockWaits int64
	RowLockWait  time.Duration
	// PromotionAttempts counts attempts to trade row locks for a table lock, and
	// Promotions those that succeeded.
	PromotionAttempts, Promotions int64
}

type operations struct {
	inserts, updates, ghosts, waits, waited, attempts, promotions atomic.Int64
}

// Operations may be called at any time.
func (ix *Index) Operations() Operations {
	o := &ix.ops
	return Operations{
		Inserts: o.inserts.Load(), Updates: o.updates.Load(), Ghosts: o.ghosts.Load(),
		RowLockWaits: o.waits.Load(), RowLockWait: time.Duration(o.waited.Load()),
		PromotionAttempts: o.attempts.Load(), Promotions: o.promotions.Load(),
	}
}

// ResetOperations begins to count anew.
func (ix *Index) ResetOperations() {
	o := &ix.ops
	for _, n := range []*atomic.Int64{&o.inserts, &o.updates, &o.ghosts, &o.waits, &o.waited, &o.attempts, &o.promotions} {
		n.Store(0)
	}
}

// countWait counts a wait for a row lock that has ended.
func countWait(on lockTarget, d time.Duration) {
	if e, ok := on.(*entry); ok {
		e.index.ops.waits.Add(1)
		e.index.ops.waited.Add(int64(d))
	}
}

// Base is the clustered index or the heap.
func (t *Table) Base() *Index { return t.base }
