package storage

import (
	"cmp"
	"slices"
	"time"
)

// LockInfo is one row of DB.Locks.
type LockInfo struct {
	SessionID int64
	Resource  ResourceType
	// Table is nil for application locks; Row is set for KEY and RID, Index for
	// KEY; App is the name of an application lock.
	Table *Table
	Index *Index
	Row   RowID
	App   string
	// Mode is what is held, or what is asked for while Status is not Granted.
	Mode   LockMode
	Status LockStatus
	// Since is when the wait began, and BlockedBy the session that keeps the
	// request waiting, the first of several; unset for a granted lock.
	Since     time.Time
	BlockedBy int64
	// SessionScope is true for application locks that outlive transactions.
	SessionScope bool
}

// ResourceType is resource_type of sys.dm_tran_locks.
type ResourceType string

const (
	ObjectLock      ResourceType = "OBJECT"
	KeyLock         ResourceType = "KEY"
	RIDLock         ResourceType = "RID"
	ApplicationLock ResourceType = "APPLICATION"
)

// LockStatus is request_status of sys.dm_tran_locks.
type LockStatus string

const (
	Granted    LockStatus = "GRANT"
	Waiting    LockStatus = "WAIT"
	Converting LockStatus = "CONVERT"

	LowPriorityWaiting    LockStatus = "LOW_PRIORITY_WAIT"
	LowPriorityConverting LockStatus = "LOW_PRIORITY_CONVERT"
)

// Locks lists every lock that is held or waited for, session by session, as
// sys.dm_tran_locks does. It stops all locking while it copies.
func (db *DB) Locks() []LockInfo {
	m := &db.locks
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []LockInfo
	for s := range m.sessions {
		for _, o := range s.owners() {
			for h := o.held; h != nil; h = h.nextOwned {
				all = append(all, describe(o, h.on, h.mode, Granted))
			}
		}
		if w := s.waiting; w != nil {
			status := Waiting
			if w.converts != nil {
				status = Converting
			}
			switch {
			case w.low && w.converts != nil:
				status = LowPriorityConverting
			case w.low:
				status = LowPriorityWaiting
			}
			info := describe(w.owner, w.on, w.want, status)
			info.Since = w.since
			m.blocked(w, func(s *Session) {
				if info.BlockedBy == 0 {
					info.BlockedBy = s.id
				}
			})
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b LockInfo) int { return cmp.Compare(a.SessionID, b.SessionID) })
	return all
}

func describe(o *lockOwner, on lockTarget, mode LockMode, status LockStatus) LockInfo {
	info := LockInfo{SessionID: o.session.id, Mode: mode, Status: status, SessionScope: o == &o.session.locks}
	on.describe(&info)
	return info
}
