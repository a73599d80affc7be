package sqltype

import (
	"cmp"
	"strings"
)

// Comparer orders values of one type. NULL sorts first, as in ORDER BY and in
// an index.
func Comparer(t Type) func(a, b Value) int {
	var compare func(a, b Value) int
	switch {
	case t.Kind.IsText():
		c := t.Collation
		if c == nil {
			c = DefaultCollation
		}
		compare = func(a, b Value) int { return c.Compare(a.S, b.S) }
	default:
		compare = CompareSame
	}
	return func(a, b Value) int {
		if a.Kind == Null || b.Kind == Null {
			return cmp.Compare(min(a.Kind, 1), min(b.Kind, 1))
		}
		return compare(a, b)
	}
}

// CompareSame orders two values that are not NULL and of one family (integers
// of any width are one).
func CompareSame(a, b Value) int {
	switch {
	case a.Kind.IsApproximate() || b.Kind.IsApproximate():
		return cmp.Compare(a.float(), b.float())
	case a.Kind == Decimal || b.Kind == Decimal || (a.Kind == Money) != (b.Kind == Money):
		if a.Kind == b.Kind && a.Scale == b.Scale && !a.Big && !b.Big {
			return cmp.Compare(a.N, b.N)
		}
		return a.Decimal().Cmp(b.Decimal())
	case a.Kind.IsNumeric() || a.Kind.IsTemporal():
		return cmp.Compare(a.N, b.N)
	case a.Kind == UniqueIdentifier:
		return compareGUID(a.S, b.S)
	case a.Kind.IsBinary():
		// binary pads with zeroes: trailing ones do not count
		return strings.Compare(strings.TrimRight(a.S, "\x00"), strings.TrimRight(b.S, "\x00"))
	case a.Kind.IsText():
		return DefaultCollation.Compare(a.S, b.S)
	}
	return strings.Compare(a.S, b.S)
}

// compareGUID orders as SQL Server does: the last six bytes count most, then
// the groups before them, each from its left in its stored order. Stored is
// little-endian for the first three groups; S is in the order of the text.
func compareGUID(a, b string) int {
	if len(a) != 16 || len(b) != 16 {
		return strings.Compare(a, b)
	}
	for _, i := range [16]int{10, 11, 12, 13, 14, 15, 8, 9, 7, 6, 5, 4, 3, 2, 1, 0} {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return 0
}

// HashKey is equal for values that compare equal under the type; it serves
// GROUP BY, DISTINCT and hash lookups.
func HashKey(b []byte, v Value, t Type) []byte {
	if v.IsNull() {
		return append(b, 0, 0)
	}
	s := v.S
	switch {
	case v.Kind.IsText():
		s = t.Collation.Key(s)
	case v.Kind.IsBinary():
		s = strings.TrimRight(s, "\x00")
	case v.Kind == UniqueIdentifier:
	default:
		s = Format(v)
	}
	b = append(b, 1)
	b = append(b, byte(len(s)>>24), byte(len(s)>>16), byte(len(s)>>8), byte(len(s)))
	return append(b, s...)
}
