package main

import (
	"errors"
	"fmt"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/worker"
)

func TestSaid(t *testing.T) {
	for err, want := range map[error]string{
		usageError{errors.New("field MaxDuration is -1, field Batch is 0")}:                    "--max-duration is -1, --batch is 0",
		usageError{errors.New("fields Parked and Waiting exclude each other")}:                 "--parked and --waiting exclude each other",
		usageError{errors.New("field FillFactor is 0, field MaxDOP is -1, option Payload is")}: "--fillfactor is 0, --maxdop is -1, --payload is",
		fmt.Errorf("the table x is missing: %w", maintenance.ErrSetting):                       "the table x is missing",
		fmt.Errorf("%w: this server has no collation x", maintenance.ErrSetting):               "this server has no collation x",
		fmt.Errorf("event type: %w: %w", errors.New("no number"), worker.ErrPermanent):         "event type: no number",
	} {
		if got := said(err); got != want {
			t.Errorf("%q is said as %q, want %q", err, got, want)
		}
	}
}
