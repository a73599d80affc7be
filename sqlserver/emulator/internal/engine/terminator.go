package engine

import (
	"strings"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"
)

// refuseUnterminated: before WITH of a common table expression and before THROW the
// statement ahead must end with a semicolon (sql-docs,
// with-common-table-expression-transact-sql.md, throw-transact-sql.md). The parser
// does without.
func refuseUnterminated(text string, list []ast.Statement) (err error) {
	var units []uint16
	followers(list, func(st ast.Statement, start int) {
		if err != nil {
			return
		}
		if units == nil {
			units = utf16.Encode([]rune(text))
		}
		if start <= 0 || start > len(units) || lastToken(string(utf16.Decode(units[:start]))) == ";" {
			return
		}
		if _, throw := st.(*ast.ThrowStatement); throw {
			err = errSyntax("THROW")
			return
		}
		err = raiseBatch(319, 15, 1, "Incorrect syntax near the keyword 'with'. If this statement is a common table expression, an xmlnamespaces clause or a change tracking context clause, the previous statement must be terminated with a semicolon.")
	})
	return err
}

// followers visits each THROW and each statement with WITH that another stands
// before in its list, and says where it starts.
func followers(list []ast.Statement, f func(st ast.Statement, start int)) {
	for i, st := range list {
		if i > 0 {
			if start, found := needsTerminator(st); found {
				f(st, start)
			}
		}
		for _, inner := range innerLists(st) {
			followers(inner, f)
		}
	}
}

func needsTerminator(st ast.Statement) (start int, found bool) {
	switch st := st.(type) {
	case *ast.ThrowStatement:
		return st.StartOffset, true
	case *ast.SelectStatement:
		return st.StartOffset, st.WithCtesAndXmlNamespaces != nil
	case *ast.InsertStatement:
		return st.StartOffset, st.WithCtesAndXmlNamespaces != nil
	case *ast.UpdateStatement:
		return st.StartOffset, st.WithCtesAndXmlNamespaces != nil
	case *ast.DeleteStatement:
		return st.StartOffset, st.WithCtesAndXmlNamespaces != nil
	}
	return 0, false
}

// innerLists are the statements within a statement, list by list.
func innerLists(st ast.Statement) [][]ast.Statement {
	switch st := st.(type) {
	case *ast.BeginEndBlockStatement:
		return [][]ast.Statement{statements(st.StatementList)}
	case *ast.IfStatement:
		return [][]ast.Statement{{st.ThenStatement}, {st.ElseStatement}}
	case *ast.WhileStatement:
		return [][]ast.Statement{{st.Statement}}
	case *ast.TryCatchStatement:
		return [][]ast.Statement{statements(st.TryStatements), statements(st.CatchStatements)}
	case *ast.CreateProcedureStatement:
		return [][]ast.Statement{statements(st.StatementList)}
	case *ast.CreateOrAlterProcedureStatement:
		return [][]ast.Statement{statements(st.StatementList)}
	case *ast.CreateTriggerStatement:
		return [][]ast.Statement{statements(st.StatementList)}
	case *ast.CreateOrAlterTriggerStatement:
		return [][]ast.Statement{statements(st.StatementList)}
	case *ast.AlterTriggerStatement:
		return [][]ast.Statement{statements(st.StatementList)}
	}
	return nil
}

// lastToken is the last token of a text that is no comment.
func lastToken(text string) string {
	g := guard{text: strings.TrimSpace(text)}
	for g.next() {
	}
	return g.token
}
