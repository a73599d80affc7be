package engine

import (
	"cmp"
	"context"
	"runtime"
	"strings"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"
	"github.com/sqlc-dev/teesql/parser"
)

// parse turns a batch into its statements. teesql is lenient: what it lets
// through although SQL Server would not is refused here and where the tree is
// read. parsed is the text that the tree's positions are in.
func parse(text string, quotedIdentifier bool) (list []ast.Statement, parsed string, err error) {
	g := guard{text: text}
	if e := g.check(); e != nil {
		return nil, "", e
	}
	if g.doubleQuoted && !quotedIdentifier {
		return nil, "", notModelled("strings in double quotes (QUOTED_IDENTIFIER is OFF)")
	}
	script, near, err := parseText(text)
	for err != nil {
		quoted, changed := quoteSoftWord(text, near)
		if !changed {
			return nil, "", err
		}
		text = quoted
		script, near, err = parseText(text)
	}
	switch len(script.Batches) {
	case 0:
		return nil, text, nil
	case 1:
	default:
		return nil, "", errSyntax("GO")
	}
	list = wholeBody(script.Batches[0].Statements)
	if err := refuseLater(list); err != nil {
		return nil, "", err
	}
	if err := refuseImplicitExec(text, list); err != nil {
		return nil, "", err
	}
	return list, text, refuseUnterminated(text, list)
}

// parseText calls the parser, which panics over some texts that are not T-SQL.
// near is the token that it did not expect.
func parseText(text string) (script *ast.Script, near string, err error) {
	defer incomplete(&err)
	if script, err = parser.Parse(context.Background(), strings.NewReader(text)); err != nil {
		near = nearOf(err)
		if strings.HasPrefix(err.Error(), "expected comparison operator") {
			return nil, near, errNoCondition(cmp.Or(near, lastToken(text)))
		}
		if reserved[strings.ToUpper(near)] && !strings.EqualFold(lastToken(text), near) {
			return nil, near, errKeyword(near)
		}
		return nil, near, errSyntax(near)
	}
	return script, "", nil
}

// errNoCondition: where a condition must stand is an expression alone.
func errNoCondition(near string) error {
	return raiseBatch(4145, 15, 1, "An expression of non-boolean type specified in a context where a condition is expected, near '%s'.", near)
}

// incomplete is deferred where a tree is read. Of a statement that breaks off the
// parser makes a tree with holes instead of an error, and meeting one is a nil
// dereference: that is a syntax error. The cause stays in the message, in case
// it is a mistake of the engine's own.
func incomplete(err *error) {
	p := recover()
	if p == nil {
		return
	}
	cause, ok := p.(runtime.Error)
	if !ok {
		panic(p)
	}
	*err = raiseBatch(102, 15, 1, "Incorrect syntax: the statement is not complete (%v).", cause)
}

// nearOf picks the token that the parser names.
func nearOf(err error) string {
	msg := err.Error()
	if i := strings.LastIndexAny(msg, ": "); i >= 0 {
		return msg[i+1:]
	}
	return msg
}

// refuseImplicitExec: a procedure may be called without EXEC as the first
// statement of a batch only. Anywhere else words that are left over look like
// such a call to the parser.
func refuseImplicitExec(text string, list []ast.Statement) error {
	var units []uint16
	first := true
	var found error
	eachStatement(list, func(st ast.Statement) {
		isFirst := first
		first = false
		ex, ok := st.(*ast.ExecuteStatement)
		if !ok || isFirst || found != nil {
			return
		}
		if units == nil {
			units = utf16.Encode([]rune(text))
		}
		if ex.StartOffset < 0 || ex.StartOffset >= len(units) {
			return
		}
		end := min(ex.StartOffset+7, len(units))
		word := strings.ToUpper(string(utf16.Decode(units[ex.StartOffset:end])))
		if !strings.HasPrefix(word, "EXEC") {
			name := strings.Fields(string(utf16.Decode(units[ex.StartOffset:])))
			found = errSyntax(strings.Trim(name[0], ";,"))
		}
	})
	return found
}

// eachStatement visits statements in the order of the text.
func eachStatement(list []ast.Statement, f func(ast.Statement)) {
	for _, st := range list {
		if st == nil {
			continue
		}
		f(st)
		for _, inner := range innerLists(st) {
			eachStatement(inner, f)
		}
	}
}

func statements(l *ast.StatementList) []ast.Statement {
	if l == nil {
		return nil
	}
	return l.Statements
}
