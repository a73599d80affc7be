package engine

import (
	"strings"
)

// access is how a scan reaches a table's rows.
type access struct {
	// index is nil for a heap scan.
	index *indexDef
	table *tableDef
	// equal is how many leading key columns are bound by equality; values are
	// what they equal.
	equal  int
	values []*scalar
	// lower and upper bound the next key column.
	lower, upper *rangeEnd
	reverse      bool
	ordered      bool
	// lookup: the index lacks a column that the statement reads.
	lookup bool
	cost   float64
}

type rangeEnd struct {
	value     *scalar
	inclusive bool
}

// unique: at most one row can match.
func (a *access) unique() bool {
	return a.index != nil && a.index.unique && a.equal == len(a.index.key)
}

// The planner's rules of thumb. Only their order matters.
const (
	assumedRows      = 1e6
	filteredFraction = 0.1  // of the rows are in a filtered index
	equalFraction    = 0.01 // match one equality on a leading key column
	rangeFraction    = 0.3  // match one bound
	lookupCost       = 3.0  // of a row that the index does not cover
	sortCost         = 4.0  // of a row that must be sorted
	topFraction      = 0.01 // of the rows are read when TOP stops in order
)

// choose picks the cheapest way into a table. A hint that cannot be honoured
// is an error: 308 for an index that is not there, 8622 for one whose filter
// no literal implies.
func (p *planner) choose(l *leaf, conds []*predicate, bound slotSet) (*access, error) {
	t, h := l.src.table, l.hints
	args := l.arguments(conds, bound)
	var best *access
	consider := func(a *access) {
		if best == nil || a.cost < best.cost {
			best = a
		}
	}
	hinted := h.index != "" || h.indexID > 0
	for _, ix := range t.indexes {
		if hinted && !h.names(ix) {
			continue
		}
		if ix.disabled || (ix.filter != nil && (!p.c.filterable || !p.c.implies(ix, args))) {
			continue
		}
		consider(p.reach(t, ix, args, l))
	}
	if !hinted && t.clustered() == nil && !(h.forceSeek && best != nil && best.equal > 0) {
		consider(p.reach(t, nil, args, l))
	}
	if hinted && best == nil {
		for _, ix := range t.indexes {
			if h.names(ix) {
				if ix.disabled {
					return nil, raiseBatch(315, 16, 1, "Index \"%s\" on table \"%s\" (specified in the FROM clause) is disabled or resides in a filegroup which is not online.", ix.name, t.name)
				}
				return nil, errNoPlan()
			}
		}
		name := h.index
		if name == "" {
			return nil, raiseBatch(307, 16, 1, "Index ID %d on table '%s' (specified in the FROM clause) does not exist.", h.indexID, t.name)
		}
		return nil, raiseBatch(308, 16, 1, "Index '%s' on table '%s' (specified in the FROM clause) does not exist.", name, t.qualified())
	}
	if h.forceSeek && best.equal == 0 && best.lower == nil && best.upper == nil {
		return nil, errNoPlan()
	}
	return best, h.seeksBy(best)
}

// seeksBy holds an access to the columns of FORCESEEK (index (columns)): they lead the
// index's key, and the seek is by all of them.
func (h *tableHints) seeksBy(a *access) error {
	if len(h.seekColumns) == 0 {
		return nil
	}
	if len(h.seekColumns) > len(a.index.key) {
		return raiseBatch(365, 16, 1, "The query processor could not produce a query plan because the FORCESEEK hint on table or view '%s' specified more seek columns than the number of key columns in index '%s'.", a.table.name, a.index.name)
	}
	for i, ref := range h.seekColumns {
		if name := lastIdentifier(ref); !strings.EqualFold(name, a.table.columns[a.index.key[i].column].name) {
			return raiseBatch(362, 16, 1, "The query processor could not produce a query plan because the name '%s' in the FORCESEEK hint on table or view '%s' did not match the key column names of the index '%s'.", name, a.table.name, a.index.name)
		}
	}
	sought := a.equal
	if a.lower != nil || a.upper != nil {
		sought++
	}
	if sought < len(h.seekColumns) {
		return errNoPlan()
	}
	return nil
}

// arguments are the conditions that can bound a seek into a leaf.
func (l *leaf) arguments(conds []*predicate, bound slotSet) []sarg {
	own := slotSet(1) << l.src.slot
	var args []sarg
	for _, c := range conds {
		if !c.deps.within(bound | own) {
			continue
		}
		for _, a := range c.sargs {
			if a.column.slot == l.src.slot && (a.value == nil || !a.value.deps.has(l.src.slot)) {
				args = append(args, a)
			}
		}
	}
	return args
}

