package tds

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var errDecimal = errors.New("a decimal does not fit its type")

// smallDecimal is the first magnitude that sqltype.Value holds as text: 18
// digits fit an int64 whatever is done with them next.
const smallDecimal = 1_000_000_000_000_000_000

// uint128 holds the 38 digits that a decimal may have.
type uint128 struct{ hi, lo uint64 }

// mulAdd is u*10+digit; false when that is too much.
func (u uint128) mulAdd(digit uint64) (uint128, bool) {
	carry, lo := bits.Mul64(u.lo, 10)
	over, hi := bits.Mul64(u.hi, 10)
	lo, c := bits.Add64(lo, digit, 0)
	hi, c = bits.Add64(hi, carry, c)
	return uint128{hi, lo}, over == 0 && c == 0
}

// divMod is u/10 and the remainder.
func (u uint128) divMod() (uint128, uint64) {
	hi, rem := u.hi/10, u.hi%10
	lo, rem := bits.Div64(rem, u.lo, 10)
	return uint128{hi, lo}, rem
}

// text is the decimal text with scale digits behind the point.
func (u uint128) text(negative bool, scale int) string {
	var digits [48]byte
	i := len(digits)
	for n := 0; u != (uint128{}) || n <= scale; n++ {
		if n == scale && scale > 0 {
			i--
			digits[i] = '.'
		}
		var d uint64
		u, d = u.divMod()
		i--
		digits[i] = byte('0' + d)
	}
	if negative {
		i--
		digits[i] = '-'
	}
	return string(digits[i:])
}

func parseDecimal(s string) (u uint128, negative bool, scale int, err error) {
	digits, negative := strings.CutPrefix(s, "-")
	point := false
	for i := range len(digits) {
		c := digits[i]
		if c == '.' && !point {
			point = true
			continue
		}
		ok := c >= '0' && c <= '9'
		if ok {
			u, ok = u.mulAdd(uint64(c - '0'))
		}
		if !ok {
			return u, negative, 0, fmt.Errorf("%w: %.50q", errDecimal, s)
		}
		if point {
			scale++
		}
	}
	return u, negative, scale, nil
}

// magnitude is the value as sign and digits, at the given scale.
func magnitude(v *sqltype.Value, from, scale int) (u uint128, negative bool, err error) {
	if v.Big {
		if u, negative, from, err = parseDecimal(v.S); err != nil {
			return u, negative, err
		}
	} else {
		n := uint64(v.N)
		if negative = v.N < 0; negative {
			n = -n
		}
		u = uint128{lo: n}
	}
	for ; from < scale; from++ {
		var ok bool
		if u, ok = u.mulAdd(0); !ok {
			return u, negative, errDecimal
		}
	}
	for ; from > scale; from-- {
		var digit uint64
		if u, digit = u.divMod(); from-1 == scale && digit >= 5 {
			u, _ = uint128{hi: u.hi, lo: u.lo}.add(1)
		}
	}
	return u, negative, nil
}

func (u uint128) add(n uint64) (uint128, bool) {
	lo, c := bits.Add64(u.lo, n, 0)
	hi, c := bits.Add64(u.hi, 0, c)
	return uint128{hi, lo}, c == 0
}

// fromMagnitude makes the value of a decimal or money.
func fromMagnitude(kind sqltype.Kind, u uint128, negative bool, scale uint8) sqltype.Value {
	v := sqltype.Value{Kind: kind, Scale: scale}
	if u.hi == 0 && u.lo < smallDecimal {
		v.N = int64(u.lo)
		if negative {
			v.N = -v.N
		}
		return v
	}
	v.Big = true
	v.S = u.text(negative, int(scale))
	return v
}

// decimalBytes is how many bytes of digits a precision takes (MS-TDS 2.2.5.5.1.6).
func decimalBytes(precision uint8) int {
	switch {
	case precision <= 9:
		return 4
	case precision <= 19:
		return 8
	case precision <= 28:
		return 12
	default:
		return 16
	}
}

// appendDecimal appends the length byte, the sign and the digits.
func appendDecimal(b []byte, v *sqltype.Value, precision, scale uint8) ([]byte, error) {
	u, negative, err := magnitude(v, int(v.Scale), int(scale))
	if err != nil {
		return b, err
	}
	n := decimalBytes(precision)
	sign := byte(1)
	if negative {
		sign = 0
	}
	b = append(b, byte(n+1), sign)
	for range n {
		b = append(b, byte(u.lo))
		u.lo = u.lo>>8 | u.hi<<56
		u.hi >>= 8
	}
	if u != (uint128{}) {
		return b, fmt.Errorf("%w: more than %d digits", errDecimal, precision)
	}
	return b, nil
}

func decodeDecimal(b []byte, scale uint8) (sqltype.Value, bool) {
	if len(b) < 2 || len(b) > 17 {
		return sqltype.Value{}, false
	}
	var u uint128
	for i := len(b) - 1; i > 0; i-- {
		u.hi = u.hi<<8 | u.lo>>56
		u.lo = u.lo<<8 | uint64(b[i])
	}
	return fromMagnitude(sqltype.Decimal, u, b[0] == 0, scale), true
}
