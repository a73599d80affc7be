package engine

import (
	"errors"
	"strings"

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
	hints, err := optimizerHints(st.OptimizerHints)
	if err != nil {
		return nil, err
	}
	parameterize := b.parameterize(st, hints)
	u := newUnit(b, lineOf(st), func(c *compiler) (*modification, error) {
		c.parameterized = parameterize()
		if err := c.pushCTEs(st.WithCtesAndXmlNamespaces); err != nil {
			return nil, err
		}
		s := st.UpdateSpecification
		return c.modify(&modifySyntax{s.Target, s.FromClause, s.WhereClause, s.TopRowFilter, s.SetClauses, s.OutputClause, s.OutputIntoClause, hints.forceOrder})
	})
	return &modifier{u, "UPDATE"}, nil
}

func (b *builder) deleteStatement(st *ast.DeleteStatement) (node, error) {
	hints, err := optimizerHints(st.OptimizerHints)
	if err != nil {
		return nil, err
	}
	parameterize := b.parameterize(st, hints)
	u := newUnit(b, lineOf(st), func(c *compiler) (*modification, error) {
		c.parameterized = parameterize()
		if err := c.pushCTEs(st.WithCtesAndXmlNamespaces); err != nil {
			return nil, err
		}
		s := st.DeleteSpecification
		return c.modify(&modifySyntax{s.Target, s.FromClause, s.WhereClause, s.TopRowFilter, nil, s.OutputClause, s.OutputIntoClause, hints.forceOrder})
	})
	return &modifier{u, "DELETE"}, nil
}

// modifySyntax is what UPDATE and DELETE have in common.
type modifySyntax struct {
	target     ast.TableReference
	from       *ast.FromClause
	where      *ast.WhereClause
	top        *ast.TopRowFilter
	sets       []ast.SetClause
	output     *ast.OutputClause
	into       *ast.OutputIntoClause
	forceOrder bool
}

