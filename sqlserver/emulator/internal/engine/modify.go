package engine

import (
	"errors"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// modification is a compiled UPDATE or DELETE: the rows to change, and for an
// UPDATE what to change them to.
type modification struct {
	target *target
	// slot is where the target's current row is while the rows are found.
	slot  int
	steps step
	limit *limit
	sets  []setColumn
	// slots are the statement's, kept with each row when OUTPUT reads them.
	slots  slotRange
	output *outputClause
	keep   bool
	delete bool
	event  triggerEvents
}

// columns are what SET names, as a set.
func (m *modification) columns() (set columnSet) {
	for _, s := range m.sets {
		if s.column >= 0 {
			set.add(s.column)
		}
	}
	return set
}

// assigned are the columns that SET names.
func (m *modification) assigned() (columns []int) {
	if !m.target.def.fires(m.event) {
		return nil
	}
	for _, s := range m.sets {
		if s.column >= 0 {
			columns = append(columns, s.column)
		}
	}
	return columns
}

// setColumn is one SET: a column, a variable, or both.
type setColumn struct {
	column   int // -1 for a variable alone
	variable int // -1 for a column alone
	typ      sqltype.Type
	value    *scalar
}

type modifier struct {
	unit *unit[*modification]
	verb string
}

func (b *builder) updateStatement(st *ast.UpdateStatement) (node, error) {
	s := st.UpdateSpecification
	return b.modifying("UPDATE", st, st.OptimizerHints, st.WithCtesAndXmlNamespaces,
		&modifySyntax{s.Target, s.FromClause, s.WhereClause, s.TopRowFilter, s.SetClauses, s.OutputClause, s.OutputIntoClause})
}

func (b *builder) deleteStatement(st *ast.DeleteStatement) (node, error) {
	s := st.DeleteSpecification
	return b.modifying("DELETE", st, st.OptimizerHints, st.WithCtesAndXmlNamespaces,
		&modifySyntax{s.Target, s.FromClause, s.WhereClause, s.TopRowFilter, nil, s.OutputClause, s.OutputIntoClause})
}

func (b *builder) modifying(verb string, st ast.Statement, list []ast.OptimizerHintBase, ctes *ast.WithCtesAndXmlNamespaces, syntax *modifySyntax) (node, error) {
	hints, err := optimizerHints(list)
	if err != nil {
		return nil, err
	}
	parameterize := b.parameterize(st, hints)
	u := newUnit(b, lineOf(st), func(c *compiler) (*modification, error) {
		c.parameterized, c.hints = parameterize(), hints
		if err := c.pushCTEs(ctes); err != nil {
			return nil, err
		}
		return c.modify(syntax)
	})
	return &modifier{u, verb}, nil
}

// modifySyntax is what UPDATE and DELETE have in common.
type modifySyntax struct {
	target ast.TableReference
	from   *ast.FromClause
	where  *ast.WhereClause
	top    *ast.TopRowFilter
	sets   []ast.SetClause
	output *ast.OutputClause
	into   *ast.OutputIntoClause
}

func (c *compiler) modify(st *modifySyntax) (*modification, error) {
	switch {
	case aggregates(st.sets):
		return nil, raiseBatch(157, 15, 1, "An aggregate may not appear in the set list of an UPDATE statement.")
	case takesSequence(st.where, false), takesSequence(st.top, false):
		return nil, errSequenceClause()
	case st.top != nil && takesSequence(st.sets, false):
		return nil, errSequenceLimit()
	case takesSequence(st.sets, false) && !takesSequence(st.sets, true):
		return nil, errSequenceOver()
	}
	c.reads = true
	sc := &scope{parent: &scope{}}
	var tree *joinTree
	var err error
	if st.from != nil {
		if tree, err = c.fromClause(st.from.TableReferences, sc); err != nil {
			return nil, err
		}
	}
	src, tree, err := c.modifySource(st, tree, sc)
	if err != nil {
		return nil, err
	}
	m := &modification{delete: st.sets == nil}
	if m.slot, err = c.markTarget(src, m.delete); err != nil {
		return nil, err
	}
	base := c.slots[m.slot]
	variable := -1
	def := base.table
	if def == nil {
		i, v, ok := c.vars.table(c.memName[m.slot])
		if !ok {
			return nil, errSeveralTables(src.alias)
		}
		if v.readOnly {
			return nil, raiseBatch(10700, 16, 1, "The table-valued parameter \"%s\" is READONLY and cannot be modified.", v.name)
		}
		variable, def = i, v.def
	}
	if !m.delete {
		if m.sets, err = c.setClauses(st.sets, src, def, m.slot, sc); err != nil {
			return nil, err
		}
	}
	var conds []*predicate
	if st.where != nil {
		if st.where.Cursor != nil {
			return nil, notModelled("WHERE CURRENT OF")
		}
		if conds, err = c.conjuncts(st.where.SearchCondition, sc); err != nil {
			return nil, err
		}
	}
	if m.limit, err = c.limit(st.top, nil, sc); err != nil {
		return nil, err
	}
	check, err := c.newSource(def.name, def.schema, def.outCols())
	if err != nil {
		return nil, err
	}
	if m.target, err = c.newTarget(def, variable, check); err != nil {
		return nil, err
	}
	m.target.usage = c.engine.usage.updates(def, m.sets)
	others := sc.sources
	m.event = onUpdate
	if m.delete {
		m.event = onDelete
	}
	base.written = true
	c.writeNeed(def, map[bool]string{false: "UPDATE", true: "DELETE"}[m.delete], m.columns())
	if m.output, err = c.output(st.output, st.into, m.target, m.event, others); err != nil {
		return nil, err
	}
	m.keep = m.output != nil && len(others) > 1
	p := &planner{c: c, topped: m.limit != nil}
	s, rest, err := p.plan(tree, conds, 0)
	if err != nil {
		return nil, err
	}
	m.steps = filterStep(s, rest)
	if m.limit != nil {
		m.steps = m.limit.over(m.steps)
	}
	m.slots = slotRange{0, len(c.slots)}
	return m, nil
}

// change is one row to change, found before the first change is made.
type change struct {
	row  storage.Row
	next []sqltype.Value
	snap *snapshot // where OUTPUT needs it
	// vacated says that the row is gone from its old keys and not yet at the new.
	vacated bool
}

func (n *modifier) run(x *exec) (signal, error) {
	m, e, err := n.unit.get(x)
	if err != nil {
		return goOn, err
	}
	if err := m.target.writable(x, n.verb); err != nil {
		return goOn, err
	}
	res := &results{clause: m.output}
	count, err := x.change(m.target, m.event, m.assigned(), res, func(sc *statementScope) (int64, error) {
		e.tx = sc.tx
		changes, err := m.find(e)
		if err != nil {
			return 0, err
		}
		m.target.count()
		return int64(len(changes)), m.target.whole(e, func() error {
			if err := m.vacate(e, changes); err != nil {
				return err
			}
			for i := range changes {
				if err := m.apply(e, &changes[i], res, n.verb); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return goOn, err
	}
	return goOn, res.finish(x, count)
}

// rowSet holds rows. As long as they come in ascending order, which is how
// scans mostly bring them, their last one is enough to know.
type rowSet struct {
	ascending []storage.RowID
	all       map[storage.RowID]struct{}
}

// add returns false for a row that is in the set already.
func (s *rowSet) add(id storage.RowID) bool {
	if n := len(s.ascending); s.all == nil && (n == 0 || id > s.ascending[n-1]) {
		s.ascending = append(s.ascending, id)
		return true
	}
	if s.all == nil {
		s.all = make(map[storage.RowID]struct{}, 2*len(s.ascending))
		for _, id := range s.ascending {
			s.all[id] = struct{}{}
		}
		s.ascending = nil
	}
	before := len(s.all)
	s.all[id] = struct{}{}
	return len(s.all) > before
}

// find collects the rows to change, each once, with U locks.
func (m *modification) find(e *env) ([]change, error) {
	var changes []change
	seen := rowSet{}
	limit := e.x.s.set.rowCount
	stop := new(stopSignal)
	err := m.steps.each(e, func() error {
		if e.rows[m.slot] == nil {
			return nil // the missing side of an outer join
		}
		ref := e.refs[m.slot]
		if !seen.add(ref.ID) {
			return nil
		}
		c := change{row: storage.Row{RowRef: ref, Values: e.rows[m.slot]}}
		if !m.delete {
			var err error
			if c.next, err = m.newRow(e, c.row.Values); err != nil {
				return err
			}
		}
		if m.keep {
			snap := m.slots.save(e)
			c.snap = &snap
		}
		changes = append(changes, c)
		if int64(len(changes)) == limit {
			return stop
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return changes, err
}

// newRow computes SET for the current row.
func (m *modification) newRow(e *env, old []sqltype.Value) ([]sqltype.Value, error) {
	row := append([]sqltype.Value(nil), old...)
	for _, s := range m.sets {
		v, err := s.value.eval(e)
		if err != nil {
			return nil, err
		}
		if s.column >= 0 {
			if v, err = m.target.store(s.column, v); err != nil {
				return nil, err
			}
			row[s.column] = v
		}
		if s.variable >= 0 {
			if e.x.vars[s.variable], err = sqltype.Convert(v, s.typ, 0); err != nil {
				return nil, err
			}
		}
	}
	return row, nil
}

func (m *modification) apply(e *env, c *change, res *results, verb string) error {
	if m.keep {
		m.slots.restore(e, *c.snap)
	}
	if m.delete {
		if err := m.target.remove(e, c.row); err != nil {
			return err
		}
		return res.add(e, nil, c.row.Values)
	}
	if err := m.target.check(e, c.next, verb); err != nil {
		return err
	}
	var err error
	if c.vacated {
		err = m.target.insert(e, c.next)
	} else {
		err = m.target.update(e, c.row, c.next)
	}
	if err != nil {
		return err
	}
	return res.add(e, c.next, c.row.Values)
}

// vacate deletes the rows of an UPDATE that move to other unique keys, so that one
// may take the key that another one leaves, whatever their order: SQL Server splits
// such changes into deletes and inserts and sorts the deletes first
// (learn.microsoft.com/archive/blogs/craigfr/maintaining-unique-indexes).
func (m *modification) vacate(e *env, changes []change) error {
	if m.delete || len(changes) < 2 {
		return nil
	}
	for i := range changes {
		c := &changes[i]
		if c.vacated = m.target.rekeys(e, c.row.Values, c.next); !c.vacated {
			continue
		}
		if err := m.target.remove(e, c.row); err != nil {
			return err
		}
	}
	return nil
}
