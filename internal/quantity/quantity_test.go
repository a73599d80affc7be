package quantity

import (
	"math"
	"testing"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -12345: "-12,345", 45000000: "45,000,000", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		n           int
		thing, want string
	}{
		{0, "row", "0 rows"},
		{1, "row", "1 row"},
		{1000, "row", "1,000 rows"},
		{1, "index", "1 index"},
		{2, "index", "2 indexes"},
		{3, "batch", "3 batches"},
		{2, "retry", "2 retries"},
	} {
		if got := Of(c.n, c.thing); got != c.want {
			t.Errorf("%d %s is %q, want %q", c.n, c.thing, got, c.want)
		}
	}
}
