package maintenance_test

import (
	"testing"

	"azsqloutbox/maintenance"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"größe 👩\u200d🔬":                             "größe 👩\u200d🔬",
		"a\x1b[2J\x7f\u009b":                         "a\ufffd[2J\ufffd\ufffd",
		"a\r\n\u2028\u2029":                          "a\ufffd\ufffd\ufffd\ufffd",
		"\u061c\u200e\u200f\u202a\u202e\u2066\u2069": "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd",
	} {
		if got := maintenance.Printable(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
}
