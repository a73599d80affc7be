package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// messageStatement is PRINT, THROW and RAISERROR.
func (b *builder) messageStatement(st ast.Statement) (node, error) {
	line := lineOf(st)
	switch st := st.(type) {
	case *ast.PrintStatement:
		if takesSequence(st.Expression, false) {
			return nil, errSequenceStatement()
		}
		if queries(st.Expression) {
			return nil, raiseBatch(1046, 15, 1, "Subqueries are not allowed in this context. Only scalar expressions are allowed.")
		}
		u := b.expression(st.Expression, line)
		compile := u.build
		u.build = func(c *compiler) (*scalar, error) {
			s, err := compile(c)
			return s, errNotColumn(err)
		}
		return action(func(x *exec) error {
			v, err := x.value(u)
			if err != nil {
				return err
			}
			text := " "
			if !v.IsNull() {
				text = sqltype.Format(v)
			}
			return x.w.Info(&tds.Error{Message: text, Server: x.s.engine.config.Server, Line: line, State: 1})
		}), nil
	case *ast.ThrowStatement:
		return b.throw(st, line)
	case *ast.RaiseErrorStatement:
		return b.raiseError(st, line)
	}
	return nil, notModelled("the statement %s", syntaxName(st))
}

func (b *builder) throw(st *ast.ThrowStatement, line int32) (node, error) {
	if st.ErrorNumber == nil {
		return action(func(x *exec) error {
			if x.caught == nil {
				return raiseBatch(10704, 15, 1, "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement.")
			}
			again := *x.caught
			if again.effect == endsStatement || again.effect == sparesTransaction {
				again.effect = endsBatch
			}
			again.terminated = false
			return &again
		}), nil
	}
	for _, x := range []ast.ScalarExpression{st.ErrorNumber, st.Message, st.State} {
		if err := plain(x); err != nil {
			return nil, err
		}
	}
	number, text, state := b.expression(st.ErrorNumber, line), b.expression(st.Message, line), b.expression(st.State, line)
	return action(func(x *exec) error {
		n, err := x.intOf(number)
		if err != nil {
			return err
		}
		v, err := x.value(text)
		if err != nil {
			return err
		}
		s, err := x.intOf(state)
		if err != nil {
			return err
		}
		if s < 0 || s > 255 {
			return raiseBatch(220, 16, 2, "Arithmetic overflow error for data type tinyint, value = %d.", s)
		}
		message, err := throwText(sqltype.CutUTF16(v.S, 2048))
		if err != nil {
			return err
		}
		if n < 50000 {
			return raiseBatch(35100, 16, 10, "Error number %d in the THROW statement is outside the valid range. Specify an error number in the valid range of 50000 to 2147483647.", n)
		}
		e := raiseBatch(int32(n), 16, uint8(s), "%s", message)
		e.Line = line
		return e
	}), nil
}

// throwText: a % stands doubled in the message of a THROW (sql-docs, "THROW");
// what one alone becomes is not written.
func throwText(s string) (string, error) {
	plain := strings.ReplaceAll(s, "%%", "")
	if strings.Contains(plain, "%") {
		return "", notModelled("a %% alone in the message of a THROW, which SQL Server reserves; double it")
	}
	return strings.ReplaceAll(s, "%%", "%"), nil
}

func (x *exec) intOf(u *unit[*scalar]) (int64, error) {
	v, err := x.value(u)
	if err != nil {
		return 0, err
	}
	v, err = sqltype.Convert(v, intType, 0)
	return v.N, err
}

