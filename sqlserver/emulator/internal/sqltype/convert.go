package sqltype

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// Convert brings a value to a type as CONVERT(type, value, style) does: text
// that is too long for a char or varchar is cut without a word, numbers out of
// range are errors. It is what assignment to a variable does too; columns go
// through Assign.
func Convert(v Value, to Type, style int) (Value, error) {
	if v.Kind == Null {
		return v, nil
	}
	switch {
	case to.Kind.IsInteger():
		return toInteger(v, to)
	case to.Kind.IsText():
		return toText(v, to, style)
	case to.Kind == Decimal || to.Kind == Money:
		return toDecimal(v, to)
	case to.Kind.IsApproximate():
		return toFloat(v, to)
	case to.Kind.IsTemporal():
		return toTemporal(v, to)
	case to.Kind.IsBinary():
		return toBinary(v, to, style)
	case to.Kind == UniqueIdentifier:
		return toGUID(v, to)
	case to.Kind == SQLVariant, to.Kind == Null:
		return v, nil
	case to.Kind == XML && v.Kind.IsText():
		return Value{Kind: XML, S: v.S}, nil
	}
	return Value{}, errNotAllowed(v.Kind, to)
}

func toInteger(v Value, to Type) (Value, error) {
	var n int64
	switch {
	case v.Kind.IsInteger():
		n = v.N
	case v.Kind == Decimal:
		d := v.Decimal().Truncate(0)
		if !d.BigInt().IsInt64() {
			return Value{}, errOverflow(to)
		}
		n = d.IntPart()
		if lo, hi := integerRange(to.Kind); to.Kind != Bit && (n < lo || n > hi) {
			return Value{}, errOverflow(to)
		}
	case v.Kind == Money:
		n = v.Decimal().Round(0).IntPart()
	case v.Kind.IsApproximate():
		f := math.Trunc(v.float())
		lo, hi := integerRange(to.Kind)
		if to.Kind != Bit && (math.IsNaN(f) || f < float64(lo) || f >= math.MaxInt64 || f > float64(hi)) {
			return Value{}, errOverflowFloat(f, to)
		}
		n = int64(f)
	case v.Kind.IsText():
		return textToInteger(v, to)
	case v.Kind.IsBinary():
		for i := max(0, len(v.S)-8); i < len(v.S); i++ {
			n = n<<8 | int64(v.S[i])
		}
	case v.Kind == DateTime || v.Kind == SmallDateTime:
		n = (v.N - days1900*TicksPerDay + TicksPerDay/2) / TicksPerDay
	default:
		return Value{}, errNotAllowed(v.Kind, to)
	}
	if to.Kind == Bit {
		return NewBool(n != 0), nil
	}
	if lo, hi := integerRange(to.Kind); n < lo || n > hi {
		if v.Kind.IsInteger() && to.Kind != Int {
			return Value{}, errOverflowValue(v, to)
		}
		return Value{}, errOverflow(to)
	}
	return Value{Kind: to.Kind, N: n}, nil
}

// NewBool is a bit.
func NewBool(b bool) Value {
	v := Value{Kind: Bit}
	if b {
		v.N = 1
	}
	return v
}

func textToInteger(v Value, to Type) (Value, error) {
	n, ok, overflow := parseInteger(v.S)
	if to.Kind == Bit {
		switch {
		case strings.EqualFold(strings.TrimSpace(v.S), "true"):
			return NewBool(true), nil
		case strings.EqualFold(strings.TrimSpace(v.S), "false"):
			return NewBool(false), nil
		case !ok:
			return Value{}, errConversionText(v, to)
		}
		return NewBool(n != 0), nil
	}
	lo, hi := integerRange(to.Kind)
	if overflow || (ok && (n < lo || n > hi)) {
		switch to.Kind {
		case BigInt:
			return Value{}, errOverflowFrom(v.Kind, to)
		case TinyInt, SmallInt:
			return Value{}, &Error{244, "The conversion of the " + v.Kind.String() + " value '" + v.S + "' overflowed an INT" + map[Kind]string{TinyInt: "1", SmallInt: "2"}[to.Kind] + " column. Use a larger integer column."}
		}
		return Value{}, errTextOverflow(v, to)
	}
	if !ok {
		// bigint says 8114 where the smaller types say 245
		if to.Kind == BigInt {
			return Value{}, errConversionType(v.Kind, to)
		}
		return Value{}, errConversionText(v, to)
	}
	return Value{Kind: to.Kind, N: n}, nil
}

