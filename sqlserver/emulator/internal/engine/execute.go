package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// executeStatement is EXEC of a procedure or of a text.
func (b *builder) executeStatement(st *ast.ExecuteStatement) (node, error) {
	spec := st.ExecuteSpecification
	if spec.LinkedServer != nil || spec.ExecuteContext != nil {
		return nil, notModelled("EXEC AT and EXEC AS")
	}
	for _, o := range st.Options {
		if r, ok := o.(*ast.ExecuteOption); !ok || r.OptionKind != "Recompile" {
			return nil, notModelled("EXEC WITH RESULT SETS")
		}
	}
	line := lineOf(st)
	switch ent := spec.ExecutableEntity.(type) {
	case *ast.ExecutableStringList:
		var parts []*unit[*scalar]
		for _, s := range ent.Strings {
			parts = append(parts, b.expression(s, line))
		}
		if len(ent.Parameters) > 0 {
			return nil, notModelled("EXEC of a text with parameters")
		}
		return &execText{parts}, nil
	case *ast.ExecutableProcedureReference:
		return b.executeProcedure(spec, ent, line)
	}
	return nil, notModelled("EXEC of %s", syntaxName(spec.ExecutableEntity))
}

// execText is EXEC ('…').
type execText struct{ parts []*unit[*scalar] }

func (n *execText) run(x *exec) (signal, error) {
	var text strings.Builder
	for _, p := range n.parts {
		v, err := x.value(p)
		if err != nil {
			return goOn, err
		}
		text.WriteString(v.S)
	}
	mod, err := x.s.newModule(text.String(), "", false)
	if err != nil {
		return goOn, err
	}
	_, err = x.invoke("EXEC", mod, nil, nil, nil)
	return goOn, err
}

// dynamic runs a text as sp_executesql does.
func (x *exec) dynamic(text, params string, args []argument) (int32, error) {
	mod, err := x.s.newModule(text, params, true)
	if err != nil {
		return 0, err
	}
	return x.invoke("sp_executesql", mod, mod.params, args, nil)
}

// execProc is EXEC procedure.
type execProc struct {
	name   *ast.SchemaObjectName
	byVar  *unit[*scalar]
	args   []execArgument
	status int // variable for the return status, -1 for none
	stType sqltype.Type
}

type execArgument struct {
	name     string
	value    *unit[*scalar]
	variable int // scalar variable passed, for OUTPUT; -1
	typ      sqltype.Type
	table    int // table variable passed, -1
	output   bool
	fallback bool
}

func (b *builder) executeProcedure(spec *ast.ExecuteSpecification, ent *ast.ExecutableProcedureReference, line int32) (node, error) {
	n := &execProc{status: -1}
	if ent.ProcedureReference.ProcedureVariable != nil {
		n.byVar = b.expression(ent.ProcedureReference.ProcedureVariable, line)
	} else {
		n.name = ent.ProcedureReference.ProcedureReference.Name
	}
	vars := b.mod.vars.now()
	if spec.Variable != nil {
		i, t, ok := vars.scalar(spec.Variable.Name)
		if !ok {
			return nil, errUndeclared(spec.Variable.Name)
		}
		n.status, n.stType = i, t
	}
	named := false
	for _, p := range ent.Parameters {
		a := execArgument{variable: -1, table: -1, output: p.IsOutput}
		if p.Variable != nil {
			a.name, named = p.Variable.Name, true
		} else if named {
			return nil, raiseBatch(119, 15, 1, "Must pass parameter number and subsequent parameters as '@name = value'. After the form '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'.")
		}
		switch v := p.ParameterValue.(type) {
		case *ast.DefaultLiteral:
			a.fallback = true
		case *ast.IdentifierLiteral: // EXEC p word: a word without quotes is a text
			a.value = b.expression(&ast.StringLiteral{Value: v.Value}, line)
		case *ast.VariableReference:
			if i, _, ok := vars.table(v.Name); ok {
				a.table = i
				break
			}
			i, t, ok := vars.scalar(v.Name)
			if !ok {
				return nil, errUndeclared(v.Name)
			}
			a.variable, a.typ = i, t
			a.value = b.expression(v, line)
		default:
			if a.output {
				return nil, raiseBatch(179, 15, 1, "Cannot use the OUTPUT option when passing a constant to a stored procedure.")
			}
			if err := plain(v); err != nil {
				return nil, err
			}
			a.value = b.expression(v, line)
		}
		n.args = append(n.args, a)
	}
	return n, nil
}