// raiseError has NOWAIT send messages at once, as sql-docs, "RAISERROR", says;
// errors go out with what follows them. LOG has no log to write to.
func (b *builder) raiseError(st *ast.RaiseErrorStatement, line int32) (node, error) {
	if strings.Contains(st.RaiseErrorOptions, "SetError") {
		return nil, notModelled("RAISERROR WITH SETERROR")
	}
	noWait := strings.Contains(st.RaiseErrorOptions, "NoWait")
	first, class, state := b.expression(st.FirstParameter, line), b.expression(st.SecondParameter, line), b.expression(st.ThirdParameter, line)
	for _, x := range append([]ast.ScalarExpression{st.FirstParameter, st.SecondParameter, st.ThirdParameter}, st.OptionalParameters...) {
		if err := plain(x); err != nil {
			return nil, err
		}
	}
	var args []*unit[*scalar]
	for _, p := range st.OptionalParameters {
		args = append(args, b.expression(p, line))
	}
	return action(func(x *exec) error {
		m, err := x.value(first)
		if err != nil {
			return err
		}
		sev, err := x.intOf(class)
		if err != nil {
			return err
		}
		code, err := x.intOf(state)
		if err != nil {
			return err
		}
		var values []sqltype.Value
		for _, u := range args {
			v, err := x.value(u)
			if err != nil {
				return err
			}
			values = append(values, v)
		}
		number, text := int32(50000), ""
		if m.Kind.IsInteger() {
			return raise(18054, 16, 1, "Error %d, severity %d, state %d was raised, but no message with that error number was found in sys.messages. If error is larger than 50000, make sure the user-defined message is added using sp_addmessage.", m.N, sev, code)
		}
		if err := formatErrors(m.S, values); err != nil {
			return err
		}
		text = formatMessage(m.S, values)
		if sev > 18 { // WITH LOG is for sysadmin, which nobody is here
			return raise(2754, 16, 1, "Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG option.")
		}
		if sev <= 10 {
			err := x.w.Info(&tds.Error{Number: number, Class: uint8(max(sev, 0)), State: uint8(code), Message: text, Server: x.s.engine.config.Server, Line: line})
			if err == nil && noWait {
				err = x.w.Flush()
			}
			return err
		}
		e := raise(number, uint8(min(sev, 25)), uint8(max(code, 0)), "%s", text)
		e.effect, e.Line = sparesTransaction, line
		return e
	}), nil
}

var _ = register(map[string]function{
	"ERROR_NUMBER":   {0, 0, caught(intType, func(e *sqlError) sqltype.Value { return intValue(int64(e.Number)) })},
	"ERROR_SEVERITY": {0, 0, caught(intType, func(e *sqlError) sqltype.Value { return intValue(int64(e.Class)) })},
	"ERROR_STATE":    {0, 0, caught(intType, func(e *sqlError) sqltype.Value { return intValue(int64(e.State)) })},
	"ERROR_LINE":     {0, 0, caught(intType, func(e *sqlError) sqltype.Value { return intValue(int64(e.Line)) })},
	"ERROR_MESSAGE":  {0, 0, caught(nvarcharType(4000), func(e *sqlError) sqltype.Value { return nvarcharValue(e.Message) })},
	"ERROR_PROCEDURE": {0, 0, caught(nvarcharType(128), func(e *sqlError) sqltype.Value {
		if e.Procname == "" {
			return sqltype.Value{}
		}
		return nvarcharValue(e.Procname)
	})},
	"FORMATMESSAGE": {1, 21, buildFormatMessage},
})

// caught is a property of the error that the innermost CATCH handles.
func caught(t sqltype.Type, f func(*sqlError) sqltype.Value) func(*compiler, []*scalar) (*scalar, error) {
	return func(*compiler, []*scalar) (*scalar, error) {
		return &scalar{typ: t, eval: func(e *env) (sqltype.Value, error) {
			for x := e.x; x != nil; x = x.caller {
				if x.caught != nil {
					return f(x.caught), nil
				}
			}
			return sqltype.Value{}, nil
		}}, nil
	}
}

func buildFormatMessage(_ *compiler, args []*scalar) (*scalar, error) {
	return derive(nvarcharType(2048), func(e *env) (sqltype.Value, error) {
		vals := make([]sqltype.Value, len(args))
		for i, a := range args {
			v, err := a.eval(e)
			if err != nil {
				return v, err
			}
			vals[i] = v
		}
		if vals[0].IsNull() {
			return sqltype.Value{}, nil
		}
		return nvarcharValue(formatMessage(vals[0].S, vals[1:])), nil
	}, args...), nil
}
