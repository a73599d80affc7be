package storage

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// ReadMode is how a scan reads rows.
type ReadMode uint8

const (
	// ReadVersion reads the statement's snapshot and the transaction's own
	// changes. It takes no row locks and waits only for Sch-M.
	ReadVersion ReadMode = iota
	// ReadDirty reads what is there, committed or not (NOLOCK).
	ReadDirty
	// ReadLocked locks each row before it reads the newest version.
	ReadLocked
)

// Bound is one end of a range on an index key: the rows whose first
// len(Prefix) key parts are above (or below) Prefix, or equal to it when
// Inclusive. Not Set means no bound.
type Bound struct {
	Prefix    []sqltype.Value
	Inclusive bool
	Set       bool
}

// ScanRequest says what to read and how.
type ScanRequest struct {
	// Index is the index to walk, nil for the clustered index or the heap.
	Index *Index
	// Lower and Upper are ends in key order (for a Desc part, descending
	// order); Reverse walks from Upper to Lower.
	Lower, Upper Bound
	Reverse      bool

	Mode ReadMode
	// Lock is S, U or X, for ReadLocked.
	Lock LockMode
	// Base says that the plan needs columns outside Index: the base row's key is
	// locked after the index key.
	Base bool
	// ReadPast passes over rows whose lock is not free at once. A table lock is
	// waited for all the same.
	ReadPast bool
	// NoWait fails with ErrLockTimeout instead of waiting.
	NoWait bool
	// TableLock locks the table instead of its rows: S for S, X for U and X.
	TableLock bool
	// Hold keeps S locks to the end of the transaction. U and X locks stay
	// always.
	Hold bool
}

// RowID identifies a row of a table for as long as it lives.
type RowID uint64

// Row is a row as a scan saw it. Values are never changed in place: whoever
// keeps them keeps that version.
type Row struct {
	ID     RowID
	Values []sqltype.Value
}

// Scan starts a scan; errors come from Next. Between two calls of Next the
// transaction may do anything, but what it inserts ahead of the scan may be
// met by it: a statement that changes what it reads collects its rows first.
func (tx *Txn) Scan(ctx context.Context, t *Table, r ScanRequest) *Cursor {
	panic("storage: not yet")
}

// Cursor is a running scan.
type Cursor struct{}

// Next returns the next row, or false at the end. Errors are ErrLockTimeout,
// ErrDeadlock (the caller rolls the transaction back) and the context's.
func (c *Cursor) Next() (Row, bool, error) { panic("storage: not yet") }

// Skip says that the row last returned does not qualify after all: the locks
// that this scan took for it are released.
func (c *Cursor) Skip() { panic("storage: not yet") }

// Close ends the scan. It may be called twice.
func (c *Cursor) Close() { panic("storage: not yet") }
