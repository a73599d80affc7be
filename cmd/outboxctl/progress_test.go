package main

import (
	"testing"
	"time"

	"azsqloutbox/maintenance"
)

func TestLineOfProgress(t *testing.T) {
	for _, c := range []struct {
		progress maintenance.Progress
		moved    int64
		took     time.Duration
		want     string
	}{
		{maintenance.Progress{Stage: "delete", Done: 0, Total: 100, Unit: "rows"}, 0, 0, "delete: 0 of 100 rows"},
		{maintenance.Progress{Stage: "delete", Done: 50, Total: 100, Unit: "rows"}, 50, 5 * time.Second, "delete: 50 of 100 rows, 10/s, 5s left"},
		{maintenance.Progress{Stage: "delete", Done: 120, Total: 100, Unit: "rows"}, 120, 12 * time.Second, "delete: 120 of 100 rows, 10/s"},
		{maintenance.Progress{Stage: "check", Done: 7, Unit: "rows"}, 7, 7 * time.Second, "check: 7 rows, 1/s"},
	} {
		if got := line(c.progress, c.moved, c.took); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
