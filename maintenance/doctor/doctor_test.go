package doctor_test

import (
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/maintenance/doctor"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

func start(t *testing.T) *local.Stack {
	t.Helper()
	stack, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stack.Close() })
	return stack
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sqlserver.Open(dsn, sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func examine(t *testing.T, db *sql.DB, change func(*doctor.Config)) *doctor.Report {
	t.Helper()
	c := doctor.Config{DB: db, Lease: time.Minute, PublishDeadline: 20 * time.Second, SendTimeout: 10 * time.Second}
	if change != nil {
		change(&c)
	}
	r, err := doctor.Examine(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exec(t *testing.T, stack *local.Stack, text string) {
	t.Helper()
	for _, batch := range scripts.Batches(text) {
		if _, err := stack.SQL.Exec(t.Context(), batch); err != nil {
			t.Fatalf("%v in\n%s", err, batch)
		}
	}
}

// find returns the finding of a check.
func find(r *doctor.Report, check string) doctor.Finding {
	if i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == check }); i >= 0 {
		return r.Findings[i]
	}
	return doctor.Finding{Found: "no such check"}
}

func TestAHealthyOutboxIsAGo(t *testing.T) {
	stack := start(t)
	r := examine(t, open(t, stack.SQL.DSN()), nil)
	if !r.Go || r.NoGo != 0 {
		t.Errorf("no go: %+v", r.Findings)
	}
	for _, check := range []string{
		"connection", "clock", "session options", "writable", "row versioning",
		"accelerated recovery", "parameterization", "table and indexes", "rehearsal", "claims beside writers", "triggers", "modules", "procedure for writers", "paused rebuilds",
		"lease and deadlines", "workers",
	} {
		if f := find(r, check); f.Verdict != doctor.OK || f.Remedy != "" {
			t.Errorf("%s: %+v", check, f)
		}
	}
	// The login of the tests is db_owner, which a worker should not be.
	if f := find(r, "rights"); f.Verdict != doctor.Warn || !strings.Contains(f.Found, "db_owner") {
		t.Errorf("rights: %+v", f)
	}
}

// The plan of the worker before this one is a warning: it is what somebody moves
// away from. Who asks for sent events asks for none of the claim index.
func TestPlansOfOthers(t *testing.T) {
	stack := start(t)
	db := open(t, stack.SQL.DSN())
	query := func(text string, args ...any) {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), text, args...)
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	query("SELECT TOP (1) processed_at FROM dbo.outbox_event WHERE status = 1 ORDER BY id DESC OPTION (RECOMPILE)")
	if f := find(examine(t, db, nil), "plan of the claim"); f.Verdict == doctor.NoGo || strings.Contains(f.Found, "processed_at") {
		t.Errorf("one who looks at sent events: %+v", f)
	}
	query("SELECT TOP (100) id FROM dbo.outbox_event WHERE event_type = CAST(@type AS VARCHAR(100)) AND status = @status ORDER BY id", sql.Named("type", "a"), sql.Named("status", 0))
	r := examine(t, db, nil)
	if f := find(r, "plan of the claim"); f.Verdict != doctor.Warn || !strings.Contains(f.Found, "UnmatchedIndexes") || !r.Go {
		t.Errorf("another worker's claim: %+v", f)
	}
}

