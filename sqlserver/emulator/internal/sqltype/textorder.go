package sqltype

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Compare orders two texts. As SQL Server does, the shorter one is padded with
// spaces first, so trailing spaces never count.
func (c *Collation) Compare(a, b string) int {
	if c == nil {
		c = DefaultCollation
	}
	if a == b {
		return 0
	}
	if c.Binary {
		return compareBinary(a, b)
	}
	// Primary weights of the whole text come first, then accents, then case:
	// "a" < "A" counts only between texts that are otherwise equal.
	secondary, tertiary := 0, 0
	for len(a) > 0 || len(b) > 0 {
		wa, na := nextWeight(a)
		wb, nb := nextWeight(b)
		a, b = a[na:], b[nb:]
		if wa.primary != wb.primary {
			if wa.primary < wb.primary {
				return -1
			}
			return 1
		}
		if secondary == 0 {
			secondary = int(wa.accent) - int(wb.accent)
		}
		if tertiary == 0 {
			tertiary = int(wa.upper) - int(wb.upper)
		}
	}
	if c.AccentSensitive && secondary != 0 {
		return sign(secondary)
	}
	if c.CaseSensitive && tertiary != 0 {
		return sign(tertiary)
	}
	return 0
}

// Key is equal for texts that Compare calls equal; it does not order.
func (c *Collation) Key(s string) string {
	if c == nil {
		c = DefaultCollation
	}
	s = strings.TrimRight(s, " ")
	if c.Binary || (c.CaseSensitive && c.AccentSensitive) {
		return s
	}
	if !c.AccentSensitive {
		s = stripAccents(s)
	}
	if !c.CaseSensitive {
		s = strings.ToLower(s)
	}
	return s
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// compareBinary orders by code point: UTF-8 keeps that order byte by byte.
func compareBinary(a, b string) int {
	n := min(len(a), len(b))
	if r := strings.Compare(a[:n], b[:n]); r != 0 {
		return r
	}
	for i := n; i < len(a); i++ {
		if a[i] != ' ' {
			return sign(int(a[i]) - ' ')
		}
	}
	for i := n; i < len(b); i++ {
		if b[i] != ' ' {
			return sign(' ' - int(b[i]))
		}
	}
	return 0
}

type weight struct {
	primary uint32
	accent  uint16
	upper   uint8
}

// Punctuation sorts before digits, digits before letters, as in the Windows
// and SQL orders of Latin1 General. The end of a text weighs as a space.
const (
	classPunctuation = 0 << 24
	classDigit       = 1 << 24
	classLetter      = 2 << 24
)

var asciiWeights = func() (w [utf8.RuneSelf]weight) {
	for i := range w {
		w[i] = runeWeight(rune(i))
	}
	return w
}()

func nextWeight(s string) (weight, int) {
	if len(s) == 0 {
		return asciiWeights[' '], 0
	}
	if s[0] < utf8.RuneSelf {
		return asciiWeights[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return runeWeight(r), n
}

func runeWeight(r rune) weight {
	switch {
	case r >= '0' && r <= '9':
		return weight{primary: classDigit + uint32(r)}
	case r < utf8.RuneSelf && !unicode.IsLetter(r):
		return weight{primary: classPunctuation + uint32(r)}
	}
	base, accent := baseRune(r)
	if !unicode.IsLetter(base) {
		return weight{primary: classPunctuation + uint32(base), accent: accent}
	}
	lower := unicode.ToLower(base)
	w := weight{primary: classLetter + uint32(lower), accent: accent}
	if lower != base {
		w.upper = 1
	}
	return w
}

// baseRune is the letter without its accent, and the accent.
func baseRune(r rune) (base rune, accent uint16) {
	if r < utf8.RuneSelf {
		return r, 0
	}
	var buf [utf8.UTFMax]byte
	d := norm.NFD.Bytes(buf[:utf8.EncodeRune(buf[:], r)])
	base, n := utf8.DecodeRune(d)
	if n < len(d) {
		m, _ := utf8.DecodeRune(d[n:])
		accent = uint16(m)
	}
	return base, accent
}

func stripAccents(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune { b, _ := baseRune(r); return b }, s)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
