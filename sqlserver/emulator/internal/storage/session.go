package storage

import (
	"context"
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

	db *DB
	id int64
}

// NewSession opens a session. Close it.
func (db *DB) NewSession() *Session {
	return &Session{db: db, id: db.sessions.Add(1), LockTimeout: Forever}
}

// ID is unique within the DB, counted from 1.
func (s *Session) ID() int64 { return s.id }

// Begin starts a transaction. A session has at most one: Begin panics while
// the last one is open.
func (s *Session) Begin(iso Isolation) *Txn { panic("storage: not yet") }

// Close rolls the open transaction back and releases the session's application
// locks. Nothing else of the session may be running.
func (s *Session) Close() {}

// AppLock takes an application lock (sp_getapplock) that lives until
// AppUnlock or Close. Taken twice, it must be released twice. waited says
// whether it had to queue. Errors are those of Scan.
func (s *Session) AppLock(ctx context.Context, resource string, mode LockMode, timeout time.Duration) (waited bool, err error) {
	panic("storage: not yet")
}

// AppUnlock gives one AppLock back; ErrNotLocked when the session holds none.
func (s *Session) AppUnlock(resource string) error { panic("storage: not yet") }
