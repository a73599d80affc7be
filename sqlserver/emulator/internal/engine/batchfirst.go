package engine

import "github.com/sqlc-dev/teesql/ast"

// firstOnly are the statements that begin a batch, and the word that another
// place makes a mistake of.
func firstOnly(st ast.Statement) (statement, word string) {
	switch st.(type) {
	case *ast.CreateProcedureStatement, *ast.CreateOrAlterProcedureStatement:
		return "CREATE/ALTER PROCEDURE", "PROCEDURE"
	case *ast.AlterProcedureStatement:
		return "CREATE/ALTER PROCEDURE", "PROCEDURE"
	case *ast.CreateTriggerStatement, *ast.CreateOrAlterTriggerStatement:
		return "CREATE TRIGGER", "TRIGGER"
	case *ast.AlterTriggerStatement:
		return "ALTER TRIGGER", "TRIGGER"
	case *ast.CreateSchemaStatement:
		return "CREATE SCHEMA", "SCHEMA"
	}
	return "", ""
}

// wholeBody: the parser ends the body of ALTER TRIGGER at the first semicolon;
// it is the rest of the batch.
func wholeBody(list []ast.Statement) []ast.Statement {
	if len(list) < 2 {
		return list
	}
	st, ok := list[0].(*ast.AlterTriggerStatement)
	if !ok || st.StatementList == nil {
		return list
	}
	st.StatementList.Statements = append(st.StatementList.Statements, list[1:]...)
	return list[:1]
}

// refuseLater: those statements must be the first of their batch.
func refuseLater(list []ast.Statement) error {
	top := make(map[ast.Statement]bool, len(list))
	for _, st := range list {
		top[st] = true
	}
	first := true
	var found error
	eachStatement(list, func(st ast.Statement) {
		isFirst := first
		first = false
		statement, word := firstOnly(st)
		switch {
		case statement == "" || isFirst || found != nil:
		case top[st]:
			found = raiseBatch(111, 15, 1, "'%s' must be the first statement in a query batch.", statement)
		default:
			found = errKeyword(word)
		}
	})
	return found
}
