package engine

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// concat is + over texts or binaries. The result is as long as both, at most
// 8,000 bytes unless one side is MAX.
func concat(a, b *scalar, t sqltype.Type, nullIsEmpty bool) (*scalar, error) {
	mix := mixture{}
	if a.typ.Kind.IsText() && b.typ.Kind.IsText() {
		var err error
		if mix, err = mixCollations("add", a, b); err != nil {
			return nil, err
		}
		t.Collation = mix.collation
	}
	limit := 8000
	if t.Kind.IsUnicode() {
		limit = 4000
	}
	t.Length = sumLengths(a.typ, b.typ, limit)
	switch t.Kind {
	case sqltype.Char:
		t.Kind = sqltype.VarChar
	case sqltype.NChar:
		t.Kind = sqltype.NVarChar
	case sqltype.Binary:
		t.Kind = sqltype.VarBinary
	}
	operand := t
	operand.Length = sqltype.Max
	fa, fb := convertTo(a, operand).eval, convertTo(b, operand).eval
	out := derive(t, func(e *env) (sqltype.Value, error) {
		va, vb, err := both(e, fa, fb)
		if err != nil || (va.IsNull() || vb.IsNull()) && !nullIsEmpty {
			return sqltype.Value{}, err
		}
		return sqltype.Convert(sqltype.Value{Kind: t.Kind, S: va.S + vb.S}, t, 0)
	}, a, b)
	mix.mark(out)
	if out.constant {
		return fold(out), nil
	}
	return out, nil
}

func sumLengths(a, b sqltype.Type, limit int) int {
	if (isLong(a) && a.Length == sqltype.Max) || (isLong(b) && b.Length == sqltype.Max) {
		return sqltype.Max
	}
	return min(max(1, displayLength(a)+displayLength(b)), limit)
}

func isLong(t sqltype.Type) bool { return t.Kind.IsText() || t.Kind.IsBinary() }

// displayLength is how many characters a value can take as text.
func displayLength(t sqltype.Type) int {
	switch {
	case isLong(t):
		return t.Length
	case t.Kind == sqltype.Null:
		return 0
	}
	return 40
}
