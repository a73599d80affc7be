package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// modifySource finds what the statement changes: an alias or table of its
// FROM, or a table of its own.
func (c *compiler) modifySource(st *modifySyntax, tree *joinTree, sc *scope) (*source, *joinTree, error) {
	name, schema := "", ""
	switch t := st.target.(type) {
	case *ast.NamedTableReference:
		if c.isTransition(t.SchemaObject) {
			return nil, nil, errTransition()
		}
		if c.engine.exists(viewKey(t.SchemaObject)) {
			return nil, nil, errSystemCatalog()
		}
		name = t.SchemaObject.BaseIdentifier.Value
		if t.SchemaObject.SchemaIdentifier != nil {
			schema = t.SchemaObject.SchemaIdentifier.Value
		}
		if _, err := c.targetHints(t.TableHints, "UPDATE or DELETE"); err != nil {
			return nil, nil, err
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
func (c *compiler) markTarget(src *source, deletes bool) (int, error) {
	slot := src.slot
	if src.table == nil && c.memName[slot] == "" {
		switch {
		case src.grouped:
			return 0, raiseBatch(4403, 16, 1, "Cannot update the view or function '%s' because it contains aggregates, or a DISTINCT or GROUP BY clause, or PIVOT or UNPIVOT operator.", src.alias)
		case src.joined && deletes:
			return 0, errSeveralTables(src.alias)
		}
		found := -1
		for _, ref := range src.columnOf {
			if !ref.ok {
				continue
			}
			if found >= 0 && ref.slot != found {
				return 0, errSeveralTables(src.alias)
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

func errSeveralTables(name string) error {
	return raiseBatch(4405, 16, 1, "View or function '%s' is not updatable because the modification affects multiple base tables.", name)
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
			if parts := identifiers(a.Column.MultiPartIdentifier); len(parts) > 1 && !src.called(parts[:len(parts)-1]) {
				return nil, errUnbound(strings.Join(parts, "."))
			}
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
			s.value, err = c.defaultOf(def, def.columns[s.column])
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
		to := s.typ
		if s.column >= 0 {
			if slices.ContainsFunc(sets, func(earlier setColumn) bool { return earlier.column == s.column }) {
				return nil, errColumnTwice(def.columns[s.column].name)
			}
			to = def.columns[s.column].typ
		}
		if err := implicitly(s.value.typ, to); err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, nil
}
