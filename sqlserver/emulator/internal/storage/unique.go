package storage

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Rekeys says whether a change of a row moves it to another key of a unique index,
// into one or out of one.
func (t *Table) Rekeys(old, next []sqltype.Value) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, ix := range t.indexes {
		if ix == nil || !ix.spec.Unique {
			continue
		}
		if was, is := ix.holds(old), ix.holds(next); was != is || is && !ix.sameKey(old, next) {
			return true
		}
	}
	return false
}

// clash finds an entry whose key a change must not, or not yet, take: a row is
// in it, or an open transaction has emptied it and may roll back. The table's
// mutex is held.
func (t *Table) clash(own *txnStatus, rec *record, values []sqltype.Value, steps []step) (found *entry) {
	for i := range steps {
		s := &steps[i]
		if !s.enters || !s.index.spec.Unique {
			continue
		}
		s.index.equals(values, func(e *entry) bool {
			if e.rec != rec && (e.ghost == nil || !own.settled(e.ghost)) {
				found = e
			}
			return found == nil
		})
		if found != nil {
			return found
		}
	}
	return nil
}

// settle waits until whoever changed the clashing entry is done with it. It
// returns nil when the key may be free now.
func (tx *Txn) settle(ctx context.Context, a *access, e *entry, values []sqltype.Value) error {
	if !a.keep.covers(S) {
		g, err := tx.db.locks.acquire(ctx, &tx.locks, e, S, tx.session.LockTimeout)
		if err != nil {
			return err
		}
		if g.fresh {
			defer tx.db.locks.release(g.held, e, S)
		}
	}
	a.table.mu.RLock()
	defer a.table.mu.RUnlock()
	if e.live() {
		return &DuplicateKeyError{Index: e.index, Key: e.index.key(values)}
	}
	return nil
}
