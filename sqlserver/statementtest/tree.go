package statementtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	tsql "github.com/sqlc-dev/teesql/ast"
)

// Outline names the statements, with what stands inside them.
func Outline(list []tsql.Statement) string {
	var out []string
	for _, s := range list {
		kind := strings.TrimSuffix(reflect.TypeOf(s).Elem().Name(), "Statement")
		switch s := s.(type) {
		case *tsql.IfStatement:
			inner := Outline([]tsql.Statement{s.ThenStatement})
			if s.ElseStatement != nil {
				inner += " " + Outline([]tsql.Statement{s.ElseStatement})
			}
			out = append(out, "If("+inner+")")
		case *tsql.WhileStatement:
			out = append(out, "While("+Outline([]tsql.Statement{s.Statement})+")")
		case *tsql.BeginEndBlockStatement:
			out = append(out, "Begin("+Outline(s.StatementList.Statements)+")")
		case *tsql.DeclareVariableStatement:
			out = append(out, "Declare")
		case *tsql.SetVariableStatement:
			out = append(out, "Set")
		default:
			out = append(out, kind)
		}
	}
	return strings.Join(out, " ")
}

// HintNames are the table hints in their order, by the parser's names.
func HintNames(hints []tsql.TableHintType) []string {
	var list []string
	for _, h := range hints {
		switch h := h.(type) {
		case *tsql.TableHint:
			list = append(list, h.HintKind)
		case *tsql.IndexTableHint:
			for _, v := range h.IndexValues {
				list = append(list, "INDEX("+strings.Trim(v.Identifier.Value, "[]")+")")
			}
		case *tsql.ForceSeekTableHint:
			list = append(list, "ForceSeek")
		default:
			list = append(list, fmt.Sprintf("%T", h))
		}
	}
	return list
}

// IsColumn says whether e is a column of that name, whatever stands before it.
func IsColumn(e any, name string) bool {
	c, ok := e.(*tsql.ColumnReferenceExpression)
	if !ok || c.MultiPartIdentifier == nil || len(c.MultiPartIdentifier.Identifiers) == 0 {
		return false
	}
	parts := c.MultiPartIdentifier.Identifiers
	return strings.EqualFold(parts[len(parts)-1].Value, name)
}

func isStatusLiteral(e any) bool {
	n, ok := e.(*tsql.IntegerLiteral)
	return ok && slices.Contains([]string{"0", "1", "2"}, n.Value)
}

func executed(n *tsql.ExecuteStatement) string {
	ref, ok := n.ExecuteSpecification.ExecutableEntity.(*tsql.ExecutableProcedureReference)
	if !ok || ref.ProcedureReference == nil || ref.ProcedureReference.ProcedureReference == nil {
		return "?"
	}
	var parts []string
	for _, id := range ref.ProcedureReference.ProcedureReference.Name.Identifiers {
		parts = append(parts, id.Value)
	}
	return strings.Join(parts, ".")
}

// Visit calls f with every pointer to a struct in the tree.
func Visit(root any, f func(any)) {
	seen := make(map[uintptr]bool)
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface:
			walk(v.Elem())
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] {
				return
			}
			if v.Elem().Kind() == reflect.Struct {
				seen[v.Pointer()] = true
				f(v.Interface())
			}
			walk(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(reflect.ValueOf(root))
}
