package quantity

import (
	"math"
	"testing"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1,023 B", 1024: "1 KB", 1536: "1.5 KB", -1536: "-1.5 KB", 8192 * 200: "1.56 MB",
		58 << 30: "58 GB", 62_384_000_000: "58.1 GB", 3 << 40: "3 TB", math.MaxInt64: "8 EB", math.MinInt64: "-8 EB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	if got := Bytes(0.5); got != "0.5 B" {
		t.Errorf("half a byte, on average, is %s", got)
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.25: "0.25", 0.0004: "0", 0.9999: "1", 1.5: "1.5", 9.999: "10", 58.06: "58.1", 99.96: "100", 142.4: "142", 45e6: "45,000,000", -1.25: "-1.25",
	} {
		if got := Short(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
