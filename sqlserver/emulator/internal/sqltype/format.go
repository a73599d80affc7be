package sqltype

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Format is the value as CONVERT to varchar without a style writes it, NULL as
// "NULL".
func Format(v Value) string {
	s, _ := FormatStyle(v, 0)
	return s
}

// FormatStyle is the value as CONVERT with the style writes it.
func FormatStyle(v Value, style int) (string, error) {
	switch {
	case v.IsNull():
		return "NULL", nil
	case v.Kind.IsText(), v.Kind == XML:
		return v.S, nil
	case v.Kind.IsInteger():
		return strconv.FormatInt(v.N, 10), nil
	case v.Kind == Decimal:
		return formatDecimal(v), nil
	case v.Kind == Money:
		return v.Decimal().StringFixed(2), nil
	case v.Kind.IsApproximate():
		return formatFloat(v.float()), nil
	case v.Kind == UniqueIdentifier:
		return FormatGUID(v.S), nil
	case v.Kind.IsBinary():
		return formatBinary(v.S, style)
	case v.Kind.IsTemporal():
		return formatTemporal(v, style)
	}
	return v.S, nil
}

func formatDecimal(v Value) string {
	if v.Big {
		return v.S
	}
	if v.Scale == 0 {
		return strconv.FormatInt(v.N, 10)
	}
	return v.Decimal().StringFixed(int32(v.Scale))
}

// formatFloat: six digits, as style 0 does.
func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', 6, 64)
	mantissa, exponent, found := strings.Cut(s, "e")
	if !found {
		return s
	}
	digits := strings.TrimLeft(exponent[1:], "0")
	return mantissa + "e" + exponent[:1] + strings.Repeat("0", max(0, 3-len(digits))) + digits
}

// formatBinary: style 0 takes the bytes as characters, 1 and 2 write hex with
// and without 0x.
func formatBinary(b string, style int) (string, error) {
	switch style {
	case 0:
		return DecodeCodePage(b, nil), nil
	case 1:
		return "0x" + strings.ToUpper(hex.EncodeToString([]byte(b))), nil
	case 2:
		return strings.ToUpper(hex.EncodeToString([]byte(b))), nil
	}
	return "", &Error{281, fmt.Sprintf("%d is not a valid style number when converting from varbinary to a character string.", style)}
}

// FormatGUID is the text form of 16 bytes.
func FormatGUID(b string) string {
	if len(b) != 16 {
		return ""
	}
	h := strings.ToUpper(hex.EncodeToString([]byte(b)))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseGUID reads the text form, with or without braces.
func ParseGUID(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "{") {
		s = strings.TrimSuffix(s[1:], "}")
	}
	if len(s) < 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", false
	}
	b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36])
	return string(b), err == nil
}

func formatTemporal(v Value, style int) (string, error) {
	if v.Kind == Date {
		v = Value{Kind: Date, N: v.N * TicksPerDay}
	}
	local := v.N + int64(v.Offset)*ticksPerMinute
	t := TimeOf(local)
	frac := fraction(local%TicksPerSecond, v)
	clock := t.Format("15:04:05")
	offset := ""
	if v.Kind == DateTimeOffset {
		o, sgn := int(v.Offset), "+"
		if o < 0 {
			o, sgn = -o, "-"
		}
		offset = fmt.Sprintf(" %s%02d:%02d", sgn, o/60, o%60)
	}
	legacy := v.Kind == DateTime || v.Kind == SmallDateTime
	switch style {
	case 0, 100:
		if legacy {
			return t.Format("Jan _2 2006 ") + fmt.Sprintf("%7s", t.Format("3:04PM")), nil
		}
		style = 121
	case 20, 120:
		if v.Kind == Date {
			return t.Format("2006-01-02"), nil
		}
		return t.Format("2006-01-02 ") + clock + offset, nil
	case 23:
		return t.Format("2006-01-02"), nil
	case 101:
		return t.Format("01/02/2006"), nil
	case 103:
		return t.Format("02/01/2006"), nil
	case 104:
		return t.Format("02.01.2006"), nil
	case 108, 8:
		return clock, nil
	case 112:
		return t.Format("20060102"), nil
	case 114, 14:
		return clock + strings.Replace(frac, ".", ":", 1), nil
	case 21, 25:
		style = 121
	}
	switch style {
	case 121:
		switch v.Kind {
		case Date:
			return t.Format("2006-01-02"), nil
		case Time:
			return clock + frac, nil
		}
		return t.Format("2006-01-02 ") + clock + frac + offset, nil
	case 126, 127:
		switch v.Kind {
		case Date:
			return t.Format("2006-01-02"), nil
		case Time:
			return clock + frac, nil
		}
		if local%TicksPerSecond == 0 && legacy {
			frac = "" // documented for datetime: no zero milliseconds
		}
		if style == 127 && v.Kind == DateTimeOffset {
			return TimeOf(v.N).Format("2006-01-02T15:04:05") + frac + "Z", nil
		}
		return t.Format("2006-01-02T15:04:05") + frac + strings.TrimPrefix(offset, " "), nil
	}
	return "", &Error{281, fmt.Sprintf("%d is not a valid style number when converting from %s to a character string.", style, v.Kind)}
}

// fraction is the seconds' fraction with its point, as many digits as the type
// has.
func fraction(ticks int64, v Value) string {
	digits := v.Scale
	switch v.Kind {
	case DateTime:
		digits = 3
	case SmallDateTime, Date:
		digits = 0
	}
	if digits == 0 {
		return ""
	}
	return fmt.Sprintf(".%07d", ticks)[:1+digits]
}
