package maintenance

import (
	"fmt"
	"strings"
	"time"
)

// Hours are a stretch of every day, UTC, as times since midnight. Until may be
// below From: then they go over midnight. The zero value is the whole day.
type Hours struct{ From, Until time.Duration }

const day = 24 * time.Hour

// ParseHours reads 01:00-05:00, which may have UTC behind it as String writes it;
// the end of the day is 24:00.
func ParseHours(text string) (Hours, error) {
	from, until, ok := strings.Cut(strings.TrimSuffix(text, " UTC"), "-")
	if !ok {
		return Hours{}, fmt.Errorf("%q is no window of hours, want 01:00-05:00", text)
	}
	var h Hours
	for _, part := range []struct {
		text string
		into *time.Duration
	}{{from, &h.From}, {until, &h.Until}} {
		clock := strings.TrimSpace(part.text)
		if clock == "24:00" && part.into == &h.Until {
			h.Until = day
			continue
		}
		t, err := time.Parse("15:04", clock)
		if err != nil {
			return Hours{}, fmt.Errorf("%q in %q is no time of day, want HH:MM", part.text, text)
		}
		*part.into = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	}
	if h.From == h.Until {
		return Hours{}, fmt.Errorf("%q begins when it ends", text)
	}
	return h, nil
}

// Validate says what cannot be.
func (h Hours) Validate() error {
	for _, t := range []time.Duration{h.From, h.Until} {
		if t < 0 || t > day {
			return fmt.Errorf("%s is no time of day", t)
		}
	}
	if h.From == h.Until && h != (Hours{}) {
		return fmt.Errorf("begin and end are both %s", h.From)
	}
	return nil
}

// Left is how much of the hours is left at now; zero outside of them, and a
// negative number where they are the whole day.
func (h Hours) Left(now time.Time) time.Duration {
	if h == (Hours{}) {
		return -1
	}
	now = now.UTC()
	at := now.Sub(now.Truncate(day))
	length := (h.Until - h.From + day) % day
	if length == 0 {
		length = day // 00:00-24:00
	}
	return max(0, length-(at-h.From+day)%day)
}

func (h Hours) String() string {
	if h == (Hours{}) {
		return "all day"
	}
	clock := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute) }
	return clock(h.From) + "-" + clock(h.Until) + " UTC"
}
