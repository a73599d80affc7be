package worker

import "testing"

// A destination leaves a place to others for as long as there are others.
func TestADestinationLeavesAPlaceToOthers(t *testing.T) {
	s := newShares(func(eventType string) string { return eventType }, 3)
	for _, c := range []struct {
		types []string
		taken int
		full  bool
	}{
		{[]string{"a", "b"}, 1, false},
		{[]string{"a", "b"}, 2, true},
		{[]string{"a"}, 2, false},
		{nil, 2, false},
	} {
		s.know(c.types)
		for s.out["a"] < c.taken {
			s.take("a")
		}
		if got := s.full("a"); got != c.full {
			t.Errorf("with %d of 3 places taken, and types %v: full is %v", c.taken, c.types, got)
		}
	}
}
