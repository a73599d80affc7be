package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// function is a built-in scalar function.
type function struct {
	min, max int
	build    builtin
}

// builtin compiles a call of a function.
type builtin = func(c *compiler, args []*scalar) (*scalar, error)

// builtins is filled by the func_*.go files, each of which registers its own
// family; a new function is one entry there.
var builtins = make(map[string]function)

func register(family map[string]function) bool {
	for name, f := range family {
		builtins[name] = f
	}
	return true
}

// values is a function of its arguments' values, NULL when any of them is.
func values(t func(args []*scalar) sqltype.Type, f func(e *env, v []sqltype.Value) (sqltype.Value, error)) func(*compiler, []*scalar) (*scalar, error) {
	return func(_ *compiler, args []*scalar) (*scalar, error) {
		s := derive(t(args), func(e *env) (sqltype.Value, error) {
			v := make([]sqltype.Value, len(args))
			for i, a := range args {
				val, err := a.eval(e)
				if err != nil || val.IsNull() {
					return sqltype.Value{}, err
				}
				v[i] = val
			}
			return f(e, v)
		}, args...)
		s.constant = false
		return s, nil
	}
}

// counting is a function with whole numbers as its arguments from first to last.
func counting(first, last int, build builtin) builtin {
	return func(c *compiler, args []*scalar) (*scalar, error) {
		args = slices.Clone(args)
		for i := first; i <= last && i < len(args); i++ {
			if args[i].typ.Kind.IsInteger() {
				continue
			}
			if err := implicitly(args[i].typ, intType); err != nil {
				return nil, err
			}
			args[i] = convertTo(args[i], intType)
		}
		return build(c, args)
	}
}

// calculating is a function of a number, which a text is converted to.
func calculating(name string, build builtin) builtin {
	return func(c *compiler, args []*scalar) (*scalar, error) {
		args = slices.Clone(args)
		switch k := args[0].typ.Kind; {
		case k.IsText():
			args[0] = convertTo(args[0], floatType)
		case !k.IsNumeric() && k != sqltype.Null:
			return nil, raiseBatch(8116, 16, 1, "Argument data type %s is invalid for argument 1 of %s function.", args[0].typ.Name(), name)
		}
		return build(c, args)
	}
}

// fixed is a result type that does not depend on the arguments.
func fixed(t sqltype.Type) func([]*scalar) sqltype.Type {
	return func([]*scalar) sqltype.Type { return t }
}

// xmlMethods are those of the xml type.
var xmlMethods = map[string]bool{"value": true, "query": true, "exist": true, "nodes": true, "modify": true}

func (c *compiler) functionCall(x *ast.FunctionCall, sc *scope) (*scalar, error) {
	name := strings.ToUpper(x.FunctionName.Value)
	if _, method := x.CallTarget.(*ast.ExpressionCallTarget); method || xmlMethods[strings.ToLower(x.FunctionName.Value)] && x.CallTarget != nil {
		return nil, notModelled("methods of values: .%s()", x.FunctionName.Value)
	}
	if x.CallTarget != nil {
		return nil, raiseBatch(4121, 16, 1, "Cannot find either column or the user-defined function or aggregate \"%s\", or the name is ambiguous.", x.FunctionName.Value)
	}
	switch {
	case x.OverClause != nil:
		return c.windowCall(x, sc)
	case isAggregate(name):
		return c.aggregateCall(x, sc)
	case x.TrimOptions != nil:
		return nil, notModelled("TRIM with %s", x.TrimOptions.Value)
	case len(x.JsonParameters) > 0:
		return nil, notModelled("%s", name)
	}
	s, err := c.call(name, x.Parameters, sc)
	if err == nil && x.Collation != nil {
		return c.collate(s, x.Collation)
	}
	return s, err
}

// datePartFirst are the functions whose first argument is a keyword.
var datePartFirst = map[string]bool{"DATEADD": true, "DATEDIFF": true, "DATEDIFF_BIG": true, "DATEPART": true, "DATENAME": true, "DATETRUNC": true}

func (c *compiler) call(name string, params []ast.ScalarExpression, sc *scope) (*scalar, error) {
	f, ok := builtins[name]
	if !ok {
		return nil, errNoFunction(name)
	}
	if len(params) < f.min || len(params) > f.max {
		if f.min == f.max {
			return nil, raiseBatch(174, 15, 1, "The %s function requires %d argument(s).", strings.ToLower(name), f.min)
		}
		return nil, raiseBatch(189, 15, 1, "The %s function requires %d to %d arguments.", strings.ToLower(name), f.min, f.max)
	}
	if chooses[name] {
		c.choices++
		defer func() { c.choices-- }()
	}
	args := make([]*scalar, len(params))
	for i, p := range params {
		if i == 0 && datePartFirst[name] {
			part, err := datePartName(p)
			if err != nil {
				return nil, err
			}
			args[0] = literal(varcharType(20), varcharValue(part))
			continue
		}
		s, err := c.expression(p, sc)
		if err != nil {
			return nil, err
		}
		args[i] = s
	}
	return f.build(c, args)
}

// datePartName is the keyword, which the parser takes for a column.
func datePartName(x ast.ScalarExpression) (string, error) {
	if col, ok := x.(*ast.ColumnReferenceExpression); ok && col.MultiPartIdentifier != nil && col.MultiPartIdentifier.Count == 1 {
		return strings.ToLower(col.MultiPartIdentifier.Identifiers[0].Value), nil
	}
	if id, ok := x.(*ast.IdentifierLiteral); ok {
		return strings.ToLower(id.Value), nil
	}
	return "", raiseBatch(1023, 15, 1, "Invalid parameter 1 specified for datepart.")
}

// parameterless maps the parser's names of functions without parentheses.
func parameterless(kind string) string {
	switch kind {
	case "CurrentTimestamp":
		return "GETDATE"
	case "CurrentUser", "User", "SessionUser":
		return "USER_NAME"
	case "SystemUser":
		return "SUSER_SNAME"
	}
	return strings.ToUpper(kind)
}

// asText converts arguments to text where they are none.
func asText(args []*scalar) []*scalar {
	out := append([]*scalar(nil), args...)
	for i, a := range out {
		if !a.typ.Kind.IsText() {
			out[i] = convertTo(a, varcharType(8000))
		}
	}
	return out
}

// textual is a function over text: its arguments are converted first.
func textual(t func(args []*scalar) sqltype.Type, f func(e *env, v []sqltype.Value) (sqltype.Value, error)) func(*compiler, []*scalar) (*scalar, error) {
	build := values(t, f)
	return func(c *compiler, args []*scalar) (*scalar, error) {
		texts := append(asText(args[:1]), args[1:]...)
		return build(c, texts)
	}
}
