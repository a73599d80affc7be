package storage

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Insert adds a row and keeps values; the caller does not touch them again. A
// *DuplicateKeyError changes nothing. It waits where an uncommitted row has an
// equal unique key, and where an uncommitted delete may bring one back.
func (tx *Txn) Insert(ctx context.Context, t *Table, values []sqltype.Value) error {
	panic("storage: not yet")
}

// Update replaces a row that this transaction read with U or X locks, and
// keeps values. Errors are those of Insert, and ErrRowGone when the row is not
// there any more, which only an unlocked read can lead to.
func (tx *Txn) Update(ctx context.Context, t *Table, row Row, values []sqltype.Value) error {
	panic("storage: not yet")
}

// Delete removes a row that this transaction read with U or X locks.
func (tx *Txn) Delete(ctx context.Context, t *Table, row Row) error {
	panic("storage: not yet")
}
