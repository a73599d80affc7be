package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// indexUsage counts how statements used an index or heap, as
// sys.dm_db_index_usage_stats does: once an execution, whatever the number of
// rows.
type indexUsage struct{ seeks, scans, lookups, updates useCount }

// useCount is a count and when it last grew, in nanoseconds since 1970; 0 is
// never.
type useCount struct{ n, last atomic.Int64 }

func (c *useCount) add() {
	c.n.Add(1)
	c.last.Store(time.Now().UnixNano())
}

// when is nil for never.
func (c *useCount) when() any {
	if n := c.last.Load(); n != 0 {
		return time.Unix(0, n).UTC()
	}
	return nil
}

// usages are the counters of every index that a plan has named. Ids are never
// used again, so a definition's successors share them.
type usages struct {
	mu    sync.RWMutex
	byKey map[usageKey]*indexUsage
}

type usageKey struct {
	table int32
	index int
}

func (u *usages) find(k usageKey) *indexUsage {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.byKey[k]
}

// empty sets the counters back. Plans keep theirs, so they are not replaced.
func (u *usages) empty() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, use := range u.byKey {
		for _, c := range []*useCount{&use.seeks, &use.scans, &use.lookups, &use.updates} {
			c.n.Store(0)
			c.last.Store(0)
		}
	}
}

// of is nil for a #table: it is in another database.
func (u *usages) of(t *tableDef, ix *indexDef) *indexUsage {
	if t.temp {
		return nil
	}
	k := usageKey{table: t.id}
	if ix != nil {
		k.index = ix.id
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil {
		u.byKey = make(map[usageKey]*indexUsage)
	}
	if u.byKey[k] == nil {
		u.byKey[k] = &indexUsage{}
	}
	return u.byKey[k]
}

// scanUsage are the counters of one way into a table.
type scanUsage struct{ read, lookup *useCount }

func (u *usages) scan(a *access) scanUsage {
	own := u.of(a.table, a.index)
	if own == nil {
		return scanUsage{}
	}
	s := scanUsage{read: &own.scans}
	if a.equal > 0 || a.lower != nil || a.upper != nil {
		s.read = &own.seeks
	}
	if a.lookup {
		s.lookup = &u.of(a.table, a.table.clustered()).lookups
	}
	return s
}

// count counts once for each execution of a statement.
func (s scanUsage) count(e *env, slot int) {
	if s.read == nil || e.opened.has(slot) {
		return
	}
	e.opened |= 1 << slot
	s.read.add()
	if s.lookup != nil {
		s.lookup.add()
	}
}

// updates are the counters of the indexes that a statement keeps up: all of
// them, or for an UPDATE those that hold or filter by a column that it sets.
func (u *usages) updates(t *tableDef, sets []setColumn) []*useCount {
	if t.temp || t.store == nil {
		return nil
	}
	var list []*useCount
	if t.clustered() == nil {
		list = append(list, &u.of(t, nil).updates)
	}
	for _, ix := range t.indexes {
		if ix.disabled {
			continue
		}
		touches := func(s setColumn) bool { return s.column >= 0 && ix.touches(s.column) }
		if sets == nil || ix.clustered || slices.ContainsFunc(sets, touches) {
			list = append(list, &u.of(t, ix).updates)
		}
	}
	return list
}

// touches: a change of the column changes what the index holds.
func (ix *indexDef) touches(column int) bool {
	return slices.ContainsFunc(ix.key, func(k indexColumn) bool { return k.column == column }) ||
		slices.Contains(ix.include, column) ||
		slices.ContainsFunc(ix.conjuncts, func(f filterPart) bool { return f.column == column })
}

// count says that a statement writes the target.
func (t *target) count() {
	for _, c := range t.usage {
		c.add()
	}
}
