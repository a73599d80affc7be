package engine

import (
	"cmp"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// tri is SQL's three-valued truth.
type tri int8

const (
	isFalse tri = iota
	isTrue
	isUnknown
)

func truth(b bool) tri {
	if b {
		return isTrue
	}
	return isFalse
}

func (t tri) not() tri {
	switch t {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	}
	return isUnknown
}

// predicate is a compiled condition.
type predicate struct {
	eval     func(e *env) (tri, error)
	deps     slotSet
	reads    bool
	constant bool
	// sargs are the comparisons of a column with something else that can
	// bound an index seek; all of them together are implied by the predicate.
	sargs []sarg
}

// sarg is a search argument: column op value.
type sarg struct {
	column columnRef
	op     string
	value  *scalar
	// values are the literals of IN.
	values []*scalar
}

func derivePredicate(eval func(e *env) (tri, error), from ...*scalar) *predicate {
	p := &predicate{eval: eval, constant: true}
	for _, f := range from {
		p.deps |= f.deps
		p.reads = p.reads || f.reads
		p.constant = p.constant && f.constant
	}
	return p
}

// condition compiles a boolean expression.
func (c *compiler) condition(x ast.BooleanExpression, sc *scope) (*predicate, error) {
	switch x := x.(type) {
	case *ast.BooleanParenthesisExpression:
		return c.condition(x.Expression, sc)
	case *ast.BooleanBinaryExpression:
		return c.logical(x, sc)
	case *ast.BooleanNotExpression:
		p, err := c.condition(x.Expression, sc)
		if err != nil {
			return nil, err
		}
		inner := p.eval
		return &predicate{
			deps: p.deps, reads: p.reads, constant: p.constant,
			eval: func(e *env) (tri, error) {
				t, err := inner(e)
				return t.not(), err
			},
		}, nil
	case *ast.BooleanComparisonExpression:
		a, b, err := c.pair(x.FirstExpression, x.SecondExpression, sc)
		if err != nil {
			return nil, err
		}
		return c.comparison(x.ComparisonType, a, b)
	case *ast.BooleanIsNullExpression:
		return c.isNull(x, sc)
	case *ast.BooleanInExpression:
		return c.in(x, sc)
	case *ast.BooleanTernaryExpression:
		return c.between(x, sc)
	case *ast.BooleanLikeExpression:
		return c.like(x, sc)
	case *ast.ExistsPredicate:
		return c.exists(x, sc)
	case *ast.DistinctPredicate:
		return c.distinctFrom(x, sc)
	case *ast.UpdateCall:
		return c.updateCall(x)
	case *ast.BooleanScalarPlaceholder:
		return nil, errNoCondition("")
	case nil:
		return nil, errSyntax("")
	}
	return nil, notModelled("the condition %s", syntaxName(x))
}

func (c *compiler) logical(x *ast.BooleanBinaryExpression, sc *scope) (*predicate, error) {
	a, err := c.condition(x.FirstExpression, sc)
	if err != nil {
		return nil, err
	}
	b, err := c.condition(x.SecondExpression, sc)
	if err != nil {
		return nil, err
	}
	p := &predicate{deps: a.deps | b.deps, reads: a.reads || b.reads, constant: a.constant && b.constant}
	fa, fb := a.eval, b.eval
	if x.BinaryExpressionType == "And" {
		p.sargs = append(append([]sarg(nil), a.sargs...), b.sargs...)
		p.eval = func(e *env) (tri, error) {
			ta, err := fa(e)
			if err != nil || ta == isFalse {
				return ta, err
			}
			tb, err := fb(e)
			if err != nil || tb == isFalse {
				return tb, err
			}
			if ta == isTrue && tb == isTrue {
				return isTrue, nil
			}
			return isUnknown, nil
		}
		return p, nil
	}
	p.eval = func(e *env) (tri, error) {
		ta, err := fa(e)
		if err != nil || ta == isTrue {
			return ta, err
		}
		tb, err := fb(e)
		if err != nil || tb == isTrue {
			return tb, err
		}
		if ta == isFalse && tb == isFalse {
			return isFalse, nil
		}
		return isUnknown, nil
	}
	return p, nil
}

// operators maps the parser's names to the operator and the one that says the
// same with its sides exchanged.
var operators = map[string]struct{ op, swapped string }{
	"Equals":                {"=", "="},
	"NotEqualToBrackets":    {"<>", "<>"},
	"NotEqualToExclamation": {"<>", "<>"},
	"LessThan":              {"<", ">"},
	"GreaterThan":           {">", "<"},
	"LessThanOrEqualTo":     {"<=", ">="},
	"GreaterThanOrEqualTo":  {">=", "<="},
	"NotLessThan":           {">=", "<="},
	"NotGreaterThan":        {"<=", ">="},
}

// holds says whether a comparison's result satisfies an operator.
func holds(op string) func(cmp int) bool {
	switch op {
	case "=":
		return func(n int) bool { return n == 0 }
	case "<>":
		return func(n int) bool { return n != 0 }
	case "<":
		return func(n int) bool { return n < 0 }
	case ">":
		return func(n int) bool { return n > 0 }
	case "<=":
		return func(n int) bool { return n <= 0 }
	}
	return func(n int) bool { return n >= 0 }
}

func (c *compiler) comparison(kind string, a, b *scalar) (*predicate, error) {
	o, ok := operators[kind]
	if !ok {
		return nil, notModelled("the comparison %s", kind)
	}
	pair, err := operandsOf(a, b, o.op)
	if err != nil {
		return nil, err
	}
	if c.nullsEqual && (o.op == "=" || o.op == "<>") && (a.mayBeBareNull() || b.mayBeBareNull()) {
		return compareNulls(pair, o.op), nil
	}
	test, compare := holds(o.op), pair.compare
	if pair.integers {
		compare = nil
	}
	fa, fb := pair.a.eval, pair.b.eval
	p := derivePredicate(func(e *env) (tri, error) {
		va, err := fa(e)
		if err != nil || va.Kind == sqltype.Null {
			return isUnknown, err
		}
		vb, err := fb(e)
		if err != nil || vb.Kind == sqltype.Null {
			return isUnknown, err
		}
		if compare == nil {
			return truth(test(cmp.Compare(va.N, vb.N))), nil
		}
		return truth(test(compare(va, vb))), nil
	}, a, b)
	if a.column != nil && pair.seeksA {
		p.sargs = append(p.sargs, sarg{column: *a.column, op: o.op, value: pair.b})
	}
	if a.column != nil && !pair.seeksA {
		c.noteConvert(*a.column, a.typ, b.typ)
	}
	if b.column != nil && !pair.seeksB {
		c.noteConvert(*b.column, b.typ, a.typ)
	}
	if b.column != nil && pair.seeksB {
		p.sargs = append(p.sargs, sarg{column: *b.column, op: o.swapped, value: pair.a})
	}
	return p, nil
}

// operands are two expressions brought to one type.
type operands struct {
	a, b    *scalar
	compare func(a, b sqltype.Value) int
	// integers says that both are compared by N.
	integers bool
	// seeksA says that an index on column a can be sought with b.
	seeksA, seeksB bool
}

func operandsOf(a, b *scalar, op string) (operands, error) {
	t := sqltype.Common(a.typ, b.typ)
	for _, s := range []*scalar{a, b} {
		if s.typ.Kind == sqltype.XML || s.typ.Kind == sqltype.TableType {
			return operands{}, raiseBatch(402, 16, 1, "The data types %s and %s are incompatible in the %s operator.", a.typ.Name(), b.typ.Name(), op)
		}
	}
	if incompatible(a.typ, b.typ) {
		return operands{}, raiseBatch(206, 16, 2, "Operand type clash: %s is incompatible with %s", a.typ.Name(), b.typ.Name())
	}
	if a.typ.Kind.IsText() && b.typ.Kind.IsText() {
		coll, err := commonCollation(a, b)
		if err != nil {
			return operands{}, err
		}
		t.Collation = coll
		// no conversion: a shorter text compares as if padded, and what the
		// other's code page lacks stays different
		return operands{
			a: a, b: b, compare: sqltype.Comparer(t),
			seeksA: seekable(a.typ, b.typ, coll), seeksB: seekable(b.typ, a.typ, coll),
		}, nil
	}
	out := operands{a: a, b: b, compare: sqltype.Comparer(t)}
	bothIntegers := a.typ.Kind.IsInteger() && b.typ.Kind.IsInteger()
	out.integers = bothIntegers
	exact := a.typ.Kind.IsNumeric() && b.typ.Kind.IsNumeric() && !t.Kind.IsApproximate()
	if !bothIntegers && !exact {
		// the scale of the finer operand must survive
		if a.typ.Kind != t.Kind {
			out.a = convertTo(a, t)
		}
		if b.typ.Kind != t.Kind {
			out.b = convertTo(b, t)
		}
	}
	// an index is sought by its own column's type: a column that must be
	// converted is scanned
	out.seeksA = bothIntegers || (out.a == a && a.typ.Kind == t.Kind)
	out.seeksB = bothIntegers || (out.b == b && b.typ.Kind == t.Kind)
	return out, nil
}

// seekable: a varchar column under a SQL collation cannot be sought with an
// nvarchar value (CONVERT_IMPLICIT on the column, hence a scan), and no column
// can be under another collation than its own.
func seekable(column, value sqltype.Type, coll *sqltype.Collation) bool {
	if column.Collation != coll {
		return false
	}
	return column.Kind.IsUnicode() || !value.Kind.IsUnicode() || !coll.SQL()
}

func incompatible(a, b sqltype.Type) bool {
	clash := func(x, y sqltype.Type) bool {
		switch {
		case x.Kind == sqltype.UniqueIdentifier:
			return y.Kind.IsNumeric() || y.Kind.IsTemporal()
		case x.Kind == sqltype.Date || x.Kind == sqltype.Time || x.Kind == sqltype.DateTime2 || x.Kind == sqltype.DateTimeOffset:
			return y.Kind.IsNumeric() || y.Kind.IsBinary()
		}
		return false
	}
	return clash(a, b) || clash(b, a)
}
