package quantity

import "testing"

func TestAge(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.26: "300ms", 1.54: "1.5s", 12.4: "12s", 600: "10m", 3599.7: "1h", 3 * 3600: "3h", 12_000: "3h20m",
		48 * 3600: "2d0h", 4*86_400 + 7*3600 + 1800: "4d7h", 1e12: "over 200 years",
	} {
		if got := Age(seconds); got != want {
			t.Errorf("%v s are %s, want %s", seconds, got, want)
		}
	}
}
