package storage

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Table is a heap or a clustered table with its indexes.
type Table struct{}

// CreateTable makes a table whose rows have that many columns. clustered nil
// makes a heap. It is not transactional: the table exists for whoever holds
// the pointer.
func (db *DB) CreateTable(columns int, clustered *IndexSpec) *Table { panic("storage: not yet") }

// Drop waits for everybody who uses the table (Sch-M) and keeps them away to
// the end of the transaction. The rows go with the last pointer to the table.
func (t *Table) Drop(ctx context.Context, tx *Txn) error { panic("storage: not yet") }

// Clustered is nil for a heap.
func (t *Table) Clustered() *Index { panic("storage: not yet") }

// Indexes are the nonclustered indexes in the order of their creation.
func (t *Table) Indexes() []*Index { panic("storage: not yet") }

// Rows counts the rows, uncommitted ones included. It is cheap.
func (t *Table) Rows() int64 { panic("storage: not yet") }

// CreateIndex builds a nonclustered index, under Sch-M to the end of the
// transaction; a rollback drops it. Two rows that a unique index calls equal
// are a *DuplicateKeyError.
func (t *Table) CreateIndex(ctx context.Context, tx *Txn, spec IndexSpec) (*Index, error) {
	panic("storage: not yet")
}

// DropIndex drops a nonclustered index, under Sch-M to the end of the
// transaction; a rollback brings it back.
func (t *Table) DropIndex(ctx context.Context, tx *Txn, ix *Index) error { panic("storage: not yet") }

// Rewrite replaces every row by what f makes of it, under Sch-M to the end of
// the transaction (ALTER COLUMN, ADD). f may return another number of columns;
// from then on the table has that many. An error of f is returned as it is and
// leaves the changes made so far to the caller's rollback.
func (t *Table) Rewrite(ctx context.Context, tx *Txn, columns int, f func(old []sqltype.Value) ([]sqltype.Value, error)) error {
	panic("storage: not yet")
}
