package quantity

import (
	"math"
	"strconv"
	"strings"
)

// Bytes is a number of bytes in powers of 1,024, as SQL Server and the limits of
// Azure count them: 58.1 GB, 1.5 KB, 1,023 B.
func Bytes[N ~int64 | ~float64](n N) string {
	const units = "KMGTPE"
	v := float64(n)
	if math.Abs(v) < 1024 {
		return Short(v) + " B"
	}
	unit := 0
	for v /= 1024; math.Abs(v) >= 1024 && unit < len(units)-1; unit++ {
		v /= 1024
	}
	return Short(v) + " " + units[unit:unit+1] + "B"
}

// Short is three digits where there is a fraction, else all of them in groups:
// 0.25, 1.5, 58.1, 142, 45,000,000.
func Short(v float64) string {
	a := math.Abs(v)
	switch {
	case v == math.Trunc(v) || a >= 100:
		return Grouped(int64(math.Round(v)))
	case a >= 10:
		return trimmed(v, 1)
	case a >= 1:
		return trimmed(v, 2)
	default:
		return trimmed(v, 3)
	}
}

func trimmed(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
