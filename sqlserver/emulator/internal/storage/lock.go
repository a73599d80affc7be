package storage

import "strings"

// LockMode is a set of basic lock modes. A lock that covers several at once
// (SIX) is their union, so a conversion adds bits and two locks conflict when
// any two of their bits do.
type LockMode uint8

const (
	SchS LockMode = 1 << iota // schema stability: keeps Sch-M away
	IS                        // intent shared
	IU                        // intent update
	IX                        // intent exclusive
	S                         // shared
	U                         // update: compatible with S, not with another U
	X                         // exclusive
	SchM                      // schema modification: conflicts with everything

	SIX = S | IX
)

// String is the name that sys.dm_tran_locks.request_mode shows.
func (m LockMode) String() string { return strings.ToUpper("?") }

// LockInfo is one row of DB.Locks.
type LockInfo struct {
	SessionID int64
	Resource  ResourceType
	// Table is nil for application locks; Index and Row are set for Key and
	// RID; App is the name of an application lock.
	Table *Table
	Index *Index
	Row   RowID
	App   string
	// Mode is what is held, or what is asked for while Status is not Granted.
	Mode   LockMode
	Status LockStatus
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
)
