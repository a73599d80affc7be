package storage

import (
	"errors"
	"fmt"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var (
	// ErrLockTimeout is SQL Server's 1222. The transaction goes on.
	ErrLockTimeout = errors.New("lock request time out period exceeded")
	// ErrDeadlock is SQL Server's 1205. The transaction can only be rolled back,
	// and holds its locks until it is.
	ErrDeadlock = errors.New("chosen as the deadlock victim")
	// ErrUpdateConflict is SQL Server's 3960.
	ErrUpdateConflict = errors.New("the row was changed after the snapshot was taken")
	// ErrNotLocked is SQL Server's 1223: an application lock is released that is
	// not held.
	ErrNotLocked = errors.New("the application lock is not held")
	// ErrRowGone means that a row to change was deleted since it was read.
	ErrRowGone = errors.New("the row is not there any more")
	// ErrIndexGone means that the index was dropped since the plan was made.
	ErrIndexGone = errors.New("the index is not there any more")
	// ErrTxnDone means that the transaction was committed or rolled back before.
	ErrTxnDone = errors.New("the transaction is over")
)

// DuplicateKeyError is SQL Server's 2627 and 2601.
type DuplicateKeyError struct {
	Index *Index
	// Key holds the values of the index key, part by part.
	Key []sqltype.Value
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("a row with the same key is in unique index %q", e.Index.Spec().Name)
}
