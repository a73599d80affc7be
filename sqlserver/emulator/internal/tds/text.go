package tds

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// decodeUTF16 turns little-endian UTF-16 into a string; half a surrogate pair
// becomes U+FFFD, because a Go string cannot hold it.
func decodeUTF16(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	var s strings.Builder
	s.Grow(len(b) / 2)
	for len(b) >= 2 {
		unit := binary.LittleEndian.Uint16(b)
		b = b[2:]
		if unit < utf8.RuneSelf {
			s.WriteByte(byte(unit))
			continue
		}
		r := rune(unit)
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if len(b) >= 2 {
				low = rune(binary.LittleEndian.Uint16(b))
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				b = b[2:]
			}
		}
		s.WriteRune(r)
	}
	return s.String()
}

// appendUTF16 appends s as little-endian UTF-16.
func appendUTF16(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			b = append(b, c, 0)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		b = utf16LE(b, r)
		i += n
	}
	return b
}

func utf16LE(b []byte, r rune) []byte {
	if r < 0x10000 {
		return append(b, byte(r), byte(r>>8))
	}
	high, low := utf16.EncodeRune(r)
	return append(b, byte(high), byte(high>>8), byte(low), byte(low>>8))
}

// codePage is an encoding of char and varchar. Package sqltype knows the
// collations of Latin1_General only, so these two are all there are.
type codePage struct {
	utf8  bool
	chars *charmap.Charmap
}

var (
	utf8Page    = &codePage{utf8: true}
	windows1252 = &codePage{chars: charmap.Windows1252}
)

// pageOf is the encoding of a collation's varchar; nil where it is not
// modelled. No collation means the database's default.
func pageOf(c *sqltype.Collation) *codePage {
	if c == nil {
		c = sqltype.DefaultCollation
	}
	switch {
	case c.UTF8:
		return utf8Page
	case c.CodePage == 1252:
		return windows1252
	}
	return nil
}

// append appends s in the code page; what the page lacks becomes '?', though
// conversion in the engine leaves nothing of that kind.
func (p *codePage) append(b []byte, s string) []byte {
	if p.utf8 {
		return append(b, s...)
	}
	for i := 0; i < len(s); {
		run := i
		for run < len(s) && s[run] < utf8.RuneSelf {
			run++
		}
		b = append(b, s[i:run]...)
		if i = run; i == len(s) {
			break
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		c, ok := p.chars.EncodeRune(r)
		switch {
		case ok:
		case r >= 0x80 && r <= 0x9f:
			c = byte(r) // see decode
		default:
			c = '?'
		}
		b = append(b, c)
	}
	return b
}

// decode turns bytes in the code page into a string. Bytes that the page does
// not define become the control character of the same number, as Windows does;
// what is no UTF-8 becomes U+FFFD.
func (p *codePage) decode(b []byte) string {
	if p.utf8 {
		return strings.ToValidUTF8(string(b), string(utf8.RuneError))
	}
	ascii := true
	for _, c := range b {
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + len(b)/4)
	for _, c := range b {
		r := p.chars.DecodeByte(c)
		if r == utf8.RuneError {
			r = rune(c)
		}
		s.WriteRune(r)
	}
	return s.String()
}
