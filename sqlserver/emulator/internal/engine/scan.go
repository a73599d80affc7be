package engine

import (
	"errors"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// scan reads a stored table.
type scan struct {
	slot   int
	access *access
	hints  *tableHints
	target bool
	conds  []*predicate
	usage  scanUsage
}

// attentionEvery is after how many rows a scan looks whether the client gave up.
const attentionEvery = 256

func newScan(l *leaf, a *access, conds []*predicate, u scanUsage) *scan {
	return &scan{l.src.slot, a, l.hints, l.target, conds, u}
}

func (s *scan) each(e *env, next func() error) error {
	r, err := s.hints.lockRequest(e, s.target)
	if err != nil {
		return err
	}
	space := e.seekSpace(s.slot)
	empty, err := s.access.bounds(e, &r, space)
	if err != nil || empty {
		return err
	}
	r.Base = s.access.lookup || (s.target && !r.TableLock && s.access.index != nil && !s.access.index.clustered)
	s.usage.count(e, s.slot)
	cur := &space.cursor
	cur.Begin(e.x.ctx, e.tx, s.access.table.store, r)
	space.busy = true
	defer func() {
		cur.Close()
		space.busy = false
	}()
	read := int64(0)
	defer func() {
		touched := read + cur.Passed()
		if s.access.lookup {
			touched *= 2
		}
		e.x.s.rowsTouched += touched
	}()
	for n := 1; ; n++ {
		if n%attentionEvery == 0 && e.x.ctx.Err() != nil {
			return e.x.ctx.Err()
		}
		row, ok, err := cur.Next()
		if err == nil && n == 1 {
			err = s.access.current(e)
		}
		if errors.Is(err, storage.ErrIndexGone) {
			err = errStalePlan
		}
		if err != nil || !ok {
			return err
		}
		read++
		e.rows[s.slot], e.refs[s.slot] = row.Values, row.RowRef
		match, err := allTrue(e, s.conds)
		if err != nil {
			return err
		}
		if !match {
			cur.Skip()
			continue
		}
		if err := next(); err != nil {
			return err
		}
	}
}

// seekSpace is what a scan needs to run, kept for the next time: the inner side
// of a join runs once a row.
type seekSpace struct {
	cursor storage.Cursor
	prefix []sqltype.Value
	busy   bool
}

// seekSpace is the space of a slot's scan, or a new one while that scan runs.
func (e *env) seekSpace(slot int) *seekSpace {
	if e.seeks == nil {
		e.seeks = make([]*seekSpace, len(e.rows))
	}
	if s := e.seeks[slot]; s != nil && !s.busy {
		return s
	}
	e.seeks[slot] = new(seekSpace)
	return e.seeks[slot]
}

// bounds computes the range of the seek. A NULL in it matches nothing.
func (a *access) bounds(e *env, r *storage.ScanRequest, space *seekSpace) (empty bool, err error) {
	if a.index == nil {
		return false, nil
	}
	if !a.index.clustered {
		r.Index = a.index.store
	}
	r.Reverse = a.reverse
	if a.equal == 0 && a.lower == nil && a.upper == nil {
		return false, nil
	}
	prefix := space.prefix[:0]
	for _, s := range a.values {
		v, err := s.eval(e)
		if err != nil || v.IsNull() {
			return true, err
		}
		prefix = append(prefix, v)
	}
	space.prefix = prefix
	if a.equal > 0 {
		r.Lower = storage.Bound{Prefix: prefix, Inclusive: true, Set: true}
		r.Upper = r.Lower
	}
	end := func(b *rangeEnd, out *storage.Bound) (bool, error) {
		if b == nil {
			return false, nil
		}
		v, err := b.value.eval(e)
		if err != nil || v.IsNull() {
			return true, err
		}
		*out = storage.Bound{Prefix: append(prefix[:a.equal:a.equal], v), Inclusive: b.inclusive, Set: true}
		return false, nil
	}
	if empty, err = end(a.lower, &r.Lower); empty || err != nil {
		return true, err
	}
	if empty, err = end(a.upper, &r.Upper); empty || err != nil {
		return true, err
	}
	return false, nil
}

// current: once its lock is there, the table is still the one that was planned
// for. A transaction that was waited for may have changed it, or rolled such a
// change back.
func (a *access) current(e *env) error {
	c := e.x.s.engine.catalog
	if a.table.temp || c.version.Load() == e.version {
		return nil
	}
	now, _ := c.find(nameOf(a.table.schema, a.table.name)).(*tableDef)
	if now != a.table {
		return errStalePlan
	}
	return nil
}
