package engine

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// planner turns a join tree and its conditions into nested loops. It has no
// statistics: rules decide, so that a plan is the same whatever the data.
type planner struct {
	c *compiler
	// order is what ORDER BY asks of the first source, if it can give it.
	order []orderKey
	// topped: the query stops early, so an order for free is worth much.
	topped bool
	// ordered is set when the plan delivers order.
	ordered bool
}

type orderKey struct {
	column columnRef
	desc   bool
}

// step is an operator of a plan: it calls next for each row combination it
// finds, with its slots filled.
type step interface {
	each(e *env, next func() error) error
}

// plan plans a tree. conds are the conditions that may be applied within;
// what could not be used comes back.
func (p *planner) plan(t *joinTree, conds []*predicate, bound slotSet) (step, []*predicate, error) {
	switch {
	case t == nil:
		return once{}, conds, nil
	case t.leaf != nil:
		return p.planLeaf(t.leaf, conds, bound)
	case t.outer:
		return p.planOuter(t, conds, bound)
	}
	var items []*joinTree
	hinted := p.c.hints.forceOrder
	flatten(t, &items, &conds, &hinted)
	var chain []step
	first := true
	for len(items) > 0 {
		i := 0
		if !hinted {
			i = p.pick(items, conds, bound, first)
		}
		item := items[i]
		items = append(items[:i:i], items[i+1:]...)
		sub := p
		if !first {
			sub = &planner{c: p.c}
		}
		s, rest, err := sub.plan(item, conds, bound)
		if err != nil {
			return nil, nil, err
		}
		chain, conds = append(chain, s), rest
		bound |= item.slots
		first = false
	}
	return joinSteps(chain), conds, nil
}

// flatten gathers the parts of inner joins and their conditions.
func flatten(t *joinTree, items *[]*joinTree, conds *[]*predicate, hinted *bool) {
	if t.leaf != nil || t.outer {
		*items = append(*items, t)
		return
	}
	*hinted = *hinted || t.hinted
	flatten(t.left, items, conds, hinted)
	flatten(t.right, items, conds, hinted)
	*conds = append(*conds, t.on...)
}

// pick chooses the next source: one that can be sought by what is bound
// already, else rows that come whole, else the first as written.
func (p *planner) pick(items []*joinTree, conds []*predicate, bound slotSet, first bool) int {
	best, bestRank := -1, 0
	for i, item := range items {
		if !item.needs.within(bound | item.slots) {
			continue
		}
		rank := 1
		switch {
		case item.leaf == nil:
		case item.leaf.rows != nil:
			rank = 3
		default:
			a, err := p.choose(item.leaf, conds, bound)
			if err == nil && a != nil && a.equal > 0 {
				rank = 2
				if !first && (a.unique() || a.equal == len(a.index.key)) {
					rank = 4
				}
			}
		}
		if best < 0 || rank > bestRank {
			best, bestRank = i, rank
		}
	}
	return max(best, 0)
}

func (p *planner) planOuter(t *joinTree, conds []*predicate, bound slotSet) (step, []*predicate, error) {
	// conditions on the left side alone may go below; those on the right side
	// must see the NULLs that the join makes
	var below, above []*predicate
	for _, c := range conds {
		if c.deps.within(bound | t.left.slots) {
			below = append(below, c)
		} else {
			above = append(above, c)
		}
	}
	left, rest, err := p.plan(t.left, below, bound)
	if err != nil {
		return nil, nil, err
	}
	sub := &planner{c: p.c}
	right, restOn, err := sub.plan(t.right, append([]*predicate(nil), t.on...), bound|t.left.slots)
	if err != nil {
		return nil, nil, err
	}
	right = filterStep(right, restOn)
	return &outerStep{left, right, slotList(t.right.slots)}, append(rest, above...), nil
}

func slotList(s slotSet) []int {
	var out []int
	for i := range maxSlots {
		if s.has(i) {
			out = append(out, i)
		}
	}
	return out
}

// planLeaf plans one source and applies every condition that can be by now.
func (p *planner) planLeaf(l *leaf, conds []*predicate, bound slotSet) (step, []*predicate, error) {
	own := slotSet(1) << l.src.slot
	var before, here, rest []*predicate
	for _, c := range conds {
		switch {
		case c.deps.within(bound):
			before = append(before, c)
		case c.deps.within(bound | own):
			here = append(here, c)
		default:
			rest = append(rest, c)
		}
	}
	var s step
	if l.rows != nil {
		s = filterStep(l.rows, here)
	} else {
		a, err := p.choose(l, here, bound)
		if err != nil {
			return nil, nil, err
		}
		p.ordered = len(p.order) > 0 && a.ordered
		l.scan = newScan(l, a, here, p.c.engine.usage.scan(a))
		p.note(l, a, here, bound)
		s = l.scan
	}
	if len(before) > 0 {
		s = &gate{before, s}
	}
	return s, rest, nil
}

// once is a FROM clause that is not there: one row.
type once struct{}

func (once) each(_ *env, next func() error) error { return next() }

// gate tests conditions that do not depend on the source before it is opened.
type gate struct {
	conds []*predicate
	inner step
}

func (g *gate) each(e *env, next func() error) error {
	ok, err := allTrue(e, g.conds)
	if err != nil || !ok {
		return err
	}
	return g.inner.each(e, next)
}

func allTrue(e *env, conds []*predicate) (bool, error) {
	for _, c := range conds {
		t, err := c.eval(e)
		if err != nil || t != isTrue {
			return false, err
		}
	}
	return true, nil
}

// filter drops rows.
type filter struct {
	inner step
	conds []*predicate
}

func filterStep(s step, conds []*predicate) step {
	if len(conds) == 0 {
		return s
	}
	return &filter{s, conds}
}

func (f *filter) each(e *env, next func() error) error {
	return f.inner.each(e, func() error {
		ok, err := allTrue(e, f.conds)
		if err != nil || !ok {
			return err
		}
		return next()
	})
}

// nested runs the right side for each row of the left.
type nested struct{ left, right step }

func joinSteps(chain []step) step {
	s := chain[len(chain)-1]
	for i := len(chain) - 2; i >= 0; i-- {
		s = &nested{chain[i], s}
	}
	return s
}

func (n *nested) each(e *env, next func() error) error {
	return n.left.each(e, func() error { return n.right.each(e, next) })
}

// outerStep is LEFT JOIN and OUTER APPLY.
type outerStep struct {
	left, right step
	slots       []int
}

func (o *outerStep) each(e *env, next func() error) error {
	return o.left.each(e, func() error {
		matched := false
		err := o.right.each(e, func() error {
			matched = true
			return next()
		})
		if err != nil || matched {
			return err
		}
		for _, s := range o.slots {
			e.rows[s] = nil
		}
		return next()
	})
}

// fixedRows is a rowset whose rows are computed by expressions: VALUES.
type fixedRows struct {
	slot int
	rows [][]*scalar
}

func (f *fixedRows) each(e *env, next func() error) error {
	for _, exprs := range f.rows {
		row := make([]sqltype.Value, len(exprs))
		for i, x := range exprs {
			v, err := x.eval(e)
			if err != nil {
				return err
			}
			row[i] = v
		}
		e.rows[f.slot] = row
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}
