package engine

import (
	"errors"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// subquery makes a query a table source of sc. parent is what it may be
// correlated with.
func (c *compiler) subquery(x ast.QueryExpression, as string, columns []*ast.Identifier, parent, sc *scope) (*joinTree, error) {
	level := c.level
	c.level = nil // columns inside are not grouped by the query around
	applying := c.applying
	c.applying, c.applied = false, applying
	q, err := c.unordered(x, parent)
	c.level, c.applying = level, applying
	if err != nil {
		return nil, err
	}
	cols := append([]outCol(nil), q.cols...)
	if err := nameColumns(cols, columns, as); err != nil {
		return nil, err
	}
	src, err := c.newSource(as, "", cols)
	if err != nil {
		return nil, err
	}
	src.columnOf = q.refs
	if spec, ok := x.(*ast.QuerySpecification); ok {
		src.grouped = spec.GroupByClause != nil || strings.EqualFold(spec.UniqueRowFilter, "Distinct") || hasAggregate(spec)
		src.joined = spec.FromClause != nil && joins(spec.FromClause.TableReferences)
	}
	sc.sources = append(sc.sources, src)
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: &queryRows{src.slot, q.each}}, q.deps), nil
}

func joins(from []ast.TableReference) bool {
	if len(from) != 1 {
		return true
	}
	switch ref := from[0].(type) {
	case *ast.QualifiedJoin, *ast.UnqualifiedJoin:
		return true
	case *ast.JoinParenthesisTableReference:
		return joins([]ast.TableReference{ref.Join})
	}
	return false
}

// nameColumns applies a column list, and refuses a column without a name.
func nameColumns(cols []outCol, names []*ast.Identifier, as string) error {
	switch {
	case len(names) == 0:
	case len(names) < len(cols):
		return raiseBatch(8158, 15, 1, "'%s' has more columns than were specified in the column list.", as)
	case len(names) > len(cols):
		return raiseBatch(8159, 15, 1, "'%s' has fewer columns than were specified in the column list.", as)
	}
	for i := range cols {
		if len(names) > 0 {
			cols[i].name = names[i].Value
		}
		if cols[i].name == "" {
			return raiseBatch(8155, 16, 2, "No column name was specified for column %d of '%s'.", i+1, as)
		}
		for _, earlier := range cols[:i] {
			if strings.EqualFold(earlier.name, cols[i].name) {
				return raiseBatch(8156, 16, 1, "The column '%s' was specified multiple times for '%s'.", cols[i].name, as)
			}
		}
	}
	return nil
}

type queryRows struct {
	slot int
	rows rowFunc
}

func (q *queryRows) each(e *env, next func() error) error {
	return q.rows(e, func(row []sqltype.Value) error {
		e.rows[q.slot] = row
		return next()
	})
}

// inlineTable is (VALUES (…), (…)) AS v (a, b).
func (c *compiler) inlineTable(ref *ast.InlineDerivedTable, sc *scope) (*joinTree, error) {
	parent := c.lateral(sc)
	outer := c.touched
	c.touched = 0
	rows, types, err := c.valueRows(ref.RowValues, parent)
	if err != nil {
		return nil, err
	}
	needs := c.touched
	c.touched |= outer
	cols := make([]outCol, len(types))
	for i, t := range types {
		cols[i] = outCol{typ: t, nullable: true}
	}
	if err := nameColumns(cols, ref.Columns, alias(ref.Alias)); err != nil {
		return nil, err
	}
	src, err := c.newSource(alias(ref.Alias), "", cols)
	if err != nil {
		return nil, err
	}
	sc.sources = append(sc.sources, src)
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: &fixedRows{src.slot, rows}}, needs), nil
}

// valueRows compiles the rows of VALUES and brings each column to one type.
func (c *compiler) valueRows(list []*ast.RowValue, sc *scope) ([][]*scalar, []sqltype.Type, error) {
	var rows [][]*scalar
	var types []sqltype.Type
	for _, r := range list {
		row, err := c.expressions(r.ColumnValues, sc)
		if err != nil {
			return nil, nil, err
		}
		if types == nil {
			types = make([]sqltype.Type, len(row))
		}
		if len(row) != len(types) {
			return nil, nil, errValueRows()
		}
		for i, s := range row {
			types[i] = sqltype.Common(types[i], s.typ)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = convertTo(row[i], types[i])
		}
	}
	for i, t := range types {
		if t.Kind == sqltype.Null {
			types[i] = intType
		}
	}
	return rows, types, nil
}

func errValueRows() error {
	return raiseBatch(10709, 15, 1, "The number of columns for each row in a table value constructor must be the same.")
}

