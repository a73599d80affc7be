package engine

import (
	"math"
	"strings"

	"github.com/shopspring/decimal"
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func (c *compiler) unary(x *ast.UnaryExpression, sc *scope) (*scalar, error) {
	s, err := c.expression(x.Expression, sc)
	if err != nil {
		return nil, err
	}
	if x.UnaryExpressionType == "Positive" {
		return s, nil
	}
	inner, t := s.eval, s.typ
	var out *scalar
	switch {
	case x.UnaryExpressionType == "Negative" && t.Kind.IsNumeric():
		out = derive(t, func(e *env) (sqltype.Value, error) {
			v, err := inner(e)
			if err != nil || v.IsNull() {
				return v, err
			}
			return arithmetic("Subtract", t, sqltype.Value{Kind: v.Kind, Scale: v.Scale}, v)
		}, s)
	case x.UnaryExpressionType == "BitwiseNot" && t.Kind.IsInteger():
		out = derive(t, func(e *env) (sqltype.Value, error) {
			v, err := inner(e)
			if err != nil || v.IsNull() {
				return v, err
			}
			return arithmetic("BitwiseXor", t, v, sqltype.Value{Kind: v.Kind, N: -1})
		}, s)
	default:
		return nil, raiseBatch(8117, 16, 1, "Operand data type %s is invalid for %s operator.", t.Name(), x.UnaryExpressionType)
	}
	if s.constant {
		return fold(out), nil
	}
	return out, nil
}

func (c *compiler) binary(x *ast.BinaryExpression, sc *scope) (*scalar, error) {
	a, b, err := c.pair(x.FirstExpression, x.SecondExpression, sc)
	if err != nil {
		return nil, err
	}
	return c.operate(x.BinaryExpressionType, a, b)
}

// operate is a binary operator over two compiled operands.
func (c *compiler) operate(op string, a, b *scalar) (*scalar, error) {
	t := sqltype.Common(a.typ, b.typ)
	switch {
	case op == "Add" && (t.Kind.IsText() || t.Kind.IsBinary()):
		return concat(a, b, t, c.nullIsEmpty)
	case t.Kind == sqltype.DateTime || t.Kind == sqltype.SmallDateTime:
		return dateArithmetic(op, a, b, t)
	case bitwise[op] && !t.Kind.IsInteger() && t.Kind != sqltype.Null:
		return nil, errOperator(a.typ, b.typ, op)
	case a.typ.Kind == b.typ.Kind && (t.Kind == sqltype.Bit && !bitwise[op] || !t.Kind.IsNumeric() && t.Kind != sqltype.Null):
		return nil, raiseBatch(8117, 16, 1, "Operand data type %s is invalid for %s operator.", t.Name(), operatorName(op))
	case incompatible(a.typ, b.typ):
		return nil, raiseBatch(206, 16, 2, "Operand type clash: %s is incompatible with %s", a.typ.Name(), b.typ.Name())
	case !t.Kind.IsNumeric() && t.Kind != sqltype.Null:
		return nil, errOperator(a.typ, b.typ, op)
	}
	rt := resultType(op, exactDigits(a, t), exactDigits(b, t), t)
	// exact operands keep their own digits: the result type has room for both
	ea, eb := a, b
	if t.Kind != sqltype.Decimal || a.typ.Kind.IsText() || b.typ.Kind.IsText() {
		ea, eb = convertTo(a, t), convertTo(b, t)
	}
	fa, fb := ea.eval, eb.eval
	out := derive(rt, func(e *env) (sqltype.Value, error) {
		va, vb, err := both(e, fa, fb)
		if err != nil || va.IsNull() || vb.IsNull() {
			return sqltype.Value{}, err
		}
		return arithmetic(op, rt, va, vb)
	}, a, b)
	if out.constant {
		return fold(out), nil
	}
	return out, nil
}

func errOperator(a, b sqltype.Type, op string) error {
	return raiseBatch(402, 16, 1, "The data types %s and %s are incompatible in the %s operator.", a.Name(), b.Name(), operatorName(op))
}

var bitwise = map[string]bool{"BitwiseAnd": true, "BitwiseOr": true, "BitwiseXor": true}

// operatorName is an operator as the messages call it.
func operatorName(op string) string {
	switch op {
	case "BitwiseAnd":
		return "'&'"
	case "BitwiseOr":
		return "'|'"
	case "BitwiseXor":
		return "'^'"
	}
	return strings.ToLower(op)
}

// resultType is the type of an arithmetic result (sql-docs, "Precision, scale,
// and length").
func resultType(op string, a, b, t sqltype.Type) sqltype.Type {
	if t.Kind == sqltype.Bit {
		if op == "BitwiseAnd" || op == "BitwiseOr" || op == "BitwiseXor" {
			return t
		}
		return intType
	}
	if t.Kind != sqltype.Decimal {
		return t
	}
	p1, s1 := digitsOf(a)
	p2, s2 := digitsOf(b)
	var p, s int
	switch op {
	case "Multiply":
		p, s = p1+p2+1, s1+s2
	case "Divide":
		s = max(6, s1+p2+1)
		p = p1 - s1 + s2 + s
	case "Modulo":
		s = max(s1, s2)
		p = min(p1-s1, p2-s2) + s
	default:
		s = max(s1, s2)
		p = max(p1-s1, p2-s2) + s + 1
	}
	if p > 38 {
		s = max(min(s, 38-(p-s)), min(s, 6))
		p = 38
	}
	return sqltype.Type{Kind: sqltype.Decimal, Precision: uint8(p), Scale: uint8(s)}
}

// exactDigits: beside a decimal a whole literal counts with the digits that it
// has, not with those of int.
func exactDigits(s *scalar, t sqltype.Type) sqltype.Type {
	if t.Kind != sqltype.Decimal || !s.constant || !s.typ.Kind.IsInteger() {
		return s.typ
	}
	v, err := s.eval(nil)
	if err != nil || v.IsNull() {
		return s.typ
	}
	return sqltype.Type{Kind: sqltype.Decimal, Precision: uint8(len(strings.TrimLeft(sqltype.Format(v), "-")))}
}

func digitsOf(t sqltype.Type) (precision, scale int) {
	switch t.Kind {
	case sqltype.Decimal:
		return int(t.Precision), int(t.Scale)
	case sqltype.BigInt:
		return 19, 0
	case sqltype.Int:
		return 10, 0
	case sqltype.SmallInt:
		return 5, 0
	case sqltype.TinyInt:
		return 3, 0
	case sqltype.Money:
		return 19, 4
	case sqltype.Bit:
		return 1, 0
	}
	return 38, 0
}

func errDivideByZero() error {
	return raiseTerminated(8134, 16, 1, "Divide by zero error encountered.")
}

func arithmetic(op string, t sqltype.Type, a, b sqltype.Value) (sqltype.Value, error) {
	switch {
	case t.Kind.IsInteger():
		return integerArithmetic(op, t, a.N, b.N)
	case t.Kind.IsApproximate():
		return floatArithmetic(op, t, a.Float(), b.Float())
	}
	x, y := a.Decimal(), b.Decimal()
	var r decimal.Decimal
	switch op {
	case "Add":
		r = x.Add(y)
	case "Subtract":
		r = x.Sub(y)
	case "Multiply":
		r = x.Mul(y)
	case "Divide", "Modulo":
		if y.IsZero() {
			return sqltype.Value{}, errDivideByZero()
		}
		if op == "Modulo" {
			r = x.Mod(y)
		} else {
			r = x.DivRound(y, int32(t.Scale)+1).Truncate(int32(t.Scale))
		}
	default:
		return sqltype.Value{}, raise(8117, 16, 1, "Operand data type %s is invalid for %s operator.", t.Name(), op)
	}
	if t.Kind == sqltype.Money {
		wide := sqltype.Type{Kind: sqltype.Decimal, Precision: 38, Scale: 4}
		v, err := sqltype.NewDecimal(r, wide)
		if err != nil {
			return v, err
		}
		return sqltype.Convert(v, t, 0)
	}
	return sqltype.NewDecimal(r, t)
}

func integerArithmetic(op string, t sqltype.Type, a, b int64) (sqltype.Value, error) {
	var r int64
	over := false
	switch op {
	case "Add":
		r = a + b
		over = (r > a) != (b > 0) && b != 0
	case "Subtract":
		r = a - b
		over = (r < a) != (b > 0) && b != 0
	case "Multiply":
		r = a * b
		over = a != 0 && (r/a != b || (a == -1 && b == math.MinInt64))
	case "Divide", "Modulo":
		if b == 0 {
			return sqltype.Value{}, errDivideByZero()
		}
		if op == "Modulo" {
			if b != -1 {
				r = a % b
			}
		} else {
			over = a == math.MinInt64 && b == -1
			if !over {
				r = a / b
			}
		}
	case "BitwiseAnd":
		r = a & b
	case "BitwiseOr":
		r = a | b
	case "BitwiseXor":
		r = a ^ b
	default:
		return sqltype.Value{}, notModelled("the operator %s", op)
	}
	if t.Kind == sqltype.TinyInt && op == "BitwiseXor" {
		r &= 0xff
	}
	if over {
		return sqltype.Value{}, &sqltype.Error{Number: 8115, Message: "Arithmetic overflow error converting expression to data type " + t.Name() + "."}
	}
	if t.Kind == sqltype.BigInt {
		return sqltype.Value{Kind: t.Kind, N: r}, nil
	}
	v, err := sqltype.Convert(sqltype.Value{Kind: sqltype.BigInt, N: r}, t, 0)
	if err != nil {
		return v, &sqltype.Error{Number: 8115, Message: "Arithmetic overflow error converting expression to data type " + t.Name() + "."}
	}
	return v, nil
}

func floatArithmetic(op string, t sqltype.Type, a, b float64) (sqltype.Value, error) {
	var r float64
	switch op {
	case "Add":
		r = a + b
	case "Subtract":
		r = a - b
	case "Multiply":
		r = a * b
	case "Divide":
		if b == 0 {
			return sqltype.Value{}, errDivideByZero()
		}
		r = a / b
	default:
		return sqltype.Value{}, raise(8117, 16, 1, "Operand data type %s is invalid for %s operator.", t.Name(), op)
	}
	return sqltype.Convert(sqltype.FloatValue(sqltype.Float, r), t, 0)
}

// dateArithmetic: datetime plus or minus days.
func dateArithmetic(op string, a, b *scalar, t sqltype.Type) (*scalar, error) {
	if op != "Add" && op != "Subtract" {
		return nil, errOperator(a.typ, b.typ, op)
	}
	fa, fb := convertTo(a, datetimeType).eval, convertTo(b, datetimeType).eval
	return derive(t, func(e *env) (sqltype.Value, error) {
		va, vb, err := both(e, fa, fb)
		if err != nil || va.IsNull() || vb.IsNull() {
			return sqltype.Value{}, err
		}
		const base = 693595 * sqltype.TicksPerDay // 1900-01-01
		n := va.N + (vb.N - base)
		if op == "Subtract" {
			n = va.N - (vb.N - base)
		}
		return sqltype.Convert(sqltype.Value{Kind: sqltype.DateTime2, N: n}, t, 0)
	}, a, b), nil
}
