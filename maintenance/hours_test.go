package maintenance_test

import (
	"testing"
	"time"

	"azsqloutbox/maintenance"
)

func TestHoursLeft(t *testing.T) {
	for _, c := range []struct {
		hours, now string
		want       time.Duration
	}{
		{"01:00-05:00", "00:59", 0},
		{"01:00-05:00", "01:00", 4 * time.Hour},
		{"01:00-05:00", "04:59", time.Minute},
		{"01:00-05:00", "05:00", 0},
		{"01:00-05:00", "23:00", 0},
		{"22:30-02:00", "22:29", 0},
		{"22:30-02:00", "22:30", 3*time.Hour + 30*time.Minute},
		{"22:30-02:00", "00:00", 2 * time.Hour},
		{"22:30-02:00", "01:59", time.Minute},
		{"22:30-02:00", "02:00", 0},
		{"00:00-23:59", "00:00", 24*time.Hour - time.Minute},
		{"23:00-00:00", "23:30", 30 * time.Minute},
		{"23:00-00:00", "00:00", 0},
		{"23:00-24:00", "23:30", 30 * time.Minute},
		{"00:00-24:00", "00:00", 24 * time.Hour},
	} {
		hours, err := maintenance.ParseHours(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		if got := hours.String(); got != c.hours+" UTC" {
			t.Errorf("%s is written %s", c.hours, got)
		} else if again, err := maintenance.ParseHours(got); err != nil || again != hours {
			t.Errorf("%s is read as %s, %v", got, again, err)
		}
		clock, err := time.Parse("15:04", c.now)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 2, 28, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
		if got := hours.Left(now); got != c.want {
			t.Errorf("%s at %s: %s left, want %s", c.hours, c.now, got, c.want)
		}
		// The database says UTC; a time that comes in another zone is the same.
		if got := hours.Left(now.In(time.FixedZone("", -7*3600))); got != c.want {
			t.Errorf("%s at %s in another zone: %s left, want %s", c.hours, c.now, got, c.want)
		}
	}
	if got := (maintenance.Hours{}).Left(time.Now()); got >= 0 {
		t.Errorf("the whole day has %s left, want a negative number", got)
	}
}

func TestParseHoursRefuses(t *testing.T) {
	for _, text := range []string{"", "01:00", "01:00-", "-05:00", "1-5", "25:00-26:00", "01:00-01:00", "24:00-05:00", "01:00-24:01", "01:00-05:60", "01:00-05:00-06:00", "a-b", "01:00-05:00 CET", "UTC"} {
		if h, err := maintenance.ParseHours(text); err == nil {
			t.Errorf("%q is read as %s", text, h)
		}
	}
}