// Each ailment alone, made real on the engine.
func TestWhatStandsAgainst(t *testing.T) {
	for name, c := range map[string]struct {
		damage  string
		change  func(*doctor.Config)
		check   string
		verdict doctor.Verdict
		found   string
		remedy  string
	}{
		"no claim index": {
			damage: "DROP INDEX IX_outbox_claim ON dbo.outbox_event", check: "index IX_outbox_claim", verdict: doctor.NoGo, found: "not there", remedy: "outboxctl schema apply --execute adds it",
		},
		"rehearsal": {
			damage: "DROP TABLE dbo.outbox_event_control", check: "rehearsal", verdict: doctor.NoGo, found: "outbox_event_control", remedy: "a worker would say",
		},
		"trigger": {
			damage: "CREATE TRIGGER dbo.tr_mine ON dbo.outbox_event AFTER UPDATE AS SET NOCOUNT ON;", check: "triggers", verdict: doctor.Warn, found: "tr_mine", remedy: "SET NOCOUNT ON",
		},
		"guard that a killed migration left": {
			damage: "CREATE TRIGGER dbo.outbox_varchar_guard_payload_1 ON dbo.outbox_event AFTER UPDATE AS SET NOCOUNT ON;", check: "triggers", verdict: doctor.Warn, found: "migrate-varchar", remedy: "Do not drop it",
		},
		"module with the wrong option": {
			damage: "SET QUOTED_IDENTIFIER OFF;\nGO\nCREATE PROCEDURE dbo.old_writer AS INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'a', 'a', 'a', 'a');", check: "modules", verdict: doctor.NoGo, found: "[dbo].[old_writer]", remedy: "QUOTED_IDENTIFIER ON",
		},
		"modules of other tables with the wrong option": {
			damage: "SET QUOTED_IDENTIFIER OFF;\nGO\nCREATE TABLE dbo.outbox_event_archive (id BIGINT NOT NULL);\nGO\nCREATE PROCEDURE dbo.old_archive AS DELETE FROM dbo.outbox_event_archive WHERE id = 1;\nGO\nCREATE PROCEDURE dbo.old_stop AS DELETE FROM dbo.outbox_event_control WHERE scope = 'x';", check: "modules", verdict: doctor.OK, found: "none that names",
		},
		"procedure of another version": {
			damage: "CREATE OR ALTER PROCEDURE dbo.outbox_event_enqueue @events NVARCHAR(MAX) AS BEGIN SET NOCOUNT ON; RETURN 0; END;", check: "procedure for writers", verdict: doctor.Warn, found: "[outbox_event_enqueue] was made by another version", remedy: "010_enqueue.sql",
		},
		"no procedure": {
			damage: "DROP PROCEDURE dbo.outbox_event_enqueue", check: "procedure for writers", verdict: doctor.OK, found: "is not there",
		},
		"no table, no triggers to see": {
			damage: "DROP TABLE dbo.outbox_event", check: "triggers", verdict: doctor.Unknown, found: "not there", remedy: "VIEW DEFINITION",
		},
		"deadline above the lease": {
			change: func(c *doctor.Config) { c.PublishDeadline = time.Minute }, check: "lease and deadlines", verdict: doctor.NoGo, found: "1m0s", remedy: "--lease",
		},
		"one send may take all": {
			change: func(c *doctor.Config) { c.SendTimeout = 20 * time.Second }, check: "lease and deadlines", verdict: doctor.Warn, found: "no second try", remedy: "--servicebus-send-timeout",
		},
		"workers that do not agree": {
			damage: `INSERT INTO dbo.outbox_event_worker (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at) VALUES
('a', 'v', 's', 1000, 1, 0, SYSUTCDATETIME(), SYSUTCDATETIME()), ('b', 'v', 's', 2000, 1, 0, SYSUTCDATETIME(), SYSUTCDATETIME())`, check: "workers", verdict: doctor.Warn, found: "different leases", remedy: "outboxctl status",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stack := start(t)
			if c.damage != "" {
				// One session, for the options of one batch are for the next.
				db := open(t, stack.SQL.DSN())
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, batch := range scripts.Batches(c.damage) {
					if _, err := conn.ExecContext(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
				}
				conn.Close()
				db.Close()
			}
			r := examine(t, open(t, stack.SQL.DSN()), c.change)
			f := find(r, c.check)
			if f.Verdict != c.verdict || !strings.Contains(f.Found, c.found) || !strings.Contains(f.Remedy, c.remedy) {
				t.Errorf("got %+v; want %s that says %q and %q\nall: %+v", f, c.verdict, c.found, c.remedy, r.Findings)
			}
			if r.Go != (r.NoGo == 0) || r.Go && c.verdict == doctor.NoGo {
				t.Errorf("go is %v", r.Go)
			}
		})
	}
}

