package engine

import (
	"slices"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// branches is CASE in any of its forms: the first condition that is true
// chooses its result.
func branches(tests []*predicate, results []*scalar, otherwise *scalar) (*scalar, error) {
	t := nullType
	var text *scalar
	var mix mixture
	all := append([]*scalar(nil), results...)
	if otherwise != nil {
		all = append(all, otherwise)
	}
	for _, r := range all {
		t = sqltype.Common(t, r.typ)
		if !r.typ.Kind.IsText() {
			continue
		}
		if text == nil {
			text, mix = r, mixture{r.typ.Collation, r.strength, r.conflict}
			continue
		}
		var err error
		so := &scalar{typ: sqltype.Type{Kind: r.typ.Kind, Collation: mix.collation}, strength: mix.strength, conflict: mix.conflict}
		if mix, err = mixCollations("CASE", so, r); err != nil {
			return nil, err
		}
	}
	if t.Kind == sqltype.Null {
		return nil, raiseBatch(8133, 16, 1, "At least one of the result expressions in a CASE specification must be an expression other than the NULL constant.")
	}
	if text != nil && t.Kind.IsText() {
		t.Collation = mix.collation
	}
	for i, r := range all {
		all[i] = convertTo(r, t)
	}
	out := derive(t, func(e *env) (sqltype.Value, error) {
		for i, test := range tests {
			ok, err := test.eval(e)
			if err != nil {
				return sqltype.Value{}, err
			}
			if ok == isTrue {
				return all[i].eval(e)
			}
		}
		if otherwise == nil {
			return sqltype.Value{}, nil
		}
		return all[len(tests)].eval(e)
	}, all...)
	mix.mark(out)
	for _, p := range tests {
		out.deps |= p.deps
		out.reads = out.reads || p.reads
		out.constant = out.constant && p.constant
	}
	return out, nil
}

func (c *compiler) searchedCase(x *ast.SearchedCaseExpression, sc *scope) (*scalar, error) {
	var tests []*predicate
	var results []*scalar
	for _, w := range x.WhenClauses {
		p, err := c.condition(w.WhenExpression, sc)
		if err != nil {
			return nil, err
		}
		r, err := c.expression(w.ThenExpression, sc)
		if err != nil {
			return nil, err
		}
		tests, results = append(tests, p), append(results, r)
	}
	return c.finishCase(tests, results, x.ElseExpression, x.Collation, sc)
}

func (c *compiler) simpleCase(x *ast.SimpleCaseExpression, sc *scope) (*scalar, error) {
	in, err := c.expression(x.InputExpression, sc)
	if err != nil {
		return nil, err
	}
	var tests []*predicate
	var results []*scalar
	for _, w := range x.WhenClauses {
		v, err := c.expression(w.WhenExpression, sc)
		if err != nil {
			return nil, err
		}
		p, err := c.comparison("Equals", in, v)
		if err != nil {
			return nil, err
		}
		r, err := c.expression(w.ThenExpression, sc)
		if err != nil {
			return nil, err
		}
		tests, results = append(tests, p), append(results, r)
	}
	return c.finishCase(tests, results, x.ElseExpression, x.Collation, sc)
}

func (c *compiler) finishCase(tests []*predicate, results []*scalar, els ast.ScalarExpression, coll *ast.Identifier, sc *scope) (*scalar, error) {
	var otherwise *scalar
	if els != nil {
		var err error
		if otherwise, err = c.expression(els, sc); err != nil {
			return nil, err
		}
	}
	out, err := branches(tests, results, otherwise)
	if err == nil && coll != nil {
		return c.collate(out, coll)
	}
	return out, err
}

func (c *compiler) iif(x *ast.IIfCall, sc *scope) (*scalar, error) {
	p, err := c.condition(x.Predicate, sc)
	if err != nil {
		return nil, err
	}
	a, b, err := c.pair(x.ThenExpression, x.ElseExpression, sc)
	if err != nil {
		return nil, err
	}
	return branches([]*predicate{p}, []*scalar{a}, b)
}

// notNull is the condition "s is not NULL".
func notNull(s *scalar) *predicate {
	eval := s.eval
	return derivePredicate(func(e *env) (tri, error) {
		v, err := eval(e)
		return truth(!v.IsNull()), err
	}, s)
}

func (c *compiler) coalesce(x *ast.CoalesceExpression, sc *scope) (*scalar, error) {
	list, err := c.expressions(x.Expressions, sc)
	if err != nil {
		return nil, err
	}
	if len(list) < 2 {
		return nil, errSyntax(")")
	}
	if !slices.ContainsFunc(list, func(s *scalar) bool { return s.typ.Kind != sqltype.Null }) {
		return nil, raiseBatch(4127, 16, 1, "At least one of the arguments to COALESCE must be an expression that is not the NULL constant.")
	}
	var tests []*predicate
	for _, s := range list[:len(list)-1] {
		tests = append(tests, notNull(s))
	}
	return branches(tests, list[:len(list)-1], list[len(list)-1])
}

func (c *compiler) nullIf(x *ast.NullIfExpression, sc *scope) (*scalar, error) {
	a, err := c.expression(x.FirstExpression, sc)
	if err != nil {
		return nil, err
	}
	if a.typ.Kind == sqltype.Null {
		return nil, raiseBatch(4151, 16, 1, "The type of the first argument to NULLIF cannot be the NULL constant because the type of the first argument has to be known.")
	}
	b, err := c.expression(x.SecondExpression, sc)
	if err != nil {
		return nil, err
	}
	equal, err := c.comparison("Equals", a, b)
	if err != nil {
		return nil, err
	}
	out, err := branches([]*predicate{equal}, []*scalar{literal(a.typ, sqltype.Value{})}, a)
	return out, err
}

func (c *compiler) expressions(list []ast.ScalarExpression, sc *scope) ([]*scalar, error) {
	out := make([]*scalar, len(list))
	for i, x := range list {
		s, err := c.expression(x, sc)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}
