package storage

import (
	"time"
)

// Forever is the LockTimeout that waits without end (SET LOCK_TIMEOUT -1).
const Forever time.Duration = -1

// Session is what one connection owns: its settings, its transaction, and the
// application locks that outlive transactions.
type Session struct {
	// LockTimeout bounds each wait for a lock; 0 does not wait at all, Forever
	// (the default) has no bound.
	LockTimeout time.Duration
	// DeadlockPriority is -10 to 10: of a deadlock's sessions the lowest is the
	// victim.
	DeadlockPriority int

	db    *DB
	id    int64
	locks lockOwner

	// waited is written under the lock manager's mutex before the session's own
	// goroutine, which reads it, goes on.
	waited time.Duration

	// The lock manager's mutex guards writes to these.
	txn     *Txn
	waiting *waiter
	spare   heldPool
}

// NewSession opens a session. Close it.
func (db *DB) NewSession() *Session {
	s := &Session{db: db, id: db.lastSession.Add(1), LockTimeout: Forever}
	s.locks.session = s
	db.locks.mu.Lock()
	defer db.locks.mu.Unlock()
	db.locks.sessions[s] = struct{}{}
	return s
}

// ID is unique within the DB, counted from 1.
func (s *Session) ID() int64 { return s.id }

// Waited is how long the session has waited for locks. It is for the goroutine
// that the session belongs to.
func (s *Session) Waited() time.Duration { return s.waited }

// Begin starts a transaction. A session has at most one: Begin panics while
// the last one is open.
func (s *Session) Begin(iso Isolation) *Txn {
	if s.txn != nil {
		panic("storage: Begin while the session's last transaction is open")
	}
	tx := &Txn{db: s.db, session: s, iso: iso, status: &txnStatus{}}
	tx.locks.session = s
	s.setTxn(tx)
	return tx
}

func (s *Session) setTxn(tx *Txn) {
	s.db.locks.mu.Lock()
	defer s.db.locks.mu.Unlock()
	s.txn = tx
}

// Close rolls the open transaction back and releases the session's application
// locks. Nothing else of the session may be running.
func (s *Session) Close() {
	if s.txn != nil {
		s.txn.Rollback()
	}
	m := &s.db.locks
	m.releaseAll(&s.locks)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, s)
}

// owners are whose locks are the session's.
func (s *Session) owners() []*lockOwner {
	if s.txn == nil {
		return []*lockOwner{&s.locks}
	}
	return []*lockOwner{&s.txn.locks, &s.locks}
}
