package storage

import (
	"context"
	"time"
)

// Isolation is a transaction's isolation level. The engine decides per scan
// how it reads; the level adds what must hold across scans.
type Isolation uint8

const (
	// ReadCommitted takes a new snapshot each statement and gives S locks back
	// as a locking scan moves on.
	ReadCommitted Isolation = iota
	ReadUncommitted
	// RepeatableRead keeps S locks to the end of the transaction.
	RepeatableRead
	// Serializable does so too and locks whole tables.
	Serializable
	// Snapshot keeps the first statement's snapshot; changing a row that was
	// committed after it is ErrUpdateConflict.
	Snapshot
)

// Txn is a transaction. Statements outside an explicit transaction run in one
// of their own.
type Txn struct{}

// Mark is a position in a transaction that RollbackTo goes back to.
type Mark int

// BeginStatement starts a statement: reads of versions see what was committed
// by now, and escalation counts from zero. It ends the last statement.
func (tx *Txn) BeginStatement() { panic("storage: not yet") }

// EndStatement drops the statement's snapshot and what locks last only for a
// statement. Call it even when the transaction stays open: a snapshot that is
// kept holds back the clean-up of old versions. BeginStatement, Commit and
// Rollback call it too.
func (tx *Txn) EndStatement() { panic("storage: not yet") }

// Commit makes the changes visible to all and releases the locks. The error is
// ErrTxnDone when the transaction is over already.
func (tx *Txn) Commit() error { panic("storage: not yet") }

// Rollback undoes every change and releases the locks. It does nothing when
// the transaction is over already.
func (tx *Txn) Rollback() { panic("storage: not yet") }

// Savepoint marks where RollbackTo goes back to.
func (tx *Txn) Savepoint() Mark { panic("storage: not yet") }

// RollbackTo undoes the changes made since the mark. Locks taken since stay,
// as in SQL Server.
func (tx *Txn) RollbackTo(m Mark) { panic("storage: not yet") }

// Changes is how many row changes a rollback would undo.
func (tx *Txn) Changes() int { panic("storage: not yet") }

// LockTable takes a table lock and keeps it to the end of the transaction:
// SchM for DDL, X for TABLOCKX, S for TABLOCK.
func (tx *Txn) LockTable(ctx context.Context, t *Table, mode LockMode) error {
	panic("storage: not yet")
}

// AppLock takes an application lock that the end of the transaction releases.
func (tx *Txn) AppLock(ctx context.Context, resource string, mode LockMode, timeout time.Duration) (waited bool, err error) {
	panic("storage: not yet")
}

// AppUnlock gives one AppLock of the transaction back; ErrNotLocked when it
// holds none.
func (tx *Txn) AppUnlock(resource string) error { panic("storage: not yet") }
