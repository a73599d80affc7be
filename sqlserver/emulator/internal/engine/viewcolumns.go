package engine

import (
	"fmt"
	"strconv"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// documented makes columns of "name type" as a view's page of sql-docs lists
// them, separated by semicolons. All may be NULL.
func documented(list string) []outCol {
	var cols []outCol
	for _, declaration := range strings.Split(list, ";") {
		name, typ, _ := strings.Cut(strings.TrimSpace(declaration), " ")
		if name != "" {
			cols = append(cols, outCol{name: name, typ: documentedType(typ), nullable: true})
		}
	}
	return cols
}

// documentedType panics on a type that it does not know: a mistake in a list.
func documentedType(text string) sqltype.Type {
	name, arguments, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(text), ")"), "(")
	var n []int
	for _, a := range strings.FieldsFunc(arguments, func(r rune) bool { return r == ',' }) {
		v, err := strconv.Atoi(strings.TrimSpace(a))
		if err != nil {
			v = sqltype.Max
		}
		n = append(n, v)
	}
	if name == "sysname" {
		return nvarcharType(128)
	}
	kind, ok := typeNames[name]
	if !ok {
		panic(fmt.Sprintf("engine: a view's column has the type %q", text))
	}
	t := sqltype.Type{Kind: kind}
	switch {
	case kind.IsText():
		t.Length, t.Collation = n[0], sqltype.DefaultCollation
	case kind.IsBinary():
		t.Length = n[0]
	case kind == sqltype.Decimal:
		t.Precision, t.Scale = uint8(n[0]), uint8(n[1])
	case kind == sqltype.DateTime2, kind == sqltype.DateTimeOffset:
		t.Scale = 7
	}
	return t
}

// partRow is a row of a view's columns by name; the others are NULL.
func partRow(cols []outCol, values map[string]any) []sqltype.Value {
	row := make([]any, len(cols))
	for name, v := range values {
		at := columnIn(cols, name)
		if at < 0 {
			panic("engine: no column " + name)
		}
		row[at] = v
	}
	return catalogRow(cols, row...)
}
