package storage

// change is one step of a transaction, as a rollback undoes it and as the
// clean-up after the commit finds what it superseded.
type change struct {
	table   *Table
	rec     *record
	version *version
	moves   []move
	// undo is set instead of the rest for a change of structure.
	undo func()
}

// move takes a row from one entry of an index to another; either may be nil.
type move struct {
	slot     int
	from, to *entry
	// revived is who had emptied to before; nil says that to is new.
	revived *txnStatus
}

// do carries the move out. The table's mutex is held, and a new entry is in
// the tree already.
func (m *move) do(tx *Txn) {
	if e := m.from; e != nil {
		e.ghost = tx.status
		e.index.live.Add(-1)
		e.index.ops.ghosts.Add(1)
		e.rec.ghosts++
		tx.db.meters.ghosts.Add(1)
		e.rec.setSlot(m.slot, nil)
	}
	if e := m.to; e != nil {
		e.index.ops.inserts.Add(1)
		if m.revived != nil {
			e.ghost = nil
			e.rec.ghosts--
			tx.db.meters.ghosts.Add(-1)
		}
		e.index.live.Add(1)
		e.rec.setSlot(m.slot, e)
	}
}

// back undoes do.
func (m *move) back(tx *Txn) {
	if e := m.to; e != nil {
		if m.revived != nil {
			e.ghost = m.revived
			e.rec.ghosts++
			tx.db.meters.ghosts.Add(1)
			if m.revived != tx.status {
				tx.stirred = append(tx.stirred, *m)
			}
		} else {
			e.index.remove(e)
		}
		e.index.live.Add(-1)
		e.rec.setSlot(m.slot, nil)
	}
	if e := m.from; e != nil {
		e.ghost = nil
		e.index.live.Add(1)
		e.rec.ghosts--
		tx.db.meters.ghosts.Add(-1)
		e.rec.setSlot(m.slot, e)
	}
}

// undo takes one change back. The locks of the change are still held.
func (tx *Txn) undo(c *change) {
	if c.undo != nil {
		c.undo()
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	for i := len(c.moves) - 1; i >= 0; i-- {
		c.moves[i].back(tx)
	}
	if c.rec.head = c.version.prev; c.rec.head == nil {
		return
	}
	tx.db.meters.versions.Add(-1)
	for _, e := range c.rec.slots {
		if e != nil {
			e.of = c.rec.head
		}
	}
}
