package main

import (
	"strings"
	"testing"
)

// A table that was there before may let created_at be NULL: no worker can send
// such an event, and a person must be able to look at it.
func TestFailedEventWithoutTimeIsShown(t *testing.T) {
	stack, run := operated(t)
	exec(t, stack, `DROP INDEX IX_outbox_claim ON dbo.outbox_event;`)
	exec(t, stack, `ALTER TABLE dbo.outbox_event ALTER COLUMN created_at DATETIME2(3) NULL;`)
	exec(t, stack, `UPDATE dbo.outbox_event SET created_at = NULL WHERE id = 12;`)
	for _, args := range [][]string{{"failed", "list"}, {"failed", "show", "12"}} {
		if text := run(exitDone, args...); !strings.Contains(strings.Join(strings.Fields(text), " "), "12 order.void Order/12 unknown 1 parked") {
			t.Errorf("%v says\n%s", args, text)
		}
		if text := run(exitDone, append(args, "--json")...); strings.Count(text, `"created_at": null`) != 1 {
			t.Errorf("%v --json says\n%s", args, text)
		}
	}
}
