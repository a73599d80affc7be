package engine

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// sortKey is an element of ORDER BY. output is its place in the select list,
// or -1 when it is not there.
type sortKey struct {
	value   *scalar
	desc    bool
	output  int
	compare func(a, b sqltype.Value) int
}

func newSortKey(s *scalar, order string, output int) sortKey {
	return sortKey{s, order == "Descending", output, sqltype.Comparer(s.typ)}
}

// orderBy compiles ORDER BY: a position, a name of the select list, or an
// expression over the sources.
func (c *compiler) orderBy(x *ast.OrderByClause, outs []output, sc *scope) ([]sortKey, error) {
	if x == nil {
		return nil, nil
	}
	var keys []sortKey
	for n, el := range x.OrderByElements {
		i, err := orderPosition(el.Expression, outs)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			keys = append(keys, newSortKey(outs[i].value, el.SortOrder, i))
			continue
		}
		s, err := c.expression(el.Expression, sc)
		if err != nil {
			return nil, err
		}
		if s.constant {
			if outs == nil {
				return nil, raiseBatch(5309, 16, 1, "Windowed functions, aggregates and NEXT VALUE FOR functions do not support constants as ORDER BY clause expressions.")
			}
			return nil, raiseBatch(408, 16, 1, "A constant expression was encountered in the ORDER BY list, position %d.", n+1)
		}
		at := -1
		for j, o := range outs {
			if s.column != nil && o.value.column != nil && *s.column == *o.value.column {
				at = j
				break
			}
		}
		keys = append(keys, newSortKey(s, el.SortOrder, at))
	}
	return keys, sortedOnce(keys)
}

// sortedOnce: ORDER BY names no column twice.
func sortedOnce(keys []sortKey) error {
	for i, k := range keys {
		for _, earlier := range keys[:i] {
			if a, b := k.value.column, earlier.value.column; a != nil && b != nil && *a == *b {
				return raiseBatch(169, 15, 1, "A column has been specified more than once in the order by list. Columns in the order by list must be unique.")
			}
		}
	}
	return nil
}

func orderPosition(x ast.ScalarExpression, outs []output) (int, error) {
	switch x := x.(type) {
	case *ast.IntegerLiteral:
		n, err := strconv.Atoi(x.Value)
		if err != nil || n < 1 || n > len(outs) {
			return -1, raiseBatch(108, 16, 1, "The ORDER BY position number %s is out of range of the number of items in the select list.", x.Value)
		}
		return n - 1, nil
	case *ast.ColumnReferenceExpression:
		if x.MultiPartIdentifier == nil || x.MultiPartIdentifier.Count != 1 || x.Collation != nil {
			return -1, nil
		}
		name := x.MultiPartIdentifier.Identifiers[0].Value
		at := -1
		for i, o := range outs {
			switch {
			case o.name == "" || !strings.EqualFold(o.name, name):
			case at < 0:
				at = i
			case o.value.column == nil || outs[at].value.column == nil || *o.value.column != *outs[at].value.column:
				return -1, errAmbiguous(name)
			}
		}
		return at, nil
	}
	return -1, nil
}

// orderKeys are the sort keys as columns, or nothing when one is not.
func orderKeys(sorts []sortKey) []orderKey {
	var keys []orderKey
	for _, k := range sorts {
		if k.value.column == nil {
			return nil
		}
		keys = append(keys, orderKey{*k.value.column, k.desc})
	}
	return keys
}

// slotRange are the slots of one query.
type slotRange struct{ lo, hi int }

// snapshot remembers the current row of every slot of a query, so that a
// buffering operator can bring it back.
type snapshot struct {
	rows [][]sqltype.Value
	refs []storage.RowRef
	keys []sqltype.Value
}

func (r slotRange) save(e *env) snapshot {
	return snapshot{rows: slices.Clone(e.rows[r.lo:r.hi]), refs: slices.Clone(e.refs[r.lo:r.hi])}
}

func (r slotRange) restore(e *env, s snapshot) {
	copy(e.rows[r.lo:r.hi], s.rows)
	copy(e.refs[r.lo:r.hi], s.refs)
}

// sortStep buffers all rows and gives them in order.
type sortStep struct {
	inner step
	keys  []sortKey
	slots slotRange
}

