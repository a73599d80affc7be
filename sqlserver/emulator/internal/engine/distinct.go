package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// rowKeys tells rows apart under their columns' collations.
type rowKeys struct {
	seen map[string]int
	cols []outCol
	buf  []byte
}

func newRowKeys(cols []outCol) *rowKeys { return &rowKeys{seen: make(map[string]int), cols: cols} }

func (k *rowKeys) key(row []sqltype.Value) string {
	k.buf = k.buf[:0]
	for i, v := range row {
		k.buf = sqltype.HashKey(k.buf, v, k.cols[i].typ)
	}
	return string(k.buf)
}

// add says whether the row is new.
func (k *rowKeys) add(row []sqltype.Value) bool {
	key := k.key(row)
	if _, ok := k.seen[key]; ok {
		return false
	}
	k.seen[key] = 1
	return true
}

// distinctRows is SELECT DISTINCT: the select list is computed and told apart
// before ORDER BY and TOP.
func distinctRows(s step, outs []output, sorts []sortKey, lim *limit) func(*env, func([]sqltype.Value) error) error {
	cols := newQuery(outs).cols
	inner := project(s, outs)
	return func(e *env, emit func([]sqltype.Value) error) error {
		keys := newRowKeys(cols)
		if len(sorts) == 0 {
			return takeRows(e, lim, emit, func(emit func([]sqltype.Value) error) error {
				return inner(e, func(row []sqltype.Value) error {
					if !keys.add(row) {
						return nil
					}
					return emit(row)
				})
			})
		}
		var rows [][]sqltype.Value
		err := inner(e, func(row []sqltype.Value) error {
			if keys.add(row) {
				rows = append(rows, row)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := sortOutput(rows, sorts); err != nil {
			return err
		}
		return takeRows(e, lim, emit, overRows(rows))
	}
}

// takeRows applies a limit to rows.
func takeRows(e *env, lim *limit, emit func([]sqltype.Value) error, rows func(func([]sqltype.Value) error) error) error {
	if lim == nil {
		return rows(emit)
	}
	var current []sqltype.Value
	l := lim.over(stepFunc(func(_ *env, next func() error) error {
		return rows(func(row []sqltype.Value) error {
			current = row
			return next()
		})
	}))
	return l.each(e, func() error { return emit(current) })
}

// stepFunc is a step made of a function.
type stepFunc func(e *env, next func() error) error

func (f stepFunc) each(e *env, next func() error) error { return f(e, next) }

// sortOutput orders rows by places of their select list.
func sortOutput(rows [][]sqltype.Value, sorts []sortKey) error {
	for _, k := range sorts {
		if k.output < 0 {
			return raiseBatch(145, 15, 1, "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.")
		}
	}
	slices.SortStableFunc(rows, func(a, b []sqltype.Value) int {
		for _, k := range sorts {
			n := k.compare(a[k.output], b[k.output])
			if n != 0 {
				if k.desc {
					return -n
				}
				return n
			}
		}
		return 0
	})
	return nil
}

func overRows(rows [][]sqltype.Value) func(func([]sqltype.Value) error) error {
	return func(emit func([]sqltype.Value) error) error {
		for _, row := range rows {
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}
}

// setOperation is UNION, EXCEPT or INTERSECT.
func (c *compiler) setOperation(x *ast.BinaryQueryExpression, parent *scope) (*query, error) {
	if takesSequence(x, false) {
		return nil, errSequenceSet()
	}
	if x.All && x.BinaryQueryExpressionType != "Union" {
		return nil, raiseBatch(324, 15, 1, "The 'ALL' version of the %s operator is not supported.", strings.ToUpper(x.BinaryQueryExpressionType))
	}
	a, err := c.queryExpression(x.FirstQueryExpression, parent)
	if err != nil {
		return nil, err
	}
	b, err := c.queryExpression(x.SecondQueryExpression, parent)
	if err != nil {
		return nil, err
	}
	if len(a.cols) != len(b.cols) {
		return nil, raiseBatch(205, 16, 1, "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.")
	}
	if a.assign != nil || b.assign != nil {
		return nil, raiseBatch(10734, 16, 1, "Variable assignment is not allowed in a statement containing a top level UNION, INTERSECT or EXCEPT operator.")
	}
	q := &query{refs: make([]columnRef, len(a.cols))}
	for i, col := range a.cols {
		switch other := b.cols[i]; {
		case col.untyped:
			col.typ, col.untyped = other.typ, other.untyped
		case other.untyped:
		case incompatible(col.typ, other.typ):
			return nil, raiseBatch(206, 16, 2, "Operand type clash: %s is incompatible with %s", col.typ.Name(), other.typ.Name())
		default:
			mix, err := mixColumns(x, &col, &other)
			if err != nil {
				return nil, err
			}
			col.typ = sqltype.Common(col.typ, other.typ)
			if col.typ.Kind.IsText() {
				col.typ.Collation = mix.collation
			}
			col.strength, col.conflict = mix.strength, mix.conflict
		}
		col.nullable = col.nullable || b.cols[i].nullable
		q.cols = append(q.cols, col)
	}
	rows := combine(x.BinaryQueryExpressionType, x.All, a.converted(q.cols), b.converted(q.cols), q.cols)
	if rows == nil {
		return nil, notModelled("%s", strings.ToUpper(x.BinaryQueryExpressionType))
	}
	q.each = rows
	if x.OrderByClause == nil {
		return q, nil
	}
	outs := make([]output, len(q.cols))
	for i, col := range q.cols {
		outs[i] = output{name: col.name, value: &scalar{typ: col.typ}, variable: -1}
	}
	sorts, err := c.orderBy(x.OrderByClause, outs, &scope{parent: parent})
	if err != nil {
		return nil, err
	}
	q.each = func(e *env, emit func([]sqltype.Value) error) error {
		var all [][]sqltype.Value
		if err := rows(e, func(row []sqltype.Value) error {
			all = append(all, row)
			return nil
		}); err != nil {
			return err
		}
		if err := sortOutput(all, sorts); err != nil {
			return err
		}
		return overRows(all)(emit)
	}
	return q, nil
}

// mixColumns is the collation of a column of two queries. UNION ALL alone does not
// compare.
func mixColumns(x *ast.BinaryQueryExpression, a, b *outCol) (mixture, error) {
	if !a.typ.Kind.IsText() || !b.typ.Kind.IsText() {
		return mixture{collation: cmp.Or(a.typ.Collation, b.typ.Collation)}, nil
	}
	first := &scalar{typ: a.typ, strength: a.strength, conflict: a.conflict}
	second := &scalar{typ: b.typ, strength: b.strength, conflict: b.conflict}
	if x.BinaryQueryExpressionType == "Union" && x.All {
		return mixCollations("UNION ALL", first, second)
	}
	coll, err := commonCollation(first, second)
	return mixture{collation: coll, strength: max(a.strength, b.strength)}, err
}

type rowFunc = func(e *env, emit func([]sqltype.Value) error) error

// converted is the query's rows in other types.
func (q *query) converted(cols []outCol) rowFunc {
	same := true
	for i := range cols {
		same = same && q.cols[i].typ == cols[i].typ
	}
	if same {
		return q.each
	}
	return func(e *env, emit func([]sqltype.Value) error) error {
		return q.each(e, func(row []sqltype.Value) error {
			for i := range row {
				v, err := sqltype.Convert(row[i], cols[i].typ, 0)
				if err != nil {
					return err
				}
				row[i] = v
			}
			return emit(row)
		})
	}
}

func combine(kind string, all bool, a, b rowFunc, cols []outCol) rowFunc {
	switch {
	case kind == "Union" && all:
		return func(e *env, emit func([]sqltype.Value) error) error {
			if err := a(e, emit); err != nil {
				return err
			}
			return b(e, emit)
		}
	case kind == "Union":
		return func(e *env, emit func([]sqltype.Value) error) error {
			keys := newRowKeys(cols)
			once := func(row []sqltype.Value) error {
				if !keys.add(row) {
					return nil
				}
				return emit(row)
			}
			if err := a(e, once); err != nil {
				return err
			}
			return b(e, once)
		}
	case kind == "Except", kind == "Intersect":
		keep := kind == "Intersect"
		return func(e *env, emit func([]sqltype.Value) error) error {
			other, given := newRowKeys(cols), newRowKeys(cols)
			if err := b(e, func(row []sqltype.Value) error {
				other.add(row)
				return nil
			}); err != nil {
				return err
			}
			return a(e, func(row []sqltype.Value) error {
				if _, there := other.seen[other.key(row)]; there != keep || !given.add(row) {
					return nil
				}
				return emit(row)
			})
		}
	}
	return nil
}
