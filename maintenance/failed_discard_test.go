package maintenance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/maintenance"
)

// Reason and error stand in the row; where both have no room the error is cut,
// and says so, whatever the type and collation of the column.
func TestADiscardKeepsTheErrorBesideItsReason(t *testing.T) {
	const reason, was = "the customer closed the account", "amqp: no such session in this entity"
	for _, c := range []struct{ column, was, want string }{
		{"VARCHAR(400) NULL", was, "discarded by ops: " + reason + "; was: " + was},
		{"VARCHAR(92) NULL", was, "discarded by ops: " + reason + "; was: " + was}, // not one to spare
		{"VARCHAR(91) NULL", was, "discarded by ops: " + reason + "; was: amqp: no such session in this en..."},
		{"VARCHAR(60) NULL", was, "discarded by ops: " + reason + "; was: a..."},
		{"VARCHAR(59) NULL", was, "discarded by ops: " + reason + "; was: ..."},
		{"VARCHAR(59) NULL", "", "discarded by ops: " + reason},
		{"VARCHAR(59) NULL", "NULL", "discarded by ops: " + reason},
		{"VARCHAR(59) NULL", "500", "discarded by ops: " + reason + "; was: 500"},
		{"NVARCHAR(65) NULL", was, "discarded by ops: " + reason + "; was: amqp: ..."},
		{"CHAR(65) NULL", "no way", "discarded by ops: " + reason + "; was: no way   "},
		{"VARCHAR(MAX) NULL", strings.Repeat("x", 9000), "discarded by ops: " + reason + "; was: " + strings.Repeat("x", 9000)},
		// Characters of several bytes: what is kept fits, and is none in halves.
		{"VARCHAR(70) COLLATE Latin1_General_100_BIN2_UTF8 NULL", "漢漢漢漢漢漢", "discarded by ops: " + reason + "; was: 漢漢..."},
		{"NVARCHAR(70) NULL", "漢漢漢漢漢漢", "discarded by ops: " + reason + "; was: 漢漢漢漢漢漢"},
	} {
		b := withFailed(t, 1, "NULL")
		b.exec(`ALTER TABLE {events} ALTER COLUMN last_error ` + c.column + `;`)
		value := "N'" + c.was + "'"
		if c.was == "NULL" {
			value = c.was
		}
		b.exec(`UPDATE {events} SET last_error = ` + value + `;`)
		r, err := maintenance.SettleFailed{Target: b.target(), Discard: true, Reason: reason, By: "ops"}.Run(t.Context())
		if got := b.value(`SELECT CAST(last_error AS NVARCHAR(MAX)) FROM {events}`); err != nil || got != c.want || r.Reason != "discarded by ops: "+reason {
			t.Errorf("%s has\n%q, want\n%q; %+v, %v", c.column, got, c.want, r, err)
		}
	}
}

// A reason is never cut: what has no room is refused before anything is done, and
// the refusal says how much has.
func TestAReasonThatDoesNotFitIsRefused(t *testing.T) {
	b := withFailed(t, 3, "NULL")
	b.exec(`ALTER TABLE {events} ALTER COLUMN last_error VARCHAR(40) NULL;`)
	for _, c := range []struct{ by, reason, want string }{
		{"ops", "123456789012", ""},
		{"ops", "1234567890123", `the reason has 13 characters, and last_error, VARCHAR(40), has room for 12 after "discarded by ops: "`},
		{"someone@a-machine", "x", `the reason has 1 character, and last_error, VARCHAR(40), has no room for any after "discarded by someone@a-machine: "`},
	} {
		s := maintenance.SettleFailed{Target: b.target(), Discard: true, Reason: c.reason, By: c.by}
		_, err := s.Plan(t.Context())
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, maintenance.ErrSetting) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("the plan says %v, want %q", err, c.want)
		}
		if c.want == "" {
			continue
		}
		if r, err := s.Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) || r.Executed {
			t.Errorf("run says %+v, %v", r, err)
		}
	}
	if n := b.value(`SELECT COUNT(*) FROM {events} WHERE status = 2 AND last_error = 'no'`); fmt.Sprint(n) != "3" {
		t.Errorf("%v events are untouched, want 3", n)
	}
}
