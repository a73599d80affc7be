package quantity

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 30 * time.Second: "30s", time.Minute: "1m", 10 * time.Minute: "10m",
		90 * time.Second: "1m30s", 72 * time.Hour: "72h", 10*time.Hour + 20*time.Minute: "10h20m", time.Hour + 5*time.Second: "1h0m5s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}