// What only a database of another set-up shows, in rows that the test makes up.
func TestPropertiesOfTheDatabase(t *testing.T) {
	healthy := map[string]any{
		"name": "outbox", "compatibility_level": 160, "is_read_committed_snapshot_on": true,
		"is_accelerated_database_recovery_on": true, "is_parameterization_forced": false,
	}
	for column, c := range map[string]struct {
		value   any
		check   string
		verdict doctor.Verdict
		remedy  string
	}{
		// An engine that knows OPENJSON at a low level is taken by the worker too.
		"compatibility_level":                 {120, "table and indexes", doctor.OK, ""},
		"is_read_committed_snapshot_on":       {false, "row versioning", doctor.Warn, "READ_COMMITTED_SNAPSHOT ON"},
		"is_accelerated_database_recovery_on": {false, "accelerated recovery", doctor.Warn, "ACCELERATED_DATABASE_RECOVERY = ON"},
		"is_parameterization_forced":          {true, "parameterization", doctor.Warn, "PARAMETERIZATION SIMPLE"},
	} {
		t.Run(column, func(t *testing.T) {
			stack := start(t)
			ill := maps.Clone(healthy)
			ill[column] = c.value
			fake(t, stack, "sys.databases", ill)
			r := examine(t, open(t, stack.SQL.DSN()), nil)
			if f := find(r, c.check); f.Verdict != c.verdict || !strings.Contains(f.Remedy, c.remedy) || !r.Go {
				t.Errorf("got %+v of %+v", f, r.Findings)
			}
		})
	}
}

