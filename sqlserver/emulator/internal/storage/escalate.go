package storage

// Lock escalation as in the transaction locking and row versioning guide: a
// statement that has 5,000 locks on one index tries to trade the transaction's
// row locks for one table lock, and tries again every 1,250 more when others
// are in its way.
const (
	escalateAt    = 5000
	escalateAgain = 1250
)

// rowCount counts the row locks of one statement on one index.
type rowCount struct{ taken, tryAt int }

// countRowLock counts a lock that stays, and escalates when it is one too many.
func (tx *Txn) countRowLock(a *access, slot int, mode LockMode) {
	for len(a.counts) <= slot {
		a.counts = append(a.counts, rowCount{tryAt: escalateAt})
	}
	c := &a.counts[slot]
	c.taken++
	if c.taken < c.tryAt || a.keep.covers(mode) {
		return
	}
	c.tryAt += escalateAgain
	whole := X
	if mode == S && a.keep&IX == 0 {
		whole = S
	}
	ops := &a.table.indexes[slot].ops
	ops.attempts.Add(1)
	if _, ok := tx.db.locks.try(&tx.locks, a.table, whole); !ok {
		return
	}
	ops.promotions.Add(1)
	a.keep |= whole
	tx.db.locks.releaseRows(&tx.locks, a.table)
	tx.db.meters.escalations.Add(1)
}
