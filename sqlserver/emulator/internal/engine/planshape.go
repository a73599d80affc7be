package engine

import (
	"slices"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// planShape is what is worth telling about a compiled statement: how it reaches
// its tables, and what kept it from a better way.
type planShape struct {
	compiled time.Time
	// kept: the plan serves other sessions too. One that names a #table does not.
	kept     bool
	accesses []*planAccess
	converts []implicitConvert
}

// planAccess is how one stored table is reached.
type planAccess struct {
	table *tableDef
	*access
	// unmatched are the filtered indexes that a parameter kept out.
	unmatched []*indexDef
}

func (a *planAccess) seeks() bool { return a.equal > 0 || a.lower != nil || a.upper != nil }

// implicitConvert is a column that a comparison must convert first, so that no
// index on it can be sought.
type implicitConvert struct {
	table  *tableDef
	column int
	to     sqltype.Type
}

// note records how a leaf is reached.
func (p *planner) note(l *leaf, a *access, conds []*predicate, bound slotSet) {
	n := &planAccess{table: l.src.table, access: a}
	if p.c.filterable {
		args := l.arguments(conds, bound)
		for _, ix := range l.src.table.indexes {
			if ix.filter != nil && !ix.disabled && !p.c.implies(ix, args) && p.c.passedOver(ix, args) {
				n.unmatched = append(n.unmatched, ix)
			}
		}
	}
	if p.c.accesses == nil {
		p.c.accesses = make(map[int]*planAccess)
	}
	p.c.accesses[l.src.slot] = n
}

// noteConvert records a comparison that converts a column. Comparing under
// another collation converts nothing.
func (c *compiler) noteConvert(col columnRef, typ, other sqltype.Type) {
	to := sqltype.Common(typ, other)
	if to.Kind == typ.Kind || col.slot >= len(c.slots) || c.slots[col.slot].table == nil {
		return
	}
	t := c.slots[col.slot].table
	if !slices.ContainsFunc(t.indexes, func(ix *indexDef) bool { return ix.key[0].column == col.column }) {
		return
	}
	if isLong(to) {
		to.Length = typ.Length
	}
	n := implicitConvert{t, col.column, to}
	if !slices.Contains(c.converts, n) {
		c.converts = append(c.converts, n)
	}
}

// shapeOf gathers the shape once the unit is compiled.
func (c *compiler) shapeOf() *planShape {
	s := &planShape{compiled: time.Now().UTC(), kept: !c.sessionOnly, converts: c.converts}
	for slot := range c.slots {
		if a := c.accesses[slot]; a != nil {
			s.accesses = append(s.accesses, a)
		}
	}
	return s
}
