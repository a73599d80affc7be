package storage

import (
	"context"
	"slices"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Drop waits for everybody who uses the table (Sch-M) and keeps them away to
// the end of the transaction. The rows go with the last pointer to the table.
func (t *Table) Drop(ctx context.Context, tx *Txn) error {
	return tx.LockTable(ctx, t, SchM)
}

// CreateIndex builds a nonclustered index, under Sch-M to the end of the
// transaction; a rollback drops it. Two rows that a unique index calls equal
// are a *DuplicateKeyError; a row that does not fit is the error of spec.Fits.
func (t *Table) CreateIndex(ctx context.Context, tx *Txn, spec IndexSpec) (*Index, error) {
	if err := tx.LockTable(ctx, t, SchM); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ix := newIndex(t, len(t.indexes), spec, t.base.spec.Key)
	var refused error
	t.base.tree.Scan(func(b *entry) bool {
		values := b.rec.head.values
		if b.ghost != nil || !ix.holds(values) {
			return true
		}
		if spec.Fits != nil {
			if refused = spec.Fits(values); refused != nil {
				return false
			}
		}
		if spec.Unique {
			ix.equals(values, func(*entry) bool {
				refused = &DuplicateKeyError{Index: ix, Key: ix.key(values)}
				return false
			})
		}
		ix.tree.Set(&entry{index: ix, rec: b.rec, of: b.rec.head})
		return refused == nil
	})
	if refused != nil {
		return nil, refused
	}
	t.indexes = append(t.indexes, ix)
	ix.attach()
	tx.changes = append(tx.changes, change{undo: ix.detach})
	return ix, nil
}

// DropIndex drops a nonclustered index, under Sch-M to the end of the
// transaction; a rollback brings it back. An index that is not there is
// ErrIndexGone.
func (t *Table) DropIndex(ctx context.Context, tx *Txn, ix *Index) error {
	if err := tx.LockTable(ctx, t, SchM); err != nil {
		return err
	}
	if ix.slot == 0 || t.indexes[ix.slot] != ix {
		return ErrIndexGone
	}
	ix.detach()
	tx.changes = append(tx.changes, change{undo: func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		ix.attach()
	}})
	return nil
}

// attach makes a filled index part of its table. The table's mutex is held.
func (ix *Index) attach() {
	ix.table.indexes[ix.slot] = ix
	ix.live.Store(0)
	ix.tree.Scan(func(e *entry) bool {
		if e.ghost == nil {
			e.rec.setSlot(ix.slot, e)
			ix.live.Add(1)
		}
		return true
	})
}

// detach takes an index out of its table and keeps its entries as they are.
func (ix *Index) detach() {
	t := ix.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.indexes[ix.slot] = nil
	ix.tree.Scan(func(e *entry) bool {
		if e.ghost == nil {
			e.rec.setSlot(ix.slot, nil)
		}
		return true
	})
}

// Rewrite replaces every row by what f makes of it, under Sch-M to the end of
// the transaction (ALTER COLUMN, ADD). f returns rows of the given number of
// columns, which is the table's from then on; no index may name a column that
// either form lacks. An error of f is returned as it
// is and leaves the changes made so far to the caller's rollback.
func (t *Table) Rewrite(ctx context.Context, tx *Txn, columns int, f func(old []sqltype.Value) ([]sqltype.Value, error)) error {
	if err := tx.LockTable(ctx, t, SchM); err != nil {
		return err
	}
	tx.setColumns(t, columns)
	for _, row := range t.rows() {
		values, err := f(slices.Clone(row.Values))
		if err != nil {
			return err
		}
		if err := tx.write(ctx, t, row, values); err != nil {
			return err
		}
	}
	return nil
}

// setColumns changes a table's width; a rollback changes it back.
func (tx *Txn) setColumns(t *Table, columns int) {
	was := t.columns
	set := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.columns = n
	}
	set(columns)
	tx.changes = append(tx.changes, change{undo: func() { set(was) }})
}

// rows are the newest rows, for one who holds Sch-M.
func (t *Table) rows() []Row {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]Row, 0, t.Rows())
	t.base.tree.Scan(func(e *entry) bool {
		if e.ghost == nil {
			all = append(all, Row{RowRef: RowRef{e.rec.id, e.rec}, Values: e.rec.head.values})
		}
		return true
	})
	return all
}
