package sqltype

import (
	"encoding/binary"
	"unicode/utf16"
)

// utf16LE is the bytes of an nvarchar.
func utf16LE(s string) string {
	units := utf16.Encode([]rune(s))
	b := make([]byte, 0, 2*len(units))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

func utf16LEText(b string) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
	return string(utf16.Decode(units))
}
