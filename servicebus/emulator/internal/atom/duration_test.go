package atom_test

import (
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/atom"
)

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "PT0S",
		30 * time.Second:                     "PT30S",
		time.Minute:                          "PT1M",
		14 * 24 * time.Hour:                  "P14D",
		25*time.Hour + 1500*time.Millisecond: "P1DT1H1.5S",
	} {
		if got := atom.Duration(d); got != want {
			t.Errorf("%s is written %s, want %s", d, got, want)
		}
	}
	if got := atom.DurationOrForever(0); got != atom.Forever {
		t.Errorf("no limit is written %s", got)
	}
}
