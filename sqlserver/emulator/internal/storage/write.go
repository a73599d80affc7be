package storage

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Insert adds a row and keeps values; the caller does not touch them again. A
// *DuplicateKeyError changes nothing. It waits where an uncommitted row has an
// equal unique key, and where an uncommitted delete may bring one back.
func (tx *Txn) Insert(ctx context.Context, t *Table, values []sqltype.Value) error {
	if tx.done {
		return ErrTxnDone
	}
	a := tx.access(t)
	if _, err := tx.lockTable(ctx, a, IX, true, tx.session.LockTimeout); err != nil {
		return err
	}
	t.checkWidth(values)
	born := &newRow{}
	steps := tx.steps[:0]
	for _, ix := range t.indexes {
		if ix != nil && ix.holds(values) {
			steps = append(steps, step{index: ix, enters: true})
		}
	}
	tx.steps, tx.stays = steps, tx.stays[:0]
	return tx.apply(ctx, a, &born.rec, born, values, steps)
}

// Update replaces a row that this transaction read with U or X locks, and
// keeps values. The row is found by its ID and the clustered key in its Values.
// Errors are those of Insert, and ErrRowGone when it is not there any more,
// which only an unlocked read or an earlier change can lead to. Unique keys are
// checked row by row: a statement that may shift a range of them over itself
// deletes and inserts the rows that Rekeys names.
func (tx *Txn) Update(ctx context.Context, t *Table, row Row, values []sqltype.Value) error {
	return tx.write(ctx, t, row, values)
}

// Delete removes a row that this transaction read with U or X locks, found as
// Update does.
func (tx *Txn) Delete(ctx context.Context, t *Table, row Row) error {
	return tx.write(ctx, t, row, nil)
}

// write replaces or, with nil, deletes a row.
func (tx *Txn) write(ctx context.Context, t *Table, row Row, values []sqltype.Value) error {
	if tx.done {
		return ErrTxnDone
	}
	a := tx.access(t)
	if _, err := tx.lockTable(ctx, a, IX, true, tx.session.LockTimeout); err != nil {
		return err
	}
	if values != nil {
		t.checkWidth(values)
	}
	rec, err := tx.lockBase(ctx, a, row)
	if err != nil {
		return err
	}
	if tx.iso == Snapshot && rec.head.by != tx.status && rec.head.by.committed.Load() > tx.snap.at {
		return ErrUpdateConflict
	}
	steps, err := tx.plan(ctx, a, rec, values)
	if err != nil {
		return err
	}
	return tx.apply(ctx, a, rec, nil, values, steps)
}

// lockBase takes the X lock that allows to change a row.
func (tx *Txn) lockBase(ctx context.Context, a *access, row Row) (*record, error) {
	t := a.table
	t.mu.RLock()
	var base *entry
	if row.rec != nil {
		base = row.rec.slot(0)
	}
	if base == nil || !t.base.sameKey(base.of.values, row.Values) {
		base, _ = t.base.tree.GetHint(&entry{rec: &record{id: row.ID}, of: &version{values: row.Values}}, a.nearIn(t.base))
	}
	t.mu.RUnlock()
	if base == nil {
		return nil, ErrRowGone
	}
	if err := tx.lockRow(ctx, a, base, X, tx.session.LockTimeout); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !base.live() {
		return nil, ErrRowGone
	}
	return base.rec, nil
}

// step is what a change does to one index.
type step struct {
	index  *Index
	leaves *entry
	enters bool
	// revives is the ghost that the row left earlier at the key it enters.
	revives *entry
	// locked says that a new entry was made for it, and locked.
	locked bool
}

