package engine

import (
	"slices"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// filterPart is one comparison of a filtered index's WHERE.
type filterPart struct {
	column int
	op     string
	value  *scalar
	values []*scalar
	typ    sqltype.Type
	test   func(sqltype.Value) bool
}

// accepts: a row whose column has this value is in the index.
func (f filterPart) accepts(v *scalar) bool {
	val, err := v.eval(nil)
	if err != nil || val.IsNull() {
		return false
	}
	if val, err = sqltype.Convert(val, f.typ, 0); err != nil {
		return false
	}
	return f.test(val)
}

func (f filterPart) sameValue(v *scalar) bool {
	a, err1 := v.eval(nil)
	b, err2 := f.value.eval(nil)
	if err1 != nil || err2 != nil {
		return false
	}
	a, err1 = sqltype.Convert(a, f.typ, 0)
	b, err2 = sqltype.Convert(b, f.typ, 0)
	return err1 == nil && err2 == nil && sqltype.Comparer(f.typ)(a, b) == 0
}

// filterParts reads a filter: comparisons of a column with a constant, joined
// by AND; nothing else is allowed in one.
func (e *Engine) filterParts(def *tableDef, x ast.BooleanExpression) ([]filterPart, error) {
	c := &compiler{engine: e, vars: (&variables{}).now(), checking: true, filterable: true}
	src, err := c.newSource(def.name, def.schema, def.outCols())
	if err != nil {
		return nil, err
	}
	preds, err := c.conjuncts(x, &scope{sources: []*source{src}})
	if err != nil {
		return nil, err
	}
	var parts []filterPart
	for _, p := range preds {
		if len(p.sargs) != 1 {
			return nil, raise(10735, 15, 1, "Incorrect WHERE clause for filtered index on table '%s'.", def.qualified())
		}
		part, err := newFilterPart(def, p.sargs[0])
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func newFilterPart(def *tableDef, s sarg) (filterPart, error) {
	bad := raise(10735, 15, 1, "Incorrect WHERE clause for filtered index on table '%s'.", def.qualified())
	f := filterPart{column: s.column.column, op: s.op, value: s.value, values: s.values, typ: def.columns[s.column.column].typ}
	compare := sqltype.Comparer(f.typ)
	constant := func(x *scalar) (sqltype.Value, bool) {
		if x == nil || !x.constant {
			return sqltype.Value{}, false
		}
		v, err := x.eval(nil)
		if err == nil {
			v, err = sqltype.Convert(v, f.typ, 0)
		}
		return v, err == nil && !v.IsNull()
	}
	switch s.op {
	case "is null":
		f.test = sqltype.Value.IsNull
	case "is not null":
		f.test = func(v sqltype.Value) bool { return !v.IsNull() }
	case "in":
		var set []sqltype.Value
		for _, x := range s.values {
			v, ok := constant(x)
			if !ok {
				return f, bad
			}
			set = append(set, v)
		}
		f.test = func(v sqltype.Value) bool {
			return !v.IsNull() && slices.ContainsFunc(set, func(w sqltype.Value) bool { return compare(v, w) == 0 })
		}
	default:
		want, ok := constant(s.value)
		if !ok {
			return f, bad
		}
		test := holds(s.op)
		f.test = func(v sqltype.Value) bool { return !v.IsNull() && test(compare(v, want)) }
	}
	return f, nil
}

// implies says whether the search arguments guarantee an index's filter. Only
// literals count: a plan is kept for other parameter values too.
func (c *compiler) implies(ix *indexDef, args []sarg) bool {
	if c.parameterized {
		return false
	}
	for _, f := range ix.conjuncts {
		if !impliedBy(f, args) {
			return false
		}
	}
	return true
}

// passedOver says whether the filter would be implied if parameters were
// literals: what showplan calls an unmatched index.
func (c *compiler) passedOver(ix *indexDef, args []sarg) bool {
	for _, f := range ix.conjuncts {
		if !impliedBy(f, args) && !impliedByParameter(f, args) {
			return false
		}
	}
	return true
}

func impliedByParameter(f filterPart, args []sarg) bool {
	for _, a := range args {
		if a.column.column != f.column {
			continue
		}
		if a.value != nil && !a.value.constant && a.value.deps == 0 && (a.op == "=" || a.op == f.op) {
			return true
		}
		for _, v := range a.values {
			if !v.constant && v.deps == 0 {
				return true
			}
		}
	}
	return false
}

func impliedBy(f filterPart, args []sarg) bool {
	for _, a := range args {
		if a.column.column != f.column {
			continue
		}
		switch a.op {
		case "=":
			if f.op == "is not null" || (a.value.constant && f.accepts(a.value)) {
				return true
			}
		case "in":
			all := len(a.values) > 0
			for _, v := range a.values {
				all = all && v.constant && f.accepts(v)
			}
			if all {
				return true
			}
		case "is null", "is not null":
			if a.op == f.op {
				return true
			}
		case "<", "<=", ">", ">=":
			if f.op == "is not null" {
				return true
			}
			if a.op == f.op && f.value != nil && a.value.constant && f.sameValue(a.value) {
				return true
			}
		}
	}
	return false
}
