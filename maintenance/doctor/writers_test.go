package doctor_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/maintenance/doctor"
	"azsqloutbox/sqlserver/emulator"
)

// What was written to try a claim beside it is gone, whatever came of it.
func TestClaimsBesideWriters(t *testing.T) {
	const check = "claims beside writers"
	for name, c := range map[string]struct {
		prepare func(*testing.T, *emulator.Server)
		verdict doctor.Verdict
		found   string
	}{
		"passes": {verdict: doctor.OK, found: "at once"},
		// An engine that waits: the first claim is the rehearsal's.
		"waits": {prepare: func(t *testing.T, s *emulator.Server) {
			s.Inject(emulator.Fault{Statement: "ClaimEvents", Nth: 2, Times: -1, Error: &emulator.Error{Number: 1222, State: 1, Class: 16, Message: "Lock request time out period exceeded."}, Doom: true})
		}, verdict: doctor.Warn, found: "READPAST does not pass"},
		"no claim index": {prepare: func(t *testing.T, s *emulator.Server) {
			batch(t, s, "DROP INDEX IX_outbox_claim ON dbo.outbox_event")
		}, verdict: doctor.Unknown, found: "the rehearsal did not go through"},
		"no event of ours fits": {prepare: func(t *testing.T, s *emulator.Server) {
			batch(t, s, "ALTER TABLE dbo.outbox_event ADD tenant INT NOT NULL")
		}, verdict: doctor.Unknown, found: "no event could be written"},
	} {
		t.Run(name, func(t *testing.T) {
			stack := start(t)
			if c.prepare != nil {
				c.prepare(t, stack.SQL)
			}
			db := open(t, stack.SQL.DSN())
			if f := find(examine(t, db, nil), check); f.Verdict != c.verdict || !strings.Contains(f.Found, c.found) {
				t.Errorf("got %+v; want %s that says %q", f, c.verdict, c.found)
			}
			var left int
			if err := db.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM dbo.outbox_event) + (SELECT COUNT(*) FROM dbo.outbox_event_claim)").Scan(&left); err != nil || left != 0 {
				t.Errorf("%d rows are left, %v", left, err)
			}
		})
	}
}

// Who may not write events is told what is missing, and nothing is tried.
func TestClaimsBesideWritersNeedAWritersRights(t *testing.T) {
	stack := start(t)
	r := examine(t, open(t, stack.SQL.DSN()), nil)
	exec(t, stack, r.Grants)
	batch(t, stack.SQL, "CREATE USER w WITH PASSWORD = 'Correct-Horse-1'; ALTER ROLE outbox_event_role ADD MEMBER w;")
	db := open(t, stack.SQL.DSNFor("w", "Correct-Horse-1"))
	for _, missing := range []struct{ right, grant string }{
		{"INSERT on [dbo].[outbox_event]", "GRANT INSERT ON dbo.outbox_event TO w"},
		{"UPDATE on [dbo].[outbox_event_seq]", "GRANT UPDATE ON dbo.outbox_event_seq TO w"},
	} {
		f := besides(t, db)
		if f.Verdict != doctor.Unknown || !strings.Contains(f.Found, fmt.Sprintf("has no %s,", missing.right)) || f.Remedy == "" {
			t.Errorf("%+v; want it to say that %s is missing", f, missing.right)
		}
		batch(t, stack.SQL, missing.grant)
	}
	if f := besides(t, db); f.Verdict != doctor.OK {
		t.Errorf("with both: %+v", f)
	}
}

func besides(t *testing.T, db *sql.DB) doctor.Finding {
	t.Helper()
	return find(examine(t, db, nil), "claims beside writers")
}

func batch(t *testing.T, s *emulator.Server, text string) {
	t.Helper()
	if _, err := s.Exec(t.Context(), text); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
