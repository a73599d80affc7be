package engine

import (
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// scalar is a compiled expression.
type scalar struct {
	typ  sqltype.Type
	eval evaluator
	// deps are the slots that it reads.
	deps slotSet
	// constant: neither columns nor variables, so a filtered index may be
	// chosen by it and it can be computed once.
	constant bool
	// reads: it holds a subquery.
	reads bool
	// column is set for a plain column.
	column *columnRef
	// variable: it is a plain variable.
	variable bool
	// notNull: it is never NULL.
	notNull bool
	// strength is the collation's precedence, conflict why there is none.
	strength collationStrength
	conflict *collationConflict
}

var (
	bitType       = sqltype.Type{Kind: sqltype.Bit}
	tinyType      = sqltype.Type{Kind: sqltype.TinyInt}
	smallType     = sqltype.Type{Kind: sqltype.SmallInt}
	intType       = sqltype.Type{Kind: sqltype.Int}
	bigType       = sqltype.Type{Kind: sqltype.BigInt}
	floatType     = sqltype.Type{Kind: sqltype.Float}
	datetimeType  = sqltype.Type{Kind: sqltype.DateTime}
	datetime2Type = sqltype.Type{Kind: sqltype.DateTime2, Scale: 7}
	guidType      = sqltype.Type{Kind: sqltype.UniqueIdentifier}
	nullType      = sqltype.Type{Kind: sqltype.Null}
)

func varcharType(n int) sqltype.Type {
	return sqltype.Type{Kind: sqltype.VarChar, Length: n, Collation: sqltype.DefaultCollation}
}

func nvarcharType(n int) sqltype.Type {
	return sqltype.Type{Kind: sqltype.NVarChar, Length: n, Collation: sqltype.DefaultCollation}
}

func varbinaryType(n int) sqltype.Type { return sqltype.Type{Kind: sqltype.VarBinary, Length: n} }

func intValue(n int64) sqltype.Value { return sqltype.Value{Kind: sqltype.Int, N: n} }
func bigValue(n int64) sqltype.Value { return sqltype.Value{Kind: sqltype.BigInt, N: n} }
func nvarcharValue(s string) sqltype.Value {
	return sqltype.Value{Kind: sqltype.NVarChar, S: s}
}

func varcharValue(s string) sqltype.Value {
	return sqltype.Value{Kind: sqltype.VarChar, S: s}
}

// literal is a constant expression.
func literal(t sqltype.Type, v sqltype.Value) *scalar {
	return &scalar{
		typ: t, constant: true, notNull: !v.IsNull(),
		eval: func(*env) (sqltype.Value, error) { return v, nil },
	}
}

// derive is an expression over others: dependencies are theirs together.
func derive(t sqltype.Type, eval func(e *env) (sqltype.Value, error), from ...*scalar) *scalar {
	s := &scalar{typ: t, eval: eval, constant: true}
	for _, f := range from {
		s.deps |= f.deps
		s.constant = s.constant && f.constant
		s.reads = s.reads || f.reads
		if f.typ.Kind.IsText() && f.strength > s.strength {
			s.strength, s.conflict = f.strength, f.conflict
		}
	}
	return s
}

// expression compiles a scalar expression within a scope.
func (c *compiler) expression(x ast.ScalarExpression, sc *scope) (*scalar, error) {
	if s, ok, err := c.grouped(x, sc); ok || err != nil {
		return s, err
	}
	switch x := x.(type) {
	case nil:
		return nil, errSyntax("")
	case *ast.IntegerLiteral, *ast.NumericLiteral, *ast.RealLiteral, *ast.MoneyLiteral,
		*ast.StringLiteral, *ast.BinaryLiteral, *ast.NullLiteral:
		return c.literal(x)
	case *ast.ParenthesisExpression:
		return c.expression(x.Expression, sc)
	case *ast.VariableReference:
		return c.variable(x.Name)
	case *ast.GlobalVariableExpression:
		return c.globalVariable(x.Name)
	case *ast.ColumnReferenceExpression:
		return c.columnReference(x, sc)
	case *ast.UnaryExpression:
		return c.unary(x, sc)
	case *ast.BinaryExpression:
		return c.binary(x, sc)
	case *ast.SearchedCaseExpression:
		return c.choosing(func() (*scalar, error) { return c.searchedCase(x, sc) })
	case *ast.SimpleCaseExpression:
		return c.choosing(func() (*scalar, error) { return c.simpleCase(x, sc) })
	case *ast.IIfCall:
		return c.choosing(func() (*scalar, error) { return c.iif(x, sc) })
	case *ast.CoalesceExpression:
		return c.choosing(func() (*scalar, error) { return c.coalesce(x, sc) })
	case *ast.NullIfExpression:
		return c.choosing(func() (*scalar, error) { return c.nullIf(x, sc) })
	case *ast.CastCall:
		return c.cast(x.Parameter, x.DataType, nil, x.Collation, false, sc)
	case *ast.ConvertCall:
		return c.cast(x.Parameter, x.DataType, x.Style, x.Collation, false, sc)
	case *ast.TryCastCall:
		return c.cast(x.Parameter, x.DataType, nil, x.Collation, true, sc)
	case *ast.TryConvertCall:
		return c.cast(x.Parameter, x.DataType, x.Style, x.Collation, true, sc)
	case *ast.FunctionCall:
		return c.functionCall(x, sc)
	case *ast.LeftFunctionCall:
		return c.call("LEFT", x.Parameters, sc)
	case *ast.RightFunctionCall:
		return c.call("RIGHT", x.Parameters, sc)
	case *ast.ParameterlessCall:
		return c.call(parameterless(x.ParameterlessCallType), nil, sc)
	case *ast.NextValueForExpression:
		return c.nextValue(x, sc)
	case *ast.ScalarSubquery:
		s, err := c.scalarSubquery(x, sc)
		if err == nil && x.Collation != nil {
			return c.collate(s, x.Collation)
		}
		return s, err
	}
	return nil, notModelled("the expression %s", syntaxName(x))
}

// pair compiles two expressions.
func (c *compiler) pair(x, y ast.ScalarExpression, sc *scope) (a, b *scalar, err error) {
	if a, err = c.expression(x, sc); err != nil {
		return nil, nil, err
	}
	b, err = c.expression(y, sc)
	return a, b, err
}

type evaluator = func(e *env) (sqltype.Value, error)

// both evaluates two expressions.
func both(e *env, a, b evaluator) (va, vb sqltype.Value, err error) {
	if va, err = a(e); err != nil {
		return va, vb, err
	}
	vb, err = b(e)
	return va, vb, err
}

// convertTo makes an expression of another type, as assignment does.
func convertTo(s *scalar, t sqltype.Type) *scalar {
	if s.typ == t || s.typ.Kind == sqltype.Null {
		if s.typ.Kind == sqltype.Null {
			n := *s
			n.typ = t
			return &n
		}
		return s
	}
	inner := s.eval
	out := derive(t, func(e *env) (sqltype.Value, error) {
		v, err := inner(e)
		if err != nil {
			return v, err
		}
		return sqltype.Convert(v, t, 0)
	}, s)
	out.notNull = s.notNull
	if s.constant {
		return fold(out)
	}
	return out
}

// fold computes a constant expression once. One that fails stays as it is: its
// error belongs to the run.
func fold(s *scalar) *scalar {
	v, err := s.eval(nil)
	if err != nil {
		return s
	}
	out := literal(s.typ, v)
	out.strength, out.conflict = s.strength, s.conflict
	return out
}