// lateral is what a table source in FROM sees: its siblings only under APPLY.
func (c *compiler) lateral(sc *scope) *scope {
	if c.applying {
		return sc
	}
	return sc.parent
}

// one runs a query that must give at most one row.
func (q *query) one(e *env) (row []sqltype.Value, err error) {
	err = q.each(e, func(r []sqltype.Value) error {
		if row != nil {
			return raise(512, 16, 1, "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.")
		}
		row = r
		return nil
	})
	return row, err
}

func (c *compiler) nestedQuery(x ast.QueryExpression, sc *scope) (*query, error) {
	if c.checking {
		return nil, raiseBatch(1046, 15, 1, "Subqueries are not allowed in this context. Only scalar expressions are allowed.")
	}
	return c.unordered(x, sc)
}

// unordered compiles a query within another: its ORDER BY may only say which rows
// TOP or OFFSET take (sql-docs, "ORDER BY clause").
func (c *compiler) unordered(x ast.QueryExpression, parent *scope) (*query, error) {
	var order *ast.OrderByClause
	limited := false
	switch x := x.(type) {
	case *ast.QuerySpecification:
		order, limited = x.OrderByClause, x.TopRowFilter != nil || x.OffsetClause != nil || x.ForClause != nil
	case *ast.BinaryQueryExpression:
		order = x.OrderByClause
	}
	if order != nil && !limited {
		return nil, raiseBatch(1033, 15, 1, "The ORDER BY clause is invalid in views, inline functions, derived tables, subqueries, and common table expressions, unless TOP, OFFSET or FOR XML is also specified.")
	}
	if takesSequence(x, false) {
		return nil, errSequenceNested()
	}
	q, err := c.query(x, parent)
	if err != nil {
		return nil, err
	}
	if len(q.assign) > 0 {
		return nil, errSyntax("=")
	}
	return q, q.collated()
}

func (c *compiler) scalarSubquery(x *ast.ScalarSubquery, sc *scope) (*scalar, error) {
	q, err := c.nestedQuery(x.QueryExpression, sc)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != 1 {
		return nil, errOneColumn()
	}
	return &scalar{
		typ: q.cols[0].typ, deps: q.deps, reads: true, strength: implicitCollation,
		eval: func(e *env) (sqltype.Value, error) {
			row, err := q.one(e)
			if err != nil || row == nil {
				return sqltype.Value{}, err
			}
			return row[0], nil
		},
	}, nil
}

func errOneColumn() error {
	return raiseBatch(116, 16, 1, "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.")
}

func (c *compiler) exists(x *ast.ExistsPredicate, sc *scope) (*predicate, error) {
	q, err := c.nestedQuery(x.Subquery, sc)
	if err != nil {
		return nil, err
	}
	return &predicate{
		deps: q.deps, reads: true,
		eval: func(e *env) (tri, error) {
			found := isFalse
			stop := new(stopSignal)
			err := q.each(e, func([]sqltype.Value) error {
				found = isTrue
				return stop
			})
			if errors.Is(err, stop) {
				err = nil
			}
			return found, err
		},
	}, nil
}

func (c *compiler) inSubquery(x *ast.BooleanInExpression, v *scalar, sc *scope) (*predicate, error) {
	q, err := c.nestedQuery(x.Subquery, sc)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != 1 {
		return nil, errOneColumn()
	}
	item := &scalar{typ: q.cols[0].typ, strength: implicitCollation}
	pair, err := operandsOf(v, item, "IN")
	if err != nil {
		return nil, err
	}
	left, compare := pair.a.eval, pair.compare
	rightType := q.cols[0].typ
	if !rightType.Kind.IsText() || !v.typ.Kind.IsText() {
		rightType = sqltype.Common(v.typ, q.cols[0].typ)
	}
	negate := x.NotDefined
	return &predicate{
		deps: q.deps | v.deps, reads: true,
		eval: func(e *env) (tri, error) {
			a, err := left(e)
			if err != nil {
				return isUnknown, err
			}
			result := isFalse
			stop := new(stopSignal)
			err = q.each(e, func(row []sqltype.Value) error {
				b, err := sqltype.Convert(row[0], rightType, 0)
				switch {
				case err != nil:
					return err
				case a.IsNull() || b.IsNull():
					result = isUnknown
				case compare(a, b) == 0:
					result = isTrue
					return stop
				}
				return nil
			})
			if err != nil && !errors.Is(err, stop) {
				return isUnknown, err
			}
			if negate {
				return result.not(), nil
			}
			return result, nil
		},
	}, nil
}