// plan finds out which index entries a change touches and locks them. The row
// is locked already, so that what it reads of it stands still.
func (tx *Txn) plan(ctx context.Context, a *access, rec *record, values []sqltype.Value) ([]step, error) {
	old := rec.head.values
	steps := tx.steps[:0]
	tx.stays = tx.stays[:0]
	for slot, ix := range a.table.indexes {
		if ix == nil {
			continue
		}
		s := step{index: ix, leaves: rec.slot(slot), enters: values != nil && ix.holds(values)}
		stays := s.leaves != nil && s.enters && ix.sameKey(old, values)
		switch {
		case stays && slot == 0: // the row itself
			tx.stays = append(tx.stays, ix)
			continue
		case s.leaves == nil && !s.enters, stays && !ix.touched(old, values):
			continue
		case s.leaves != nil && slot != 0:
			if err := tx.lockRow(ctx, a, s.leaves, X, tx.session.LockTimeout); err != nil {
				return nil, err
			}
		}
		if stays {
			tx.stays = append(tx.stays, ix)
			continue
		}
		if s.enters {
			if s.revives = a.table.ghostOf(rec, ix, values); s.revives != nil {
				if err := tx.lockRow(ctx, a, s.revives, X, tx.session.LockTimeout); err != nil {
					return nil, err
				}
			}
		}
		steps = append(steps, s)
	}
	tx.steps = steps
	return steps, nil
}

// ghostOf finds the entry that rec once had at the key of values.
func (t *Table) ghostOf(rec *record, ix *Index, values []sqltype.Value) *entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if rec.ghosts == 0 {
		return nil
	}
	e, _ := ix.tree.Get(&entry{rec: rec, of: &version{values: values}})
	return e
}

// apply makes a change whose locks are held, once no unique key is in its way.
// born is the space of a row that is new, nil for one that is there.
func (tx *Txn) apply(ctx context.Context, a *access, rec *record, born *newRow, values []sqltype.Value, steps []step) error {
	t := a.table
	for {
		t.mu.Lock()
		c := t.clash(tx.status, rec, values, steps)
		if c == nil {
			break
		}
		t.mu.Unlock()
		if err := tx.settle(ctx, a, c, values); err != nil {
			return err
		}
	}
	tx.place(a, rec, born, values, steps)
	t.mu.Unlock()
	for _, ix := range tx.stays {
		ix.ops.updates.Add(1)
	}
	for _, s := range steps {
		if s.locked {
			tx.countRowLock(a, s.index.slot, X)
		}
	}
	return nil
}

// place writes a change into the record and the trees. The table's mutex is
// held.
func (tx *Txn) place(a *access, rec *record, born *newRow, values []sqltype.Value, steps []step) {
	t := a.table
	var v *version
	if born != nil {
		t.nextRow++
		rec.id = t.nextRow
		rec.slots = born.slots[:0]
		v = &born.version
	} else {
		tx.db.meters.versions.Add(1)
		v = new(version)
	}
	*v = version{values: values, by: tx.status, prev: rec.head}
	c := change{table: t, rec: rec, version: v}
	rec.head = c.version
	from := len(tx.moves)
	for i := range steps {
		s := &steps[i]
		m := move{slot: s.index.slot, from: s.leaves}
		if s.enters {
			m.to, m.revived = s.revives, nil
			if m.to != nil && !m.to.removed {
				m.revived = m.to.ghost
			} else {
				if born != nil && s.index == t.base {
					m.to = &born.base
				} else {
					m.to = new(entry)
				}
				*m.to = entry{index: s.index, rec: rec, of: v}
				if !a.keep.covers(X) {
					// Nobody can have a lock on it yet.
					tx.db.locks.try(&tx.locks, m.to, X)
					s.locked = true
				}
				s.index.add(m.to)
			}
		}
		m.do(tx)
		tx.moves = append(tx.moves, m)
	}
	c.moves = tx.moves[from:len(tx.moves):len(tx.moves)]
	if values != nil {
		// Entries that stay let the old values go.
		for _, e := range rec.slots {
			if e != nil {
				e.of = v
			}
		}
	}
	tx.changes = append(tx.changes, c)
}
