package servicebus

import (
	"testing"
	"time"
)

func TestISODuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT10M": 10 * time.Minute, "P1DT2H30M": 26*time.Hour + 30*time.Minute, "PT20S": 20 * time.Second, "PT0.5S": 500 * time.Millisecond, "P7D": 7 * 24 * time.Hour,
		"": 0, "10M": 0, "PT": 0, "PT5": 0, "P5M": 0, "PTxS": 0, "PT1H5": 0,
	} {
		if got := isoDuration(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
