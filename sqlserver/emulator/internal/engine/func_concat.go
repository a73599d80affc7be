package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"CONCAT":    {2, 254, buildConcat},
	"CONCAT_WS": {3, 254, buildConcatWS},
})

// concatType: nvarchar if any argument is, MAX if any is, at most 8,000 bytes
// otherwise.
func concatType(c *compiler, args []*scalar) sqltype.Type {
	t := sqltype.Type{Kind: sqltype.VarChar, Collation: c.engine.database.collation}
	long := false
	length := 0
	for _, a := range args {
		if a.typ.Kind.IsUnicode() {
			t.Kind = sqltype.NVarChar
		}
		if a.typ.Kind.IsText() && a.strength >= implicitCollation {
			t.Collation = a.typ.Collation
		}
		long = long || (isLong(a.typ) && a.typ.Length == sqltype.Max)
		length += displayLength(a.typ)
	}
	t.Length = min(max(length, 1), 8000)
	if t.Kind.IsUnicode() {
		t.Length = min(t.Length, 4000)
	}
	if long {
		t.Length = sqltype.Max
	}
	return t
}

// buildConcat is CONCAT: NULL is the empty text.
func buildConcat(c *compiler, args []*scalar) (*scalar, error) {
	t := concatType(c, args)
	return derive(t, func(e *env) (sqltype.Value, error) {
		var b strings.Builder
		for _, a := range args {
			v, err := a.eval(e)
			if err != nil {
				return v, err
			}
			if !v.IsNull() {
				b.WriteString(sqltype.Format(v))
			}
		}
		return sqltype.Convert(sqltype.Value{Kind: t.Kind, S: b.String()}, t, 0)
	}, args...), nil
}

func buildConcatWS(c *compiler, args []*scalar) (*scalar, error) {
	t := concatType(c, args)
	return derive(t, func(e *env) (sqltype.Value, error) {
		sep, err := args[0].eval(e)
		if err != nil {
			return sep, err
		}
		var parts []string
		for _, a := range args[1:] {
			v, err := a.eval(e)
			if err != nil {
				return v, err
			}
			if !v.IsNull() {
				parts = append(parts, sqltype.Format(v))
			}
		}
		return sqltype.Convert(sqltype.Value{Kind: t.Kind, S: strings.Join(parts, sep.S)}, t, 0)
	}, args...), nil
}
