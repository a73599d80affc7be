package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// windowing is the window functions of a query: each is a column of a slot of
// their own.
type windowing struct {
	src   *source
	funcs []*windowFunction
}

type windowFunction struct {
	name       string
	partitions []sortKey
	order      []sortKey
	// seq is NEXT VALUE FOR … OVER (ORDER BY …).
	seq *sequence
}

// windowColumn adds a window function to the query and is its column.
func (c *compiler) windowColumn(f *windowFunction, t sqltype.Type) (*scalar, error) {
	l := c.level
	if l == nil || !l.windowsAllowed {
		return nil, raiseBatch(4108, 15, 1, "Windowed functions can only appear in the SELECT or ORDER BY clauses.")
	}
	if l.window == nil {
		src, err := c.newSource("", "", nil)
		if err != nil {
			return nil, err
		}
		l.window = &windowing{src: src}
	}
	w := l.window
	w.funcs = append(w.funcs, f)
	w.src.cols = append(w.src.cols, outCol{typ: t})
	s := c.columnScalar(w.src, len(w.src.cols)-1)
	s.column = nil
	return s, nil
}

// windowCall compiles f() OVER (…).
func (c *compiler) windowCall(x *ast.FunctionCall, sc *scope) (*scalar, error) {
	name := strings.ToUpper(x.FunctionName.Value)
	switch name {
	case "ROW_NUMBER", "RANK", "DENSE_RANK":
	default:
		return nil, notModelled("%s OVER", name)
	}
	if x.OverClause.WindowFrameClause != nil || x.OverClause.WindowName != nil {
		return nil, notModelled("window frames")
	}
	f, err := c.overClause(name, x.OverClause, sc)
	if err != nil {
		return nil, err
	}
	if len(f.order) == 0 {
		return nil, raiseBatch(4112, 15, 1, "The function '%s' must have an OVER clause with ORDER BY.", name)
	}
	return c.windowColumn(f, bigType)
}

func (c *compiler) overClause(name string, x *ast.OverClause, sc *scope) (*windowFunction, error) {
	if takesSequence(x, false) {
		return nil, errSequenceClause()
	}
	f := &windowFunction{name: name}
	for _, p := range x.Partitions {
		s, err := c.expression(p, sc)
		if err != nil {
			return nil, err
		}
		f.partitions = append(f.partitions, newSortKey(s, "", -1))
	}
	var err error
	f.order, err = c.orderBy(x.OrderByClause, nil, sc)
	return f, err
}

// nextValue compiles NEXT VALUE FOR. With OVER the rows are numbered in its
// order, whatever order they come in.
func (c *compiler) nextValue(x *ast.NextValueForExpression, sc *scope) (*scalar, error) {
	if c.choices > 0 {
		return nil, errSequenceChoice()
	}
	o, err := c.lookup(x.SequenceName)
	if err != nil {
		return nil, err
	}
	q, ok := o.(*sequence)
	if !ok {
		return nil, raiseBatch(11726, 16, 1, "Object '%s' is not a sequence object.", objectText(x.SequenceName))
	}
	c.need(need{object: &q.objectHeader, permission: "UPDATE"})
	if c.draws == nil {
		c.draws = make(draws)
	}
	if err := c.draws.add(q); err != nil {
		return nil, err
	}
	if over := x.OverClause; over != nil {
		switch {
		case len(over.Partitions) > 0:
			return nil, raiseBatch(11716, 15, 1, "NEXT VALUE FOR function does not support the PARTITION BY clause.")
		case over.OrderByClause == nil:
			return nil, raiseBatch(11718, 15, 1, "NEXT VALUE FOR function does not support an empty OVER clause.")
		}
		f, err := c.overClause("NEXT VALUE FOR", x.OverClause, sc)
		if err != nil {
			return nil, err
		}
		f.seq = q
		return c.windowColumn(f, q.typ)
	}
	limited := errSequenceLimit()
	if c.defaulting {
		limited = errDefaultSequenceLimit()
	}
	return &scalar{typ: q.typ, notNull: true, eval: func(e *env) (sqltype.Value, error) {
		if e.x.s.set.rowCount > 0 {
			return sqltype.Value{}, limited
		}
		n, err := q.take()
		return sqltype.Value{Kind: q.typ.Kind, N: n, Scale: q.typ.Scale}, err
	}}, nil
}

func (w *windowing) over(s step) step {
	return &windowStep{s, w, slotRange{0, w.src.slot + 1}}
}

type windowStep struct {
	inner step
	w     *windowing
	slots slotRange
}

func (s *windowStep) each(e *env, next func() error) error {
	var all []snapshot
	var keys [][][]sqltype.Value // row, function, partition keys then order keys
	err := s.inner.each(e, func() error {
		all = append(all, s.slots.save(e))
		row := make([][]sqltype.Value, len(s.w.funcs))
		for i, f := range s.w.funcs {
			k, err := evalKeys(e, slices.Concat(f.partitions, f.order))
			if err != nil {
				return err
			}
			row[i] = k
		}
		keys = append(keys, row)
		return nil
	})
	if err != nil {
		return err
	}
	values := make([][]sqltype.Value, len(all))
	for i := range values {
		values[i] = make([]sqltype.Value, len(s.w.funcs))
	}
	for i, f := range s.w.funcs {
		if err := f.number(i, keys, values); err != nil {
			return err
		}
	}
	for i, snap := range all {
		s.slots.restore(e, snap)
		e.rows[s.w.src.slot] = values[i]
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

// number computes one function for all rows.
func (f *windowFunction) number(at int, keys [][][]sqltype.Value, values [][]sqltype.Value) error {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	all := slices.Concat(f.partitions, f.order)
	slices.SortStableFunc(order, func(a, b int) int { return compareKeys(all, keys[a][at], keys[b][at]) })
	n := len(f.partitions)
	var row, rank, dense int64
	for i, r := range order {
		k := keys[r][at]
		if i == 0 || compareKeys(f.partitions, keys[order[i-1]][at][:n], k[:n]) != 0 {
			row, rank, dense = 0, 0, 0
		}
		row++
		if row == 1 || compareKeys(f.order, keys[order[i-1]][at][n:], k[n:]) != 0 {
			rank = row
			dense++
		}
		v := bigValue(row)
		switch {
		case f.seq != nil:
			taken, err := f.seq.take()
			if err != nil {
				return err
			}
			v = sqltype.Value{Kind: f.seq.typ.Kind, N: taken, Scale: f.seq.typ.Scale}
		case f.name == "RANK":
			v = bigValue(rank)
		case f.name == "DENSE_RANK":
			v = bigValue(dense)
		}
		values[r][at] = v
	}
	return nil
}
