// Package quantity writes numbers for people: things, bytes, lengths of time.
package quantity

import (
	"strconv"
	"strings"
)

// Of is a number of things: 0 rows, 1 batch, 2 batches.
func Of[N ~int | ~int32 | ~int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Grouped(n) + " " + plural(thing)
}

// Grouped is a number as a person reads it: 45,000,000.
func Grouped[N ~int | ~int32 | ~int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// plural knows the endings of the words that the programs count.
func plural(thing string) string {
	for _, hiss := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(thing, hiss) {
			return thing + "es"
		}
	}
	if stem, y := strings.CutSuffix(thing, "y"); y {
		return stem + "ies"
	}
	return thing + "s"
}