func errNoPlan() error {
	return raiseBatch(8622, 16, 1, "Query processor could not produce a query plan because of the hints defined in this query. Resubmit the query without specifying any hints and without using SET FORCEPLAN.")
}

func (h *tableHints) names(ix *indexDef) bool {
	if h.index != "" {
		return strings.EqualFold(ix.name, h.index)
	}
	return ix.id == h.indexID
}

// reach works out how far an index narrows the rows.
func (p *planner) reach(t *tableDef, ix *indexDef, args []sarg, l *leaf) *access {
	a := &access{index: ix, table: t}
	rows := float64(assumedRows)
	if ix != nil {
		if ix.filter != nil {
			rows *= filteredFraction
		}
		a.seek(ix, args)
		for range a.equal {
			rows *= equalFraction
		}
		if a.unique() {
			rows = 1
		}
		if a.lower != nil {
			rows *= rangeFraction
		}
		if a.upper != nil {
			rows *= rangeFraction
		}
	}
	a.ordered = p.satisfies(a, l.src.slot)
	if a.ordered && p.topped {
		rows *= topFraction
	}
	a.cost = rows
	if ix != nil && !ix.clustered {
		a.lookup = !ix.covers(t, l.src)
		if a.lookup {
			a.cost += rows * lookupCost
		} else {
			a.cost *= 0.9 // a narrower row
		}
	}
	if len(p.order) > 0 && !a.ordered {
		a.cost += rows * sortCost
	}
	if a.unique() {
		a.cost /= 2
	}
	return a
}

// seek binds the leading key columns.
func (a *access) seek(ix *indexDef, args []sarg) {
	for _, k := range ix.key {
		found := false
		for _, s := range args {
			if s.column.column == k.column && s.op == "=" {
				a.values = append(a.values, s.value)
				a.equal++
				found = true
				break
			}
		}
		if found {
			continue
		}
		for _, s := range args {
			if s.column.column != k.column || s.value == nil {
				continue
			}
			end := &rangeEnd{s.value, s.op == ">=" || s.op == "<="}
			isLower := s.op == ">" || s.op == ">="
			isUpper := s.op == "<" || s.op == "<="
			if k.desc {
				isLower, isUpper = isUpper, isLower
			}
			switch {
			case isLower && a.lower == nil:
				a.lower = end
			case isUpper && a.upper == nil:
				a.upper = end
			}
		}
		return
	}
}

// satisfies says whether the access delivers the order that is asked for, and
// sets reverse when it does so backwards.
func (p *planner) satisfies(a *access, slot int) bool {
	if len(p.order) == 0 || a.index == nil {
		return false
	}
	key := a.index.key
	if !a.index.clustered {
		if cl := a.table.clustered(); cl != nil && !a.index.unique {
			key = append(append([]indexColumn(nil), key...), cl.key...)
		}
	}
	at := 0
	dir, known := false, false
	for _, o := range p.order {
		if o.column.slot != slot {
			return false
		}
		for at < len(key) && at < a.equal && key[at].column != o.column.column {
			at++ // a column that is the same in every row orders nothing
		}
		if at < len(key) && key[at].column == o.column.column {
			if at >= a.equal {
				backwards := key[at].desc != o.desc
				if known && backwards != dir {
					return false
				}
				dir, known = backwards, true
			}
			at++
			continue
		}
		if a.fixes(o.column.column) {
			continue
		}
		return false
	}
	a.reverse = dir
	return true
}

// fixes: the column is bound by an equality of the seek.
func (a *access) fixes(column int) bool {
	for _, k := range a.index.key[:a.equal] {
		if k.column == column {
			return true
		}
	}
	return false
}

// covers: the index has every column that the statement uses of the source. A
// column that its filter fixes is not looked at again.
func (ix *indexDef) covers(t *tableDef, src *source) bool {
	has := ix.columns(t)
	fixed := has
	for _, f := range ix.conjuncts {
		if f.op == "=" {
			fixed.add(f.column)
		}
	}
	return src.used.within(has) && src.fixed.within(fixed)
}

// columns are the columns that an index entry holds: its key, its INCLUDE
// list and the clustered key.
func (ix *indexDef) columns(t *tableDef) columnSet {
	var set columnSet
	for _, k := range ix.key {
		set.add(k.column)
	}
	for _, c := range ix.include {
		set.add(c)
	}
	if cl := t.clustered(); cl != nil {
		for _, k := range cl.key {
			set.add(k.column)
		}
	}
	return set
}

// columnSet is a set of column ordinals; a table of more columns than bits
// counts as never covered.
type columnSet uint64

func (s *columnSet) add(column int) {
	if column >= 63 {
		*s |= 1 << 63
		return
	}
	*s |= 1 << column
}

func (s columnSet) within(all columnSet) bool { return s&^all == 0 && s&(1<<63) == 0 }