func toText(v Value, to Type, style int) (Value, error) {
	s := v.S
	switch {
	case v.Kind.IsText():
	case v.Kind.IsBinary() && style == 0:
		if to.Kind.IsUnicode() {
			s = utf16LEText(v.S)
		} else {
			s = DecodeCodePage(v.S, to.Collation)
		}
	default:
		var err error
		if s, err = FormatStyle(v, style); err != nil {
			return Value{}, err
		}
		if to.Length != Max && len(s) > to.Length && (v.Kind.IsNumeric() || v.Kind == UniqueIdentifier) {
			return Value{}, tooShortForNumber(v, to)
		}
	}
	if !to.Kind.IsUnicode() {
		s = encodable(s, to.Collation)
		if to.Length != Max {
			s = cutBytes(s, to.Length, to.Collation)
		}
		if to.Kind == Char {
			if pad := to.Length - byteLength(s, to.Collation); pad > 0 {
				s += strings.Repeat(" ", pad)
			}
		}
		return Value{Kind: to.Kind, S: s}, nil
	}
	if to.Length != Max {
		s = CutUTF16(s, to.Length)
	}
	if to.Kind == NChar {
		if pad := to.Length - UTF16Length(s); pad > 0 {
			s += strings.Repeat(" ", pad)
		}
	}
	return Value{Kind: to.Kind, S: s}, nil
}

// tooShortForNumber: SQL Server writes a '*' for an int that does not fit a
// varchar (sql-docs, "CAST and CONVERT", truncating results). Nobody wants that;
// the emulator says 8115, as SQL Server does for the other numbers.
func tooShortForNumber(v Value, to Type) error {
	if v.Kind == UniqueIdentifier {
		return &Error{8170, "Insufficient result space to convert uniqueidentifier value to char."}
	}
	return errOverflowFrom(v.Kind, to)
}

func toDecimal(v Value, to Type) (Value, error) {
	if v.Kind == Decimal && to.Kind == Decimal && !v.Big && v.Scale == to.Scale && to.Precision >= maxInlineDigits {
		return v, nil
	}
	if v.Kind == to.Kind && to.Kind == Money {
		return v, nil
	}
	d := v.Decimal()
	switch {
	case v.Kind.IsNumeric():
		if v.Kind.IsApproximate() && (math.IsNaN(v.float()) || math.IsInf(v.float(), 0)) {
			return Value{}, errOverflow(to)
		}
	case v.Kind.IsText():
		var ok bool
		if d, ok = parseDecimal(v.S); !ok {
			return Value{}, errConversionType(v.Kind, to)
		}
	default:
		return Value{}, errNotAllowed(v.Kind, to)
	}
	if to.Kind == Money {
		return newMoney(d)
	}
	out, err := NewDecimal(d, to)
	if err != nil {
		return Value{}, errOverflowFrom(v.Kind, to)
	}
	return out, nil
}

func toFloat(v Value, to Type) (Value, error) {
	f := 0.0
	switch {
	case v.Kind.IsNumeric():
		f = v.float()
	case v.Kind.IsText():
		s := strings.TrimSpace(v.S)
		if s != "" {
			var err error
			if f, err = strconv.ParseFloat(s, 64); err != nil {
				return Value{}, errConversionType(v.Kind, to)
			}
		}
	default:
		return Value{}, errNotAllowed(v.Kind, to)
	}
	if to.Kind == Real {
		f = float64(float32(f))
	}
	if math.IsInf(f, 0) {
		return Value{}, errOverflow(to)
	}
	return FloatValue(to.Kind, f), nil
}