func TestServerlessIsSaid(t *testing.T) {
	server, err := emulator.Start(emulator.Config{ServiceObjective: "GP_S_Gen5_2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if err := local.ApplySchema(t.Context(), server.DSN(), scripts.Options{}); err != nil {
		t.Fatal(err)
	}
	if f := find(examine(t, open(t, server.DSN()), nil), "serverless"); f.Verdict != doctor.Warn || !strings.Contains(f.Found, "GP_S_Gen5_2") {
		t.Errorf("got %+v", f)
	}
}

// The script that doctor prints gives a worker all that it needs, and nothing
// that could do harm: a whole worker's check passes under it, and doctor, run as
// that user, is content.
func TestTheGrantsAreEnoughAndNoMore(t *testing.T) {
	stack := start(t)
	grants := examine(t, open(t, stack.SQL.DSN()), nil).Grants
	exec(t, stack, grants+"\nGO\nCREATE USER [least] WITH PASSWORD = 'Least-Pass-1';\nGO\nALTER ROLE [outbox_event_role] ADD MEMBER [least];")
	dsn := regexp.MustCompile(`//[^@]*@`).ReplaceAllString(stack.SQL.DSN(), "//least:Least-Pass-1@")
	db := open(t, dsn)
	r := examine(t, db, nil)
	if f := find(r, "rights"); f.Verdict != doctor.OK || !strings.Contains(f.Found, "least") {
		t.Errorf("rights: %+v", f)
	}
	if f := find(r, "rehearsal"); f.Verdict != doctor.OK {
		t.Errorf("rehearsal: %+v", f)
	}
	if f := find(r, "sequence dbo.outbox_event_seq"); f.Verdict != doctor.Unknown || !strings.Contains(f.Remedy, "draws no ids") || strings.Contains(f.Remedy, "CREATE") {
		t.Errorf("the sequence: %+v", f)
	}
	// It sees no modules of others; that there are none that do harm would be a guess.
	if f := find(r, "modules"); f.Verdict != doctor.Unknown || !strings.Contains(f.Found, "VIEW DEFINITION") {
		t.Errorf("modules: %+v", f)
	}
	if f := find(r, "procedure for writers"); f.Verdict != doctor.Unknown || !strings.Contains(f.Found, "VIEW DEFINITION") {
		t.Errorf("procedure for writers: %+v", f)
	}
	if f := find(r, "plan of the claim"); f.Verdict != doctor.Unknown || f.Found != "VIEW DATABASE STATE is missing." || !strings.Contains(f.Remedy, "GRANT VIEW DATABASE STATE") || !strings.Contains(f.Remedy, "a worker needs no such right") {
		t.Errorf("plan of the claim: %+v", f)
	}
	if f := find(r, "triggers"); f.Verdict != doctor.OK {
		t.Errorf("triggers: %+v", f)
	}
	if !r.Go {
		t.Errorf("no go: %+v", r.Findings)
	}
	for _, forbidden := range []string{
		"DROP TABLE dbo.outbox_event", "DELETE FROM dbo.outbox_event", "TRUNCATE TABLE dbo.outbox_event",
		"ALTER TABLE dbo.outbox_event ADD x INT NULL", "CREATE TABLE dbo.mine (x INT)", "DROP INDEX IX_outbox_claim ON dbo.outbox_event",
		"INSERT INTO dbo.outbox_event_control (scope, name, paused, changed_by, changed_at) VALUES ('all', N'', 1, N'x', SYSUTCDATETIME())",
	} {
		if _, err := db.ExecContext(t.Context(), forbidden); err == nil {
			t.Errorf("a worker may %s", forbidden)
		}
	}
}

// An encrypted module does not say whether it names the table.
func TestEncryptedModules(t *testing.T) {
	stack := start(t)
	id, err := stack.SQL.Exec(t.Context(), "SELECT OBJECT_ID(N'dbo.outbox_event_enqueue') AS id")
	if err != nil {
		t.Fatal(err)
	}
	fake(t, stack, "sys.sql_modules", map[string]any{"object_id": id[0].Rows[0][0], "definition": nil, "uses_quoted_identifier": false, "uses_ansi_nulls": true})
	r := examine(t, open(t, stack.SQL.DSN()), nil)
	for _, check := range []string{"modules", "procedure for writers"} {
		if f := find(r, check); f.Verdict != doctor.Unknown || !strings.Contains(f.Found, "encrypted") {
			t.Errorf("%s: %+v", check, f)
		}
	}
}

// fake makes up a view of one row.
func fake(t *testing.T, stack *local.Stack, name string, row map[string]any) {
	t.Helper()
	view := emulator.FakeView{Name: name, Rows: [][]any{nil}}
	for column, value := range row {
		view.Columns = append(view.Columns, column)
		view.Rows[0] = append(view.Rows[0], value)
	}
	if _, err := stack.SQL.FakeView(view); err != nil {
		t.Fatal(err)
	}
}

// Each right that is missing is named.
func TestMissingRights(t *testing.T) {
	stack := start(t)
	grants := examine(t, open(t, stack.SQL.DSN()), nil).Grants
	exec(t, stack, grants+"\nGO\nREVOKE UPDATE ON dbo.outbox_event FROM [outbox_event_role];\nGO\nREVOKE DELETE ON dbo.outbox_event_claim FROM [outbox_event_role];\nGO\nCREATE USER [less] WITH PASSWORD = 'Less-Pass-12';\nGO\nALTER ROLE [outbox_event_role] ADD MEMBER [less];")
	dsn := regexp.MustCompile(`//[^@]*@`).ReplaceAllString(stack.SQL.DSN(), "//less:Less-Pass-12@")
	r := examine(t, open(t, dsn), nil)
	f := find(r, "rights")
	if f.Verdict != doctor.NoGo || !strings.Contains(f.Found, "lacks UPDATE on [dbo].[outbox_event], DELETE on [dbo].[outbox_event_claim]") || !strings.Contains(f.Remedy, "outboxctl doctor --grants prints") {
		t.Errorf("rights: %+v", f)
	}
	if f := find(r, "rehearsal"); f.Verdict != doctor.NoGo {
		t.Errorf("rehearsal: %+v", f)
	}
	if r.Go || fmt.Sprint(r.NoGo) == "0" {
		t.Errorf("go: %+v", r)
	}
}
