package quantity

import (
	"fmt"
	"time"
)

// Age is a length of time in seconds, not negative, in the two units that matter:
// 1.5s, 10m, 3h20m, 4d7h.
func Age(seconds float64) string {
	const year = 365.25 * 24 * 60 * 60
	if seconds > 200*year { // a Duration holds 292
		return "over 200 years"
	}
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return Span(d.Round(100 * time.Millisecond))
	case d < time.Hour:
		return Span(d.Round(time.Second))
	case d < 48*time.Hour:
		return Span(d.Round(time.Minute))
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
