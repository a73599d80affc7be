package sqlserver

import "testing"

// NVARCHAR may hold half a surrogate pair, and no claim can ask for that; U+FFFD
// itself it can.
func TestUTF16Text(t *testing.T) {
	for _, c := range []struct {
		bytes, text string
		unicode     bool
	}{
		{"", "", true},
		{"a\x00\x3d\xd8\x00\xde", "a\U0001F600", true},
		{"\xfd\xff", "\uFFFD", true},
		{"a\x00\x3d\xd8", "a\uFFFD", false},
		{"\x00\xdea\x00", "\uFFFDa", false},
	} {
		if text, unicode := utf16Text([]byte(c.bytes)); text != c.text || unicode != c.unicode {
			t.Errorf("% x is %q, %t; want %q, %t", c.bytes, text, unicode, c.text, c.unicode)
		}
	}
}
