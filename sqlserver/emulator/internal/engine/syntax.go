package engine

import (
	"reflect"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// hasAggregate says whether a query's select list, HAVING or ORDER BY calls an
// aggregate of its own.
func hasAggregate(x *ast.QuerySpecification) bool {
	return aggregates(x.SelectElements) || aggregates(x.OrderByClause)
}

// aggregates says whether a piece of a statement has an aggregate, which queries
// within it do not count for.
func aggregates(x any) bool {
	found := false
	walk(reflect.ValueOf(x), func(n any) bool {
		switch n := n.(type) {
		case *ast.FunctionCall:
			if n.OverClause == nil && n.FunctionName != nil && isAggregate(n.FunctionName.Value) {
				found = true
			}
		case *ast.QuerySpecification, *ast.BinaryQueryExpression:
			return false
		}
		return !found
	})
	return found
}

// queries says whether a piece of a statement has a query within it.
func queries(x any) bool {
	found := false
	walk(reflect.ValueOf(x), func(n any) bool {
		if _, ok := n.(*ast.QuerySpecification); ok {
			found = true
		}
		return !found
	})
	return found
}

// hasVariable says whether a statement names a variable.
func hasVariable(st ast.Statement) bool {
	found := false
	walk(reflect.ValueOf(st), func(n any) bool {
		if _, ok := n.(*ast.VariableReference); ok {
			found = true
		}
		return !found
	})
	return found
}

// walk visits the nodes of a syntax tree; visit returns false to stay out of a
// node.
func walk(v reflect.Value, visit func(n any) bool) {
	switch v.Kind() {
	case reflect.Interface:
		walk(v.Elem(), visit)
	case reflect.Pointer:
		if v.IsNil() || !visit(v.Interface()) {
			return
		}
		walk(v.Elem(), visit)
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Fragment" {
				walk(v.Field(i), visit)
			}
		}
	}
}

// syntaxText is a tree as text, the same for trees that differ only in where
// they stand and in the case of names.
func syntaxText(x any) string {
	var b strings.Builder
	writeSyntax(&b, reflect.ValueOf(x))
	return b.String()
}

func writeSyntax(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			b.WriteByte('-')
			return
		}
		writeSyntax(b, v.Elem())
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			writeSyntax(b, v.Index(i))
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case reflect.Struct:
		b.WriteString(v.Type().Name())
		b.WriteByte('{')
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Name != "Fragment" && f.Name != "QuoteType" {
				writeSyntax(b, v.Field(i))
				b.WriteByte(';')
			}
		}
		b.WriteByte('}')
	case reflect.String:
		if v.Type().Name() == "string" {
			b.WriteString(strings.ToLower(v.String()))
		}
	case reflect.Bool:
		if v.Bool() {
			b.WriteByte('t')
		}
	case reflect.Int:
		b.WriteByte(byte('0' + v.Int()%10))
	}
}
