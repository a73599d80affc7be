package storage

import (
	"context"
	"maps"
	"time"
)

// LockTableLow asks for a table lock at low priority: while the request waits
// nobody waits behind it, and it yields to every other request (sql-docs, "ALTER
// INDEX", WAIT_AT_LOW_PRIORITY). After patience it is ErrLockTimeout.
func (tx *Txn) LockTableLow(ctx context.Context, t *Table, mode LockMode, patience time.Duration) error {
	if tx.done {
		return ErrTxnDone
	}
	a := tx.access(t)
	if a.held == nil || !a.held.mode.covers(mode) {
		g, err := tx.db.locks.acquireLow(ctx, &tx.locks, a.table, mode, patience)
		if err != nil {
			return err
		}
		a.held = g.held
	}
	a.keep |= mode
	return nil
}

func (m *lockManager) acquireLow(ctx context.Context, o *lockOwner, on lockTarget, mode LockMode, patience time.Duration) (grant, error) {
	m.mu.Lock()
	if g, ok := m.grantNow(o, on, mode); ok {
		m.mu.Unlock()
		return g, nil
	}
	if patience <= 0 {
		m.mu.Unlock()
		return grant{}, ErrLockTimeout
	}
	w := m.enqueue(o, on, mode)
	w.low = true
	m.breakDeadlocks(w)
	m.mu.Unlock()
	return m.await(ctx, w, patience)
}

// LowPriorityLockWaits are the waits at low priority, as LockWaits has the
// others.
func (db *DB) LowPriorityLockWaits() map[LockMode]Wait {
	db.locks.mu.Lock()
	defer db.locks.mu.Unlock()
	return maps.Clone(db.locks.lowWaits)
}
