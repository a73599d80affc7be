package storage

import (
	"context"
	"time"

	"github.com/tidwall/btree"
)

// access is what a transaction holds on one table.
type access struct {
	table *Table
	// held is the table lock. Its modes outside keep end with the statement.
	held *heldLock
	keep LockMode
	// counts are the row locks taken by this statement, by index slot.
	counts []rowCount
	// near is where the last seek ended, by index slot: the rows of one
	// statement mostly lie beside each other.
	near []btree.PathHint
}

// access finds or makes the entry for a table.
func (tx *Txn) access(t *Table) *access {
	for _, a := range tx.accesses {
		if a.table == t {
			return a
		}
	}
	a := &access{table: t}
	tx.accesses = append(tx.accesses, a)
	return a
}

// lockTable takes a table lock, to the end of the transaction when keep is
// set, otherwise of the statement.
func (tx *Txn) lockTable(ctx context.Context, a *access, mode LockMode, keep bool, timeout time.Duration) (waited bool, err error) {
	if a.held == nil || !a.held.mode.covers(mode) {
		g, err := tx.db.locks.acquire(ctx, &tx.locks, a.table, mode, timeout)
		if err != nil {
			return false, err
		}
		a.held, waited = g.held, g.waited
	}
	if keep {
		a.keep |= mode
	}
	return waited, nil
}

// lockRow takes a row lock and keeps it to the end of the transaction, save
// where the table lock makes it needless.
func (tx *Txn) lockRow(ctx context.Context, a *access, e *entry, mode LockMode, timeout time.Duration) error {
	if a.keep.covers(mode) {
		return nil
	}
	g, err := tx.db.locks.acquire(ctx, &tx.locks, e, mode, timeout)
	if err == nil && g.fresh {
		tx.countRowLock(a, e.index.slot, mode)
	}
	return err
}

// endStatementLocks gives back what was locked only for the statement.
func (tx *Txn) endStatementLocks() {
	for _, a := range tx.accesses {
		clear(a.counts)
		for i := range a.counts {
			a.counts[i].tryAt = escalateAt
		}
		if a.held == nil || a.held.mode == a.keep {
			continue
		}
		tx.db.locks.lower(a.held, a.keep)
		if a.keep == 0 {
			a.held = nil
		}
	}
}

// nearIn is the search hint for an index.
func (a *access) nearIn(ix *Index) *btree.PathHint {
	for len(a.near) <= ix.slot {
		a.near = append(a.near, btree.PathHint{})
	}
	return &a.near[ix.slot]
}