// plain refuses an expression where a constant or a variable has to stand: an
// argument of EXECUTE, THROW and RAISERROR.
func plain(x ast.ScalarExpression) error {
	switch x := x.(type) {
	case nil, *ast.IntegerLiteral, *ast.NumericLiteral, *ast.RealLiteral, *ast.MoneyLiteral, *ast.StringLiteral,
		*ast.BinaryLiteral, *ast.NullLiteral, *ast.VariableReference, *ast.GlobalVariableExpression:
		return nil
	case *ast.UnaryExpression:
		if _, number := x.Expression.(*ast.VariableReference); !number && x.UnaryExpressionType != "BitwiseNot" {
			return plain(x.Expression)
		}
		return errSyntax("-")
	case *ast.BinaryExpression:
		return errSyntax("+")
	}
	return errSyntax("(")
}

func (n *execProc) run(x *exec) (signal, error) {
	args, err := n.arguments(x)
	if err != nil {
		return goOn, err
	}
	var name []string
	if n.byVar != nil {
		v, err := x.value(n.byVar)
		if err != nil {
			return goOn, err
		}
		name = nameParts(v.S)
	} else {
		name = partsOf(n.name)
	}
	status, err := x.callNamed(name, args)
	if err != nil {
		return goOn, err
	}
	if n.status >= 0 {
		if x.vars[n.status], err = sqltype.Convert(intValue(int64(status)), n.stType, 0); err != nil {
			return goOn, err
		}
	}
	return goOn, nil
}

func (n *execProc) arguments(x *exec) ([]argument, error) {
	args := make([]argument, len(n.args))
	for i, a := range n.args {
		out := argument{name: a.name, output: a.output, useDefault: a.fallback}
		if a.table >= 0 {
			out.table = x.tables[a.table]
		}
		if a.value != nil {
			v, err := x.value(a.value)
			if err != nil {
				return nil, err
			}
			out.value, out.typ = v, a.typ
		}
		if a.output && a.variable >= 0 {
			target, typ := a.variable, a.typ
			out.back = func(v sqltype.Value, _ sqltype.Type) (err error) {
				x.vars[target], err = sqltype.Convert(v, typ, 0)
				return err
			}
		}
		args[i] = out
	}
	return args, nil
}

// callNamed runs the procedure that a name of several parts means.
func (x *exec) callNamed(parts []string, args []argument) (int32, error) {
	if err := x.s.engine.local(parts); err != nil {
		return 0, err
	}
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	return x.call(schema, parts[len(parts)-1], args)
}

// call runs a procedure by its name: the system's or the user's.
func (x *exec) call(schema, name string, args []argument) (int32, error) {
	if f, ok := systemProcedures[strings.ToLower(name)]; ok && (schema == "" || strings.EqualFold(schema, "sys") || strings.EqualFold(schema, "dbo")) {
		return f(x, args)
	}
	if (schema == "" || strings.EqualFold(schema, "sys")) && systemProcedureNames[strings.ToLower(name)] {
		return 0, notModelled("the system procedure %s", name)
	}
	if schema == "" {
		schema = "dbo"
	}
	if err := x.settle(schema, name); err != nil {
		return 0, err
	}
	p, ok := x.s.engine.catalog.find(nameOf(schema, name)).(*procedure)
	if !ok {
		full := name
		if schema != "dbo" {
			full = schema + "." + name
		}
		return 0, errNoProcedure(full)
	}
	if err := x.allowed([]need{{object: &p.objectHeader, permission: "EXECUTE"}}); err != nil {
		return 0, err
	}
	return x.invoke(p.name, p.mod, p.params, args, p)
}

// splitName cuts a name of one to three parts, with or without brackets, into
// schema and name.
func splitName(s string) (schema, name string) {
	parts := nameParts(s)
	name = parts[len(parts)-1]
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	return schema, name
}

// nameParts reads a possibly quoted multi-part name, as OBJECT_ID does.
func nameParts(s string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '[', '"':
			closing := c
			if c == '[' {
				closing = ']'
			}
			for i++; i < len(s); i++ {
				if s[i] == closing {
					if i+1 < len(s) && s[i+1] == closing {
						i++
					} else {
						break
					}
				}
				b.WriteByte(s[i])
			}
		case '.':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	parts = append(parts, strings.TrimSpace(b.String()))
	return parts
}
