package sqltype

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// encodable is the text as a char or varchar of the collation can hold it.
// What code page 1252 lacks becomes its best fit or '?', without any error,
// as in SQL Server; a UTF-8 collation holds everything.
func encodable(s string, c *Collation) string {
	if c == nil {
		c = DefaultCollation
	}
	if c.UTF8 || isASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if _, ok := charmap.Windows1252.EncodeRune(r); ok {
			b.WriteRune(r)
			continue
		}
		if base, accent := baseRune(r); accent != 0 {
			if _, ok := charmap.Windows1252.EncodeRune(base); ok {
				b.WriteRune(base)
				continue
			}
		}
		b.WriteByte('?')
		if r > 0xFFFF { // two UTF-16 units, two question marks
			b.WriteByte('?')
		}
	}
	return b.String()
}

// byteLength is the storage size of a char or varchar text.
func byteLength(s string, c *Collation) int {
	if c != nil && c.UTF8 {
		return len(s)
	}
	return utf8.RuneCountInString(s)
}

// cutBytes cuts a char or varchar text to n bytes of storage, never inside a
// character.
func cutBytes(s string, n int, c *Collation) string {
	if len(s) <= n {
		return s
	}
	if c != nil && c.UTF8 {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		return s[:n]
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// UTF16Length counts UTF-16 units, the characters of nchar and nvarchar.
func UTF16Length(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n++
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		n++
		if r > 0xFFFF {
			n++
		}
		i += size
	}
	return n
}

// CutUTF16 cuts to n UTF-16 units, never inside a surrogate pair.
func CutUTF16(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i, r := range s {
		w := 1
		if r > 0xFFFF {
			w = 2
		}
		if n < w {
			return s[:i]
		}
		n -= w
	}
	return s
}

// DecodeCodePage turns the bytes of a char or varchar into text.
func DecodeCodePage(b string, c *Collation) string {
	if (c != nil && c.UTF8) || isASCII(b) {
		return b
	}
	var out strings.Builder
	for i := 0; i < len(b); i++ {
		out.WriteRune(charmap.Windows1252.DecodeByte(b[i]))
	}
	return out.String()
}

// EncodeCodePage is the bytes of a char or varchar text.
func EncodeCodePage(s string, c *Collation) string {
	if (c != nil && c.UTF8) || isASCII(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			b = '?'
		}
		out = append(out, b)
	}
	return string(out)
}
