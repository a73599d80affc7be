package diagnose

import (
	"testing"
	"time"
)

// The plan cache tells the server's own time, and what is taken from now on is UTC.
func TestTimesOfAServerInAnotherZone(t *testing.T) {
	for zone, clock := range map[time.Duration]string{
		0:                               "12:00",
		-time.Minute:                    "12:00", // read across the turn of a minute
		2 * time.Hour:                   "14:00",
		2*time.Hour + time.Minute:       "14:00",
		-(3*time.Hour + 30*time.Minute): "08:30",
		5*time.Hour + 45*time.Minute:    "17:45",
	} {
		local, err := time.Parse("2006-01-02 15:04", "2026-11-30 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		if got := (environment{zone: zone}).utc(local); !got.Equal(noon) {
			t.Errorf("%s east: %s is %s UTC, want %s", zone, clock, got, noon)
		}
	}
	if got := (environment{zone: time.Hour}).utc(time.Time{}); !got.IsZero() {
		t.Errorf("no time became %s", got)
	}
}
