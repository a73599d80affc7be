package storage

// lockAndRead locks an entry, and the base entry where the plan needs it, and
// reads the row as it is then: the wait may have changed it or taken it away.
func (c *Cursor) lockAndRead(e *entry) (Row, bool, error) {
	c.current = e
	ok, err := c.lock(0, e)
	if !ok || err != nil {
		return Row{}, false, err
	}
	t := c.access.table
	if c.r.Base && e.index != t.base {
		t.mu.RLock()
		var base *entry
		if e.live() {
			base = e.rec.slot(0)
		}
		t.mu.RUnlock()
		if base != nil {
			if ok, err = c.lock(1, base); !ok || err != nil {
				c.Skip()
				return Row{}, false, err
			}
		}
	}

	t.mu.RLock()
	row := Row{RowRef: RowRef{e.rec.id, e.rec}}
	live := e.live()
	if live {
		// Another transaction may have changed columns outside this index; what
		// the index holds is the same in the version before that.
		row.Values = e.rec.newest(c.tx.status).values
	}
	t.mu.RUnlock()
	if !live || c.instant {
		c.Skip()
	}
	return row, live, nil
}

// lock takes the scan's lock on one entry. It returns false where READPAST
// passes on.
func (c *Cursor) lock(i int, e *entry) (bool, error) {
	tx, a, l := c.tx, c.access, &c.taken[i]
	l.held, l.on = nil, e
	if c.r.TableLock || a.keep.covers(c.r.Lock) {
		return true, nil
	}
	if c.r.ReadPast {
		g, ok := tx.db.locks.try(&tx.locks, e, c.r.Lock)
		if !ok {
			tx.db.meters.skipped.Add(1)
			return false, nil
		}
		c.took(i, g)
		return true, nil
	}
	g, err := tx.db.locks.acquire(c.ctx, &tx.locks, e, c.r.Lock, c.timeout)
	if err != nil {
		return false, err
	}
	if g.waited {
		// The chunk is as old as the wait: read on from here.
		c.rows, c.entries, c.next = c.rows[:0], c.entries[:0], 0
		c.from, c.exhausted = c.current, false
	}
	c.took(i, g)
	return true, nil
}

// took notes a lock that the scan may have to give back.
func (c *Cursor) took(i int, g grant) {
	if !g.fresh {
		return
	}
	c.taken[i].held = g.held
	if !c.instant {
		c.tx.countRowLock(c.access, c.taken[i].on.index.slot, c.r.Lock)
	}
}
