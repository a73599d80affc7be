package maintenance

import (
	"strings"
	"unicode"
)

// Printable keeps text from the table from moving the cursor of a terminal, from
// making a line of its own, and from showing what follows it in another order
// (Unicode Standard Annex 9, directional formatting characters): each such
// character becomes U+FFFD. Joiners stay, as words and emoji are made with them.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
