package engine

import (
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// queryLevel is a query under compilation: what its select list may hold.
type queryLevel struct {
	parent *queryLevel
	sc     *scope
	// group is set for a query with GROUP BY or aggregates.
	group *grouping
	// grouped: sources may be named only through the group from here on.
	grouped        bool
	windowsAllowed bool
	window         *windowing
	// applied: the query is the right side of an APPLY.
	applied bool
	// clause is the one being compiled: "", HAVING or ORDER BY.
	clause string
}

// grouping is GROUP BY: its keys, then the aggregates, are the columns of a
// slot of their own.
type grouping struct {
	src  *source
	keys []groupKey
	aggs []*aggregate
}

type groupKey struct {
	value *scalar
	text  string
}

// startGrouping compiles GROUP BY, and opens the group slot of a query that
// has it or any aggregate.
func (c *compiler) startGrouping(x *ast.QuerySpecification, level *queryLevel) error {
	if x.GroupByClause == nil && x.HavingClause == nil && !hasAggregate(x) {
		return nil
	}
	g := &grouping{}
	if gb := x.GroupByClause; gb != nil {
		if gb.All || (gb.GroupByOption != "" && gb.GroupByOption != "None") {
			return notModelled("GROUP BY ALL, CUBE and ROLLUP")
		}
		for _, spec := range gb.GroupingSpecifications {
			e, ok := spec.(*ast.ExpressionGroupingSpecification)
			if !ok {
				return notModelled("the grouping %s", syntaxName(spec))
			}
			if aggregates(e.Expression) || queries(e.Expression) {
				return raiseBatch(144, 15, 1, "Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.")
			}
			s, err := c.expression(e.Expression, level.sc)
			if err != nil {
				return err
			}
			if s.constant {
				return raiseBatch(164, 15, 1, "Each GROUP BY expression must contain at least one column that is not an outer reference.")
			}
			g.keys = append(g.keys, groupKey{s, syntaxText(e.Expression)})
		}
	}
	cols := make([]outCol, len(g.keys))
	for i, k := range g.keys {
		cols[i] = outCol{typ: k.value.typ, nullable: !k.value.notNull}
	}
	src, err := c.newSource("", "", cols)
	if err != nil {
		return err
	}
	g.src = src
	level.group, level.grouped = g, true
	return nil
}

// groupedColumn is a column, or the group key that it is when the query is
// grouped.
func (c *compiler) groupedColumn(src *source, i int, parts []string) (*scalar, error) {
	for l := c.level; l != nil; l = l.parent {
		if !l.grouped || !l.owns(src) {
			continue
		}
		for n, k := range l.group.keys {
			if col := k.value.column; col != nil && col.slot == src.slot && col.column == i {
				return c.columnScalar(l.group.src, n), nil
			}
		}
		return nil, l.notGrouped(src.alias + "." + parts[len(parts)-1])
	}
	return c.columnScalar(src, i), nil
}

func (l *queryLevel) notGrouped(column string) error {
	switch l.clause {
	case "HAVING":
		return raiseBatch(8121, 16, 1, "Column '%s' is invalid in the HAVING clause because it is not contained in either an aggregate function or the GROUP BY clause.", column)
	case "ORDER BY":
		return raiseBatch(8127, 16, 1, "Column \"%s\" is invalid in the ORDER BY clause because it is not contained in either an aggregate function or the GROUP BY clause.", column)
	}
	return raiseBatch(8120, 16, 1, "Column '%s' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.", column)
}

func (l *queryLevel) owns(src *source) bool {
	for _, s := range l.sc.sources {
		if s == src {
			return true
		}
	}
	return false
}

// grouped finds an expression that GROUP BY names as a whole.
func (c *compiler) grouped(x ast.ScalarExpression, sc *scope) (*scalar, bool, error) {
	l := c.level
	if l == nil || !l.grouped || l.sc != sc {
		return nil, false, nil
	}
	if _, plain := x.(*ast.ColumnReferenceExpression); plain {
		return nil, false, nil
	}
	var text string
	for n, k := range l.group.keys {
		if k.value.column != nil {
			continue
		}
		if text == "" {
			text = syntaxText(x)
		}
		if k.text == text {
			return c.columnScalar(l.group.src, n), true, nil
		}
	}
	return nil, false, nil
}

func (c *compiler) having(x *ast.QuerySpecification, level *queryLevel) ([]*predicate, error) {
	if x.HavingClause == nil {
		return nil, nil
	}
	return c.conjuncts(x.HavingClause.SearchCondition, level.sc)
}

// steps puts grouping, HAVING and window functions over a query's rows.
func (l *queryLevel) steps(s step, having []*predicate) step {
	if l.group != nil {
		s = filterStep(&groupStep{s, l.group}, having)
	}
	if l.window != nil {
		s = l.window.over(s)
	}
	return s
}

type groupStep struct {
	inner step
	group *grouping
}

// bucket is one group while it fills.
type bucket struct {
	keys   []sqltype.Value
	states []aggregateState
}

func (s *groupStep) each(e *env, next func() error) error {
	g := s.group
	var order []*bucket
	index := make(map[string]*bucket)
	var buf []byte
	newBucket := func(keys []sqltype.Value) *bucket {
		b := &bucket{keys, make([]aggregateState, len(g.aggs))}
		for i, a := range g.aggs {
			b.states[i] = a.start()
		}
		order = append(order, b)
		return b
	}
	var whole *bucket
	if len(g.keys) == 0 {
		whole = newBucket(nil) // without GROUP BY there is always one row
	}
	err := s.inner.each(e, func() error {
		b := whole
		if b == nil {
			keys := make([]sqltype.Value, len(g.keys))
			buf = buf[:0]
			for i, k := range g.keys {
				v, err := k.value.eval(e)
				if err != nil {
					return err
				}
				keys[i] = v
				buf = sqltype.HashKey(buf, v, k.value.typ)
			}
			var ok bool
			if b, ok = index[string(buf)]; !ok {
				b = newBucket(keys)
				index[string(buf)] = b
			}
		}
		for i, a := range g.aggs {
			if err := a.feed(e, b.states[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range order {
		row := make([]sqltype.Value, 0, len(g.keys)+len(g.aggs))
		row = append(row, b.keys...)
		for _, st := range b.states {
			v, err := st.result()
			if err != nil {
				return err
			}
			row = append(row, v)
		}
		e.rows[g.src.slot] = row
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}