func (c *compiler) modify(st *modifySyntax) (*modification, error) {
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
	if m.slot, err = c.markTarget(src, tree); err != nil {
		return nil, err
	}
	base := c.slots[m.slot]
	variable := -1
	def := base.table
	if def == nil {
		i, v, ok := c.vars.table(c.memName[m.slot])
		if !ok {
			return nil, raiseBatch(4405, 16, 1, "View or function '%s' is not updatable because the modification affects multiple base tables.", src.alias)
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
	others := sc.sources
	if m.output, err = c.output(st.output, st.into, def, !m.delete, true, others); err != nil {
		return nil, err
	}
	m.keep = m.output != nil && len(others) > 1
	p := &planner{c: c, forceOrder: st.forceOrder, topped: m.limit != nil}
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

// modifySource finds what the statement changes: an alias or table of its
// FROM, or a table of its own.
func (c *compiler) modifySource(st *modifySyntax, tree *joinTree, sc *scope) (*source, *joinTree, error) {
	name, schema := "", ""
	switch t := st.target.(type) {
	case *ast.NamedTableReference:
		name = t.SchemaObject.BaseIdentifier.Value
		if t.SchemaObject.SchemaIdentifier != nil {
			schema = t.SchemaObject.SchemaIdentifier.Value
		}
		if len(t.TableHints) > 0 && tree != nil {
			return nil, nil, notModelled("hints on the target of an UPDATE or DELETE with FROM")
		}
	case *ast.VariableTableReference:
		name = t.Variable.Name
	default:
		return nil, nil, notModelled("changing %s", syntaxName(t))
	}
	if tree == nil {
		tree, err := c.tableReference(st.target, sc)
		if err != nil {
			return nil, nil, err
		}
		return sc.sources[0], tree, nil
	}
	var found *source
	for _, s := range sc.sources {
		byName := s.table != nil && strings.EqualFold(s.table.name, name) && (schema == "" || strings.EqualFold(s.table.schema, schema))
		if (schema == "" && strings.EqualFold(s.alias, name)) || byName {
			if found != nil && strings.EqualFold(found.alias, name) {
				continue // the alias wins over a table of that name
			}
			if found != nil && byName && !strings.EqualFold(s.alias, name) {
				return nil, nil, raiseBatch(8154, 15, 1, "The table '%s' is ambiguous.", name)
			}
			found = s
		}
	}
	if found == nil {
		// a table that FROM does not name is joined with every row
		t, err := c.tableReference(st.target, sc)
		if err != nil {
			return nil, nil, err
		}
		return sc.sources[len(sc.sources)-1], innerJoin(tree, t), nil
	}
	return found, tree, nil
}

// markTarget finds the slot of the base table behind the source and tells its
// scan that its rows are to change. A CTE or derived table is looked through.
func (c *compiler) markTarget(src *source, tree *joinTree) (int, error) {
	slot := src.slot
	if src.table == nil && c.memName[slot] == "" {
		found := -1
		for _, ref := range src.columnOf {
			if !ref.ok {
				continue
			}
			if found >= 0 && ref.slot != found {
				return 0, raiseBatch(4405, 16, 1, "View or function '%s' is not updatable because the modification affects multiple base tables.", src.alias)
			}
			found = ref.slot
		}
		if found < 0 {
			return 0, raiseBatch(4406, 16, 1, "Update or insert of view or function '%s' failed because it contains a derived or constant field.", src.alias)
		}
		// a scan inside was planned already: it reads its hints when it runs
		if l := c.leaves[found]; l != nil {
			l.target = true
			if l.scan != nil {
				l.scan.target = true
			}
		}
		return found, nil
	}
	if l := c.leaves[slot]; l != nil {
		l.target = true
	}
	return slot, nil
}

func (c *compiler) setClauses(list []ast.SetClause, src *source, def *tableDef, slot int, sc *scope) ([]setColumn, error) {
	var sets []setColumn
	for _, item := range list {
		a, ok := item.(*ast.AssignmentSetClause)
		if !ok {
			return nil, notModelled("SET %s", syntaxName(item))
		}
		s := setColumn{column: -1, variable: -1}
		if a.Variable != nil {
			i, t, ok := c.vars.scalar(a.Variable.Name)
			if !ok {
				return nil, errUndeclared(a.Variable.Name)
			}
			s.variable, s.typ = i, t
		}
		if a.Column != nil {
			ids := a.Column.MultiPartIdentifier.Identifiers
			name := ids[len(ids)-1].Value
			col := -1
			for i, oc := range src.cols {
				if strings.EqualFold(oc.name, name) {
					col = i
				}
			}
			if col < 0 {
				return nil, errNoColumn(name)
			}
			if ref := src.columnOf[col]; ref.ok && ref.slot == slot {
				col = ref.column
			} else {
				return nil, raiseBatch(4406, 16, 1, "Update or insert of view or function '%s' failed because it contains a derived or constant field.", src.alias)
			}
			if def.columns[col].identity {
				return nil, raiseBatch(8102, 16, 1, "Cannot update identity column '%s'.", def.columns[col].name)
			}
			s.column = col
		}
		var err error
		if _, isDefault := a.NewValue.(*ast.DefaultLiteral); isDefault && s.column >= 0 {
			s.value, err = c.defaultOf(def.columns[s.column])
		} else {
			s.value, err = c.expression(a.NewValue, sc)
		}
		if err != nil {
			return nil, err
		}
		if op, compound := compoundOperators[a.AssignmentKind]; compound {
			var left *scalar
			if s.column >= 0 {
				left = c.columnScalar(c.slots[slot], s.column)
			} else {
				left, _ = c.variable(a.Variable.Name)
			}
			if s.value, err = c.operate(op, left, s.value); err != nil {
				return nil, err
			}
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// change is one row to change, found before the first change is made.
type change struct {
	row  storage.Row
	next []sqltype.Value
	snap snapshot
}

func (n *modifier) run(x *exec) (signal, error) {
	m, e, err := n.unit.get(x)
	if err != nil {
		return goOn, err
	}
	if err := m.target.writable(x, n.verb); err != nil {
		return goOn, err
	}
	count, res := int64(0), &results{clause: m.output}
	err = x.inTransaction(m.target.variable < 0, func(sc *statementScope) error {
		e.tx = sc.tx
		changes, err := m.find(e)
		if err != nil {
			return err
		}
		for i := range changes {
			if err := m.apply(e, &changes[i], res, n.verb); err != nil {
				return err
			}
		}
		count = int64(len(changes))
		return nil
	})
	if err != nil {
		return goOn, err
	}
	return goOn, res.finish(x, count)
}

// find collects the rows to change, each once, with U locks.
func (m *modification) find(e *env) ([]change, error) {
	var changes []change
	seen := make(map[storage.RowID]struct{})
	limit := e.x.s.set.rowCount
	stop := new(stopSignal)
	err := m.steps.each(e, func() error {
		id := e.ids[m.slot]
		if _, ok := seen[id]; ok {
			return nil
		}
		seen[id] = struct{}{}
		c := change{row: storage.Row{ID: id, Values: e.rows[m.slot]}}
		if !m.delete {
			var err error
			if c.next, err = m.newRow(e, c.row.Values); err != nil {
				return err
			}
		}
		if m.keep {
			c.snap = m.slots.save(e)
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
		m.slots.restore(e, c.snap)
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
	if err := m.target.update(e, c.row, c.next); err != nil {
		return err
	}
	return res.add(e, c.next, c.row.Values)
}
