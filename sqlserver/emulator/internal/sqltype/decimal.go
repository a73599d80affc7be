package sqltype

import (
	"math"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// maxInlineDigits is how many digits of a decimal fit in Value.N.
const maxInlineDigits = 18

var pow10 = func() (p [maxInlineDigits + 1]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// Decimal is the exact value of a number.
func (v Value) Decimal() decimal.Decimal {
	switch {
	case v.Big:
		d, _ := decimal.NewFromString(v.S)
		return d
	case v.Kind == Decimal:
		return decimal.New(v.N, -int32(v.Scale))
	case v.Kind == Money:
		return decimal.New(v.N, -4)
	case v.Kind.IsApproximate():
		return decimal.NewFromFloat(v.float())
	}
	return decimal.NewFromInt(v.N)
}

func (v Value) float() float64 {
	switch {
	case v.Kind.IsApproximate():
		return math.Float64frombits(uint64(v.N))
	case v.Kind.IsInteger():
		return float64(v.N)
	}
	f, _ := v.Decimal().Float64()
	return f
}

// Float is the number as float64.
func (v Value) Float() float64 { return v.float() }

// NewDecimal fits a number into a decimal type, rounding half away from zero;
// 8115 when its whole part has too many digits.
func NewDecimal(d decimal.Decimal, t Type) (Value, error) {
	d = d.Round(int32(t.Scale))
	if d.Abs().Cmp(decimal.New(1, int32(t.Precision)-int32(t.Scale))) >= 0 {
		return Value{}, errOverflow(t)
	}
	c := d.Shift(int32(t.Scale))
	if t.Precision <= maxInlineDigits || c.Abs().Cmp(decimal.New(1, maxInlineDigits)) < 0 {
		return Value{Kind: Decimal, N: c.IntPart(), Scale: t.Scale}, nil
	}
	return Value{Kind: Decimal, Big: true, S: d.StringFixed(int32(t.Scale)), Scale: t.Scale}, nil
}

func newMoney(d decimal.Decimal) (Value, error) {
	c := d.Round(4).Shift(4)
	if !c.BigInt().IsInt64() {
		return Value{}, errOverflow(Type{Kind: Money})
	}
	return Value{Kind: Money, N: c.IntPart()}, nil
}

func parseDecimal(s string) (decimal.Decimal, bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return decimal.Zero, true
	}
	if strings.ContainsAny(s, "eExXpP_") {
		return decimal.Decimal{}, false
	}
	d, err := decimal.NewFromString(strings.TrimPrefix(s, "+"))
	return d, err == nil
}

// integerRange is what an integer type holds.
func integerRange(k Kind) (lo, hi int64) {
	switch k {
	case Bit:
		return 0, 1
	case TinyInt:
		return 0, 255
	case SmallInt:
		return math.MinInt16, math.MaxInt16
	case Int:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// parseInteger reads what CONVERT accepts as an integer: spaces around, a
// sign, digits. Empty is 0.
func parseInteger(s string) (n int64, ok, overflow bool) {
	s = strings.TrimSpace(s)
	if s == "" || s == "+" || s == "-" {
		return 0, true, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil {
		return n, true, false
	}
	if ne, isNum := err.(*strconv.NumError); isNum && ne.Err == strconv.ErrRange {
		return 0, false, true
	}
	return 0, false, false
}