func (s *sortStep) each(e *env, next func() error) error {
	var all []snapshot
	err := s.inner.each(e, func() error {
		snap := s.slots.save(e)
		keys, err := evalKeys(e, s.keys)
		snap.keys = keys
		all = append(all, snap)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return compareKeys(s.keys, a.keys, b.keys) })
	for _, snap := range all {
		s.slots.restore(e, snap)
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

func evalKeys(e *env, keys []sortKey) ([]sqltype.Value, error) {
	out := make([]sqltype.Value, len(keys))
	for i, k := range keys {
		v, err := k.value.eval(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func compareKeys(keys []sortKey, a, b []sqltype.Value) int {
	for i, k := range keys {
		n := k.compare(a[i], b[i])
		if n != 0 {
			if k.desc {
				return -n
			}
			return n
		}
	}
	return 0
}

// limit is TOP and OFFSET … FETCH.
type limit struct {
	skip, count *scalar
	// fetch: count is that of FETCH, which may not be 0.
	fetch bool
}

func (c *compiler) limit(top *ast.TopRowFilter, offset *ast.OffsetClause, sc *scope) (*limit, error) {
	if top == nil && offset == nil {
		return nil, nil
	}
	if top != nil && offset != nil {
		return nil, raiseBatch(10741, 15, 2, "A TOP can not be used in the same query or sub-query as a OFFSET.")
	}
	l := &limit{}
	var err error
	if top != nil {
		if top.WithTies || top.Percent {
			return nil, notModelled("TOP PERCENT and TOP WITH TIES")
		}
		if l.count, err = c.rowCountExpression(top.Expression, sc); err != nil {
			return nil, err
		}
	}
	if offset != nil {
		if l.skip, err = c.rowCountExpression(offset.OffsetExpression, sc); err != nil {
			if se, ok := err.(*sqlError); ok && se.Number == 1060 {
				err = raiseBatch(10743, 15, 1, "The number of rows provided for a OFFSET clause must be an integer.")
			}
			return nil, err
		}
		if offset.FetchExpression != nil {
			l.fetch = true
			if l.count, err = c.rowCountExpression(offset.FetchExpression, sc); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// rowCountExpression must be a whole number without columns of the query.
func (c *compiler) rowCountExpression(x ast.ScalarExpression, sc *scope) (*scalar, error) {
	s, err := c.expression(x, sc.parent)
	if err != nil {
		if s, here := c.expression(x, sc); here == nil && s.deps != 0 {
			name := x
			if p, ok := name.(*ast.ParenthesisExpression); ok {
				name = p.Expression
			}
			if col, ok := name.(*ast.ColumnReferenceExpression); ok {
				return nil, raiseBatch(4115, 15, 1, "The reference to column \"%s\" is not allowed in an argument to a TOP, OFFSET, or FETCH clause. Only references to columns at an outer scope or standalone expressions and subqueries are allowed here.", lastIdentifier(col))
			}
		}
		return nil, err
	}
	big := s.constant && s.typ.Kind == sqltype.Decimal && s.typ.Scale == 0 // a literal past INT
	if !s.typ.Kind.IsInteger() && s.typ.Kind != sqltype.Null && !big {
		return nil, raiseBatch(1060, 15, 1, "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.")
	}
	return convertTo(s, bigType), nil
}

func (l *limit) bounds(e *env) (skip, count int64, err error) {
	count = -1
	if l.count != nil {
		v, err := l.count.eval(e)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case v.IsNull() && !l.count.constant:
			return 0, 0, raiseBatch(1014, 15, 1, "A TOP or FETCH clause contains an invalid value.")
		case v.IsNull():
			return 0, 0, raise(1060, 15, 1, "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.")
		case l.fetch && v.N < 1:
			return 0, 0, raise(10744, 15, 1, "The number of rows provided for a FETCH clause must be greater then zero.")
		case v.N < 0:
			return 0, 0, raise(127, 15, 1, "A TOP N or FETCH rowcount value may not be negative.")
		}
		count = v.N
	}
	if l.skip != nil {
		v, err := l.skip.eval(e)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case v.IsNull():
			return 0, 0, raise(10743, 15, 1, "The number of rows provided for a OFFSET clause must be an integer.")
		case v.N < 0:
			return 0, 0, raise(10742, 15, 1, "The offset specified in a OFFSET clause may not be negative.")
		}
		skip = v.N
	}
	return skip, count, nil
}

// over puts the limit on a step.
func (l *limit) over(s step) step { return &limitStep{s, l} }

type limitStep struct {
	inner step
	limit *limit
}

func (l *limitStep) each(e *env, next func() error) error {
	skip, count, err := l.limit.bounds(e)
	if err != nil || count == 0 {
		return err
	}
	stop := new(stopSignal)
	err = l.inner.each(e, func() error {
		if skip > 0 {
			skip--
			return nil
		}
		if err := next(); err != nil {
			return err
		}
		if count > 0 {
			count--
			if count == 0 {
				return stop
			}
		}
		return nil
	})
	if errors.Is(err, stop) {
		return nil
	}
	return err
}