func toTemporal(v Value, to Type) (Value, error) {
	if v.Kind.IsTemporal() {
		return convertTemporal(v, to)
	}
	if v.Kind.IsInteger() && (to.Kind == DateTime || to.Kind == SmallDateTime) {
		return convertTemporal(Value{Kind: DateTime2, N: (days1900 + v.N) * TicksPerDay}, to)
	}
	if !v.Kind.IsText() {
		return Value{}, errNotAllowed(v.Kind, to)
	}
	ticks, offset, hasOffset, ok := parseTemporal(v.S)
	if !ok || ticks < 0 {
		return Value{}, errDateText()
	}
	if _, fraction, _ := strings.Cut(v.S, "."); (to.Kind == DateTime || to.Kind == SmallDateTime) && digits(fraction) > 3 {
		return Value{}, errDateText() // a datetime has three places, its text no more
	}
	if to.Kind == DateTimeOffset {
		return Value{Kind: DateTimeOffset, N: roundTicks(ticks, to.Scale), Offset: offset, Scale: to.Scale}, nil
	}
	if hasOffset && to.Kind != DateTime2 && to.Kind != Date && to.Kind != Time && offset != 0 {
		return Value{}, errDateText()
	}
	return convertTemporal(Value{Kind: DateTime2, N: ticks + int64(offset)*ticksPerMinute}, to)
}

// digits is how many digits a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func toBinary(v Value, to Type, style int) (Value, error) {
	b := v.S
	switch {
	case v.Kind.IsBinary():
	case v.Kind.IsText() && style == 0:
		if v.Kind.IsUnicode() {
			b = utf16LE(v.S)
		}
		// the bytes of a varchar depend on its collation: see TextBytes
	case v.Kind.IsText():
		h := v.S
		if style == 1 {
			var ok bool
			if h, ok = strings.CutPrefix(strings.ToLower(h), "0x"); !ok {
				return Value{}, errConversionType(v.Kind, to)
			}
		}
		raw, err := hex.DecodeString(h)
		if err != nil {
			return Value{}, errConversionType(v.Kind, to)
		}
		b = string(raw)
	case v.Kind.IsInteger():
		size := map[Kind]int{Bit: 1, TinyInt: 1, SmallInt: 2, Int: 4, BigInt: 8}[v.Kind]
		raw := make([]byte, size)
		for i := range raw {
			raw[size-1-i] = byte(v.N >> (8 * i))
		}
		b = string(raw)
		if to.Kind == Binary && to.Length < len(b) {
			b = b[len(b)-to.Length:]
		}
	case v.Kind == UniqueIdentifier:
		b = string(SwapGUID([]byte(v.S)))
	default:
		return Value{}, errNotAllowed(v.Kind, to)
	}
	if to.Length != Max && len(b) > to.Length {
		b = b[:to.Length]
	}
	if to.Kind == Binary && len(b) < to.Length {
		pad := strings.Repeat("\x00", to.Length-len(b))
		if v.Kind.IsInteger() {
			b = pad + b
		} else {
			b += pad
		}
	}
	return Value{Kind: to.Kind, S: b}, nil
}

// TextBytes is a char or varchar of the collation as the binary value that
// CONVERT to VARBINARY sees: its bytes in the collation's code page.
func TextBytes(v Value, c *Collation) Value {
	if v.IsNull() {
		return v
	}
	return Value{Kind: VarBinary, S: EncodeCodePage(v.S, c)}
}

func toGUID(v Value, to Type) (Value, error) {
	switch {
	case v.Kind == UniqueIdentifier:
		return v, nil
	case v.Kind.IsText():
		b, ok := ParseGUID(v.S)
		if !ok {
			return Value{}, errGUIDText()
		}
		return Value{Kind: UniqueIdentifier, S: b}, nil
	case v.Kind.IsBinary():
		b := make([]byte, 16)
		copy(b, v.S)
		return Value{Kind: UniqueIdentifier, S: string(SwapGUID(b))}, nil
	}
	return Value{}, errNotAllowed(v.Kind, to)
}

// SwapGUID turns the text order of a GUID's bytes into SQL Server's stored
// order (first three groups little-endian), or back.
func SwapGUID(b []byte) []byte {
	if len(b) != 16 {
		return b
	}
	return []byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]}
}
