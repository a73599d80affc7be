package sqltype

import "strings"

// Truncation says that a text or binary value does not fit its column.
type Truncation struct {
	// Kept is the part that would have fitted; 2628 quotes it.
	Kept string
}

func (*Truncation) Error() string { return "String or binary data would be truncated." }

// Assign brings a value to a column's type. Where Convert cuts, Assign refuses
// with a *Truncation, unless only trailing spaces (zeroes for binary) go.
func Assign(v Value, to Type) (Value, error) {
	if v.Kind == Null {
		return v, nil
	}
	if to.Length != Max && v.Kind.IsText() && to.Kind.IsText() {
		s := v.S
		var n int
		if to.Kind.IsUnicode() {
			n = UTF16Length(s)
		} else {
			s = encodable(s, to.Collation)
			n = byteLength(s, to.Collation)
		}
		if n > to.Length {
			kept, err := Convert(v, to, 0)
			if err != nil {
				return Value{}, err
			}
			if strings.TrimRight(s, " ") != strings.TrimRight(kept.S, " ") {
				return Value{}, &Truncation{Kept: kept.S}
			}
			return kept, nil
		}
		if to.Kind == VarChar || to.Kind == NVarChar {
			return Value{Kind: to.Kind, S: s}, nil
		}
	}
	if to.Length != Max && v.Kind.IsBinary() && to.Kind.IsBinary() && len(v.S) > to.Length {
		if strings.Trim(v.S[to.Length:], "\x00") != "" {
			return Value{}, &Truncation{Kept: v.S[:to.Length]}
		}
	}
	return Convert(v, to, 0)
}

// DataLength is the bytes a value takes, as DATALENGTH says.
func DataLength(v Value, t Type) int64 {
	switch {
	case v.Kind.IsUnicode():
		return int64(2 * UTF16Length(v.S))
	case v.Kind.IsText():
		return int64(byteLength(v.S, t.Collation))
	case v.Kind.IsBinary():
		return int64(len(v.S))
	}
	return int64(fixedSize(v.Kind, t))
}

func fixedSize(k Kind, t Type) int {
	switch k {
	case Bit, TinyInt:
		return 1
	case SmallInt:
		return 2
	case Int, Real, SmallDateTime:
		return 4
	case BigInt, Float, DateTime, Money:
		return 8
	case Date:
		return 3
	case Time:
		return timeSize(t.Scale)
	case DateTime2:
		return 3 + timeSize(t.Scale)
	case DateTimeOffset:
		return 5 + timeSize(t.Scale)
	case UniqueIdentifier:
		return 16
	case Decimal:
		switch {
		case t.Precision <= 9:
			return 5
		case t.Precision <= 19:
			return 9
		case t.Precision <= 28:
			return 13
		}
		return 17
	}
	return 0
}

// timeSize is sql-docs' table of time: 3 bytes up to two digits, 4 up to four,
// 5 above.
func timeSize(scale uint8) int {
	switch {
	case scale <= 2:
		return 3
	case scale <= 4:
		return 4
	}
	return 5
}
