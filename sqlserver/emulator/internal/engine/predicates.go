package engine

import (
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func (c *compiler) isNull(x *ast.BooleanIsNullExpression, sc *scope) (*predicate, error) {
	s, err := c.expression(x.Expression, sc)
	if err != nil {
		return nil, err
	}
	eval, want := s.eval, !x.IsNot
	p := derivePredicate(func(e *env) (tri, error) {
		v, err := eval(e)
		return truth(v.IsNull() == want), err
	}, s)
	if s.column != nil {
		op := "is null"
		if x.IsNot {
			op = "is not null"
		}
		p.sargs = []sarg{{column: *s.column, op: op}}
	}
	return p, nil
}

func (c *compiler) between(x *ast.BooleanTernaryExpression, sc *scope) (*predicate, error) {
	v, err := c.expression(x.FirstExpression, sc)
	if err != nil {
		return nil, err
	}
	lo, hi, err := c.pair(x.SecondExpression, x.ThirdExpression, sc)
	if err != nil {
		return nil, err
	}
	low, err := c.comparison("GreaterThanOrEqualTo", v, lo)
	if err != nil {
		return nil, err
	}
	high, err := c.comparison("LessThanOrEqualTo", v, hi)
	if err != nil {
		return nil, err
	}
	both := derivePredicate(func(e *env) (tri, error) {
		a, err := low.eval(e)
		if err != nil || a == isFalse {
			return a, err
		}
		b, err := high.eval(e)
		if err != nil || b == isFalse || a == isTrue {
			return b, err
		}
		return isUnknown, nil
	}, v, lo, hi)
	if x.TernaryExpressionType == "NotBetween" {
		inner := both.eval
		both.eval = func(e *env) (tri, error) {
			t, err := inner(e)
			return t.not(), err
		}
		return both, nil
	}
	both.sargs = append(append([]sarg(nil), low.sargs...), high.sargs...)
	return both, nil
}

func (c *compiler) in(x *ast.BooleanInExpression, sc *scope) (*predicate, error) {
	v, err := c.expression(x.Expression, sc)
	if err != nil {
		return nil, err
	}
	if x.Subquery != nil {
		return c.inSubquery(x, v, sc)
	}
	tests := make([]*predicate, len(x.Values))
	from := []*scalar{v}
	list := sarg{op: "in"}
	for i, item := range x.Values {
		s, err := c.expression(item, sc)
		if err != nil {
			return nil, err
		}
		if tests[i], err = c.comparison("Equals", v, s); err != nil {
			return nil, err
		}
		from = append(from, s)
		if len(tests[i].sargs) > 0 {
			list.values = append(list.values, tests[i].sargs[0].value)
		}
	}
	negate := x.NotDefined
	p := derivePredicate(func(e *env) (tri, error) {
		result := isFalse
		for _, t := range tests {
			r, err := t.eval(e)
			if err != nil {
				return isUnknown, err
			}
			if r == isTrue {
				result = isTrue
				break
			}
			if r == isUnknown {
				result = isUnknown
			}
		}
		if negate {
			return result.not(), nil
		}
		return result, nil
	}, from...)
	if v.column != nil && !negate && len(list.values) == len(x.Values) {
		list.column = *v.column
		p.sargs = []sarg{list}
	}
	return p, nil
}

func (c *compiler) distinctFrom(x *ast.DistinctPredicate, sc *scope) (*predicate, error) {
	a, b, err := c.pair(x.FirstExpression, x.SecondExpression, sc)
	if err != nil {
		return nil, err
	}
	pair, err := operandsOf(a, b, "IS DISTINCT FROM")
	if err != nil {
		return nil, err
	}
	compare, want := pair.compare, x.IsNot
	fa, fb := pair.a.eval, pair.b.eval
	return derivePredicate(func(e *env) (tri, error) {
		va, vb, err := both(e, fa, fb)
		if err != nil {
			return isUnknown, err
		}
		return truth((compare(va, vb) == 0) == want), nil
	}, a, b), nil
}

func (c *compiler) like(x *ast.BooleanLikeExpression, sc *scope) (*predicate, error) {
	s, pattern, err := c.pair(x.FirstExpression, x.SecondExpression, sc)
	if err != nil {
		return nil, err
	}
	escape := literal(nullType, sqltype.Value{})
	if x.EscapeExpression != nil {
		if escape, err = c.expression(x.EscapeExpression, sc); err != nil {
			return nil, err
		}
	}
	text := s
	if !s.typ.Kind.IsText() {
		text = convertTo(s, nvarcharType(sqltype.Max))
	}
	pat := pattern
	if !pattern.typ.Kind.IsText() {
		pat = convertTo(pattern, nvarcharType(sqltype.Max))
	}
	coll, err := commonCollation(text, pat)
	if err != nil {
		return nil, err
	}
	negate := x.NotDefined
	return derivePredicate(func(e *env) (tri, error) {
		v, err := text.eval(e)
		if err != nil || v.IsNull() {
			return isUnknown, err
		}
		p, err := pat.eval(e)
		if err != nil || p.IsNull() {
			return isUnknown, err
		}
		esc, err := escape.eval(e)
		if err == nil && sqltype.UTF16Length(esc.S) != 1 && !esc.IsNull() {
			err = raise(506, 16, 1, "The invalid escape character \"%s\" was specified in a LIKE predicate.", esc.S)
		}
		if err != nil {
			return isUnknown, err
		}
		return truth(matchLike(v.S, p.S, esc.S, coll) != negate), nil
	}, s, pattern, escape), nil
}
