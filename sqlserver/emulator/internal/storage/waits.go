package storage

import (
	"maps"
	"time"
)

// Wait is what the waits for one lock mode came to, ended in whatever way.
type Wait struct {
	Count      int64
	Total, Max time.Duration
}

// waitMeters are the waits by the mode that was asked for.
type waitMeters map[LockMode]Wait

func (m waitMeters) add(mode LockMode, d time.Duration) {
	w := m[mode]
	w.Count++
	w.Total += d
	w.Max = max(w.Max, d)
	m[mode] = w
}

// ResetLockWaits forgets the waits so far.
func (db *DB) ResetLockWaits() {
	db.locks.mu.Lock()
	defer db.locks.mu.Unlock()
	clear(db.locks.waits)
	clear(db.locks.lowWaits)
}

// LockWaits are the waits for locks since New or ResetLockWaits that have ended, by the mode that
// was asked for, what the session already held on the resource included.
func (db *DB) LockWaits() map[LockMode]Wait {
	db.locks.mu.Lock()
	defer db.locks.mu.Unlock()
	return maps.Clone(db.locks.waits)
}
