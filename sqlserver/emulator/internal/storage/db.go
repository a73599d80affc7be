// Package storage keeps the rows of the embedded SQL Server: B-trees, row
// versions and locks. It knows nothing of SQL text, names or types; the engine
// above it does.
//
// What it promises is what Azure SQL does by default (READ_COMMITTED_SNAPSHOT
// on). Plain reads see the rows as they were committed when their statement
// began, take no row locks and wait for nobody. Locking reads (UPDLOCK,
// READCOMMITTEDLOCK, …) and writes take S, U and X locks on index keys, in
// queues, with deadlock victims. A key that leaves an index stays as a ghost
// until its transaction is over, so that locking readers meet its lock.
//
// What it leaves out: pages and page locks, key-range locks (SERIALIZABLE
// locks the whole table instead, which is stricter and never weaker), the log.
//
// A Session and its Txn belong to one goroutine at a time; everything of DB,
// Table and Index may be called from many at once.
//
// Mutexes: each table has one, and with it held the lock manager's may be
// taken; the history's is held alone. None is held while waiting for a lock.
package storage

import (
	"sync/atomic"
)

// DB is a set of tables that share one lock manager and one commit clock.
type DB struct {
	lastSession atomic.Int64
	locks       lockManager
	history     history
	meters      meters
}

// New returns an empty database.
func New() *DB {
	db := &DB{}
	db.locks.meters = &db.meters
	db.locks.sessions = map[*Session]struct{}{}
	db.locks.waits, db.locks.lowWaits = waitMeters{}, waitMeters{}
	db.locks.apps = map[string]*appResource{}
	return db
}

// Counters count since New, except Versions and Ghosts, which are what is held
// right now.
type Counters struct {
	Commits, Rollbacks int64
	// LockWaits are requests that had to queue; LockTimeouts (1222) and
	// Deadlocks (1205) are how some of them ended.
	LockWaits, LockTimeouts, Deadlocks int64
	// Escalations counts table locks that replaced row locks, Skipped the rows
	// that READPAST passed over.
	Escalations, Skipped int64
	// Versions are superseded row versions kept for a snapshot or a rollback,
	// Ghosts the index entries whose row has left them.
	Versions, Ghosts int64
}

type meters struct {
	commits, rollbacks, lockWaits, lockTimeouts, deadlocks atomic.Int64
	escalations, skipped, versions, ghosts                 atomic.Int64
}

// Counters may be called at any time.
func (db *DB) Counters() Counters {
	m := &db.meters
	return Counters{
		Commits: m.commits.Load(), Rollbacks: m.rollbacks.Load(),
		LockWaits: m.lockWaits.Load(), LockTimeouts: m.lockTimeouts.Load(), Deadlocks: m.deadlocks.Load(),
		Escalations: m.escalations.Load(), Skipped: m.skipped.Load(),
		Versions: m.versions.Load(), Ghosts: m.ghosts.Load(),
	}
}
