package emulator

import "testing"

func TestCutFold(t *testing.T) {
	for _, c := range []struct {
		s, before, after string
		found            bool
	}{
		{"t/Subscriptions/s", "t", "s", true},
		{"t/SUBSCRIPTIONS/", "t", "", true},
		{"t", "t", "", false},
		{"", "", "", false},
		// Each \x90 is three bytes in lower case: a cut by the lower case's place was
		// out of range.
		{"t\x90\x90\x90\x90/Subscriptions/", "t\x90\x90\x90\x90", "", true},
		{"Ⱥ/subscriptions/s", "Ⱥ", "s", true},
	} {
		before, after, found := cutFold(c.s, "/subscriptions/")
		if before != c.before || after != c.after || found != c.found {
			t.Errorf("%q is cut to %q, %q, %v", c.s, before, after, found)
		}
	}
}
