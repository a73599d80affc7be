package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

func (b *table) check(s maintenance.Schema) maintenance.SchemaReport {
	b.t.Helper()
	s.Target = b.target()
	report, err := s.Check(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return report
}

// short is one line a finding.
func short(findings []sqlserver.Finding) []string {
	list := []string{}
	for _, f := range findings {
		adds := ""
		if f.Adds {
			adds = " +"
		}
		list = append(list, fmt.Sprintf("%s %s: %s%s", f.Severity, f.Object, f.Problem, adds))
	}
	return list
}

func TestSchemaOfTheScriptHasNothingToMend(t *testing.T) {
	for name, o := range map[string]scripts.Options{
		"default": {},
		"odd":     {Table: "it's ]odd[", ClaimIndex: "IX]a'b"},
		"slim":    {SlimClaimIndex: true, Payload: "VARCHAR(MAX)", EventType: "NVARCHAR(50)"},
		"integer": {EventType: "INT"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTable(t, emulator.Config{}, o)
			b.exec("INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload) VALUES (NEXT VALUE FOR {sequence} + 49, 'a', '1', '1', '{}')")
			report := b.check(maintenance.Schema{})
			if len(report.Findings) > 0 || report.Must != 0 || report.Should != 0 || report.Rows != 1 {
				t.Errorf("got %+v", report)
			}
		})
	}
}

// A writer that draws a block and inserts while the check looks at the highest id
// is nothing to mend: to restart a sequence under it would be.
func TestSchemaCheckBesideAWriter(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	const write = "INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload) VALUES (NEXT VALUE FOR {sequence} + 49, 'a', '1', 'x', '{}')"
	b.exec(write)
	// Long enough for the writer on any machine; the check is right without it too.
	b.server.Inject(emulator.Fault{Statement: "HighestID", Delay: 500 * time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for b.server.StatementCount("HighestID") == 0 {
			if ctx.Err() != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
		if _, err := b.server.Exec(ctx, b.names.Replacer().Replace(write)); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	report := b.check(maintenance.Schema{})
	stop()
	<-wrote
	if len(report.Findings) > 0 {
		t.Errorf("found %v", short(report.Findings))
	}
}

func TestSchemaCheckFinds(t *testing.T) {
	const row = "INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'a', '1', 'x', '{}'); "
	for name, c := range map[string]struct {
		damage string
		schema maintenance.Schema
		// want are the beginnings of the findings, in order.
		want []string
	}{
		"no claim index":       {"DROP INDEX IX_outbox_claim ON {events}", maintenance.Schema{}, []string{"must index IX_outbox_claim: the index IX_outbox_claim is not there +"}},
		"disabled":             {"ALTER INDEX IX_outbox_retry ON {events} DISABLE", maintenance.Schema{}, []string{"must index IX_outbox_retry: the index IX_outbox_retry is disabled"}},
		"no filter":            {"DROP INDEX IX_outbox_retry ON {events}; CREATE INDEX IX_outbox_retry ON {events} (retry_at, id)", maintenance.Schema{}, []string{"must index IX_outbox_retry: the index IX_outbox_retry has no filter, must be filtered by"}},
		"status in the claim":  {"DROP INDEX IX_outbox_claim ON {events}; CREATE INDEX IX_outbox_claim ON {events} (event_type, status) INCLUDE (payload)", maintenance.Schema{}, []string{"must index IX_outbox_claim: the index IX_outbox_claim has no filter", "should index IX_outbox_claim: the index IX_outbox_claim includes columns and yet not"}},
		"wrong first key":      {"DROP INDEX IX_outbox_retry ON {events}; CREATE INDEX IX_outbox_retry ON {events} (id) WHERE status = 2", maintenance.Schema{}, []string{"must index IX_outbox_retry: the index IX_outbox_retry has id as its first key column"}},
		"wrong second key":     {"DROP INDEX IX_outbox_claim ON {events}; CREATE INDEX IX_outbox_claim ON {events} (event_type, created_at) WHERE status = 0", maintenance.Schema{}, []string{"must index IX_outbox_claim: the index IX_outbox_claim has the key (event_type, created_at)"}},
		"id by the table":      {"DROP INDEX IX_outbox_claim ON {events}; CREATE INDEX IX_outbox_claim ON {events} (event_type) WHERE status = 0", maintenance.Schema{}, nil},
		"half covering":        {"DROP INDEX IX_outbox_claim ON {events}; CREATE INDEX IX_outbox_claim ON {events} (event_type, id) INCLUDE (payload) WHERE status = 0", maintenance.Schema{}, []string{"should index IX_outbox_claim: the index IX_outbox_claim includes columns and yet not aggregate_type, aggregate_id, headers"}},
		"status in a key":      {"CREATE INDEX IX_status ON {events} (status, event_type)", maintenance.Schema{}, []string{"should index IX_status: the index IX_status has status in its key"}},
		"fill factor":          {"ALTER INDEX PK_outbox_event ON {events} REBUILD WITH (FILLFACTOR = 85)", maintenance.Schema{}, []string{"should index PK_outbox_event: the index PK_outbox_event has fill factor 85"}},
		"last page":            {"ALTER INDEX PK_outbox_event ON {events} SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF)", maintenance.Schema{}, []string{"should index PK_outbox_event: the index PK_outbox_event has OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF"}},
		"no sequence":          {"DROP SEQUENCE {sequence}", maintenance.Schema{}, []string{"should sequence dbo.outbox_event_seq: the sequence of ids is missing, or this login has no right on it; writers that take ids from another one do not need it +"}},
		"no sequence and rows": {row + "DROP SEQUENCE {sequence}", maintenance.Schema{}, []string{"should sequence dbo.outbox_event_seq: the sequence of ids is missing, or this login has no right on it; writers that take ids from another one do not need it"}},
		"small blocks":         {"", maintenance.Schema{BlockSize: 100}, []string{"must sequence dbo.outbox_event_seq: INCREMENT BY is 50 and writers take blocks of 100"}},
		"large blocks":         {"", maintenance.Schema{BlockSize: 10}, []string{"should sequence dbo.outbox_event_seq: INCREMENT BY is 50 and writers take blocks of 10"}},
		"ids that are there":   {row, maintenance.Schema{}, []string{"must sequence dbo.outbox_event_seq: the next block begins at 1 and the table has ids to 1"}},
		"negative sequence": {"DROP SEQUENCE {sequence}; CREATE SEQUENCE {sequence} AS BIGINT INCREMENT BY 50 NO CACHE CYCLE", maintenance.Schema{}, []string{
			"must sequence dbo.outbox_event_seq: the sequence has CYCLE",
			"should sequence dbo.outbox_event_seq: the sequence is at -9223372036854775808",
			"should sequence dbo.outbox_event_seq: the sequence has NO CACHE",
		}},
		"unknown status": {"ALTER TABLE {events} DROP CONSTRAINT CK_outbox_event_status; " + strings.Replace(row, "(1,", "(-9,", 1) + "UPDATE {events} SET status = 7", maintenance.Schema{}, []string{
			"must column dbo.outbox_event.status: 1 row with a status that is NULL or none of 0, 1, 2",
			"should column dbo.outbox_event.status: no trusted CHECK",
		}},
		"status may not fail": {"ALTER TABLE {events} DROP CONSTRAINT CK_outbox_event_status; ALTER TABLE {events} ADD CONSTRAINT CK_x CHECK (status IN (0, 1))", maintenance.Schema{}, []string{
			"must column dbo.outbox_event.status: a CHECK does not let status be 2",
		}},
		"no check": {"ALTER TABLE {events} DROP CONSTRAINT CK_outbox_event_status", maintenance.Schema{}, []string{
			"should column dbo.outbox_event.status: no trusted CHECK holds status to 0, 1 and 2",
		}},
		"no default of status": {"ALTER TABLE {events} DROP CONSTRAINT DF_outbox_event_status", maintenance.Schema{}, []string{
			"must column dbo.outbox_event.status: the column status is NOT NULL without a default: an INSERT that does not name it fails, as those of sqlserver.Writer and of the procedure +",
		}},
		"wrong default of status": {"ALTER TABLE {events} DROP CONSTRAINT DF_outbox_event_status; ALTER TABLE {events} ADD CONSTRAINT DF_s DEFAULT (1) FOR status", maintenance.Schema{}, []string{
			"must column dbo.outbox_event.status: the default of status is ((1))",
		}},
		"local time": {"ALTER TABLE {events} DROP CONSTRAINT DF_outbox_event_created_at; ALTER TABLE {events} ADD CONSTRAINT DF_c DEFAULT (GETDATE()) FOR created_at", maintenance.Schema{}, []string{
			"should column dbo.outbox_event.created_at: the default of created_at is (getdate())",
		}},
		"no time": {"ALTER TABLE {events} DROP CONSTRAINT DF_outbox_event_created_at; ALTER TABLE {events} ADD CONSTRAINT DF_c DEFAULT ('1900-01-01') FOR created_at", maintenance.Schema{}, []string{
			"should column dbo.outbox_event.created_at: the default of created_at is ('1900-01-01'), the same for every event",
		}},
		"a column of their own": {"ALTER TABLE {events} ADD tenant INT NOT NULL CONSTRAINT DF_t DEFAULT (0); ALTER TABLE {events} DROP CONSTRAINT DF_t; ALTER TABLE {events} ADD note INT NULL", maintenance.Schema{}, []string{
			"should column dbo.outbox_event.tenant: the column tenant is NOT NULL without a default",
		}},
		"no receipts, no workers": {"DROP TABLE {receipts}; DROP TABLE {workers}", maintenance.Schema{}, []string{
			"must table dbo.outbox_event_claim: the receipt table is missing, or this login has no right on it +",
			"must table dbo.outbox_event_worker: the table of heartbeats is missing, or this login has no right on it +",
		}},
		"heartbeats of an older version": {"ALTER TABLE {workers} DROP COLUMN state; INSERT INTO {workers} (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at) VALUES ('w', '1', 's', 1, 1, 1, '2026-01-01', '2026-01-01')", maintenance.Schema{}, []string{
			"must column dbo.outbox_event_worker.state: the column state is missing +",
		}},
		"other receipts": {"ALTER TABLE {receipts} ALTER COLUMN claimed_at DATETIME2(0) NOT NULL; ALTER TABLE {receipts} ALTER COLUMN event_ids VARCHAR(4000) NOT NULL", maintenance.Schema{}, []string{
			"must column dbo.outbox_event_claim.claimed_at: the column claimed_at is DATETIME2(0), must be DATETIME2(3) or finer",
			"must column dbo.outbox_event_claim.event_ids: the column event_ids is VARCHAR(4000), must be VARCHAR(MAX)",
		}},
		"the fence": {"ALTER TABLE {events} ALTER COLUMN processed_at DATETIME NULL", maintenance.Schema{}, []string{
			"must column dbo.outbox_event.processed_at: the column processed_at is DATETIME, must be DATETIME2(3) or finer",
		}},
		"the way back": {"ALTER TABLE {events} ALTER COLUMN processed_at DATETIME2(3) NOT NULL", maintenance.Schema{}, []string{
			"must column dbo.outbox_event.processed_at: the column processed_at is NOT NULL, and an event that goes back to PENDING must have none",
			"should column dbo.outbox_event.processed_at: the column processed_at is NOT NULL without a default",
		}},
		"nothing at all": {"DROP TABLE {events}; DROP TABLE {receipts}; DROP TABLE {workers}; DROP TABLE {controls}; DROP SEQUENCE {sequence}", maintenance.Schema{}, []string{
			"should sequence dbo.outbox_event_seq: ", "must table dbo.outbox_event: ", "must index IX_outbox_claim: ", "must index IX_outbox_retry: ",
			"must table dbo.outbox_event_claim: ", "must table dbo.outbox_event_worker: ", "must table dbo.outbox_event_control: ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTable(t, emulator.Config{}, scripts.Options{})
			b.exec(c.damage)
			findings := b.check(c.schema).Findings
			got := short(findings)
			same := len(got) == len(c.want)
			for i := 0; same && i < len(got); i++ {
				same = strings.HasPrefix(got[i], c.want[i]) && strings.HasSuffix(got[i], " +") == (strings.HasSuffix(c.want[i], " +") || strings.HasSuffix(c.want[i], ": "))
			}
			if !same {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			b.mend(c.schema, findings)
		})
	}
}

// mend sends the SQL of every finding, and sees that each is gone.
func (b *table) mend(s maintenance.Schema, findings []sqlserver.Finding) {
	b.t.Helper()
	var mended []string
	for _, f := range findings {
		if f.SQL == "" || strings.Contains(f.SQL, "<") {
			continue
		}
		if _, err := b.server.Exec(b.t.Context(), f.SQL); err != nil {
			b.t.Errorf("%v in the SQL of %q:\n%s", err, f.Problem, f.SQL)
			continue
		}
		mended = append(mended, f.Object+f.Problem)
	}
	for _, f := range b.check(s).Findings {
		if slices.Contains(mended, f.Object+f.Problem) {
			b.t.Errorf("its SQL does not mend %q", f.Problem)
		}
	}
}

// The table of the article, and of many who come from elsewhere.
const foreignTable = `CREATE SCHEMA sales;`

const foreignEvents = `
CREATE TABLE {events} (
    id             BIGINT NOT NULL CONSTRAINT PK_x PRIMARY KEY CLUSTERED WITH (FILLFACTOR = 85),
    event_type     INT NOT NULL,
    aggregate_type NVARCHAR(100) NOT NULL,
    aggregate_id   NVARCHAR(100) NOT NULL,
    payload        NVARCHAR(2000) NOT NULL,
    status         INT NOT NULL,
    created_at     DATETIME2(7) NOT NULL,
    processed_at   DATETIME2(7) NULL,
    tenant         INT NULL
);`

func TestSchemaApplyOnAForeignTable(t *testing.T) {
	b := newEngine(t, emulator.Config{})
	b.names = sqlserver.Names{Schema: "sales", Table: "events", ClaimIndex: "IX claim", RetryIndex: "IX retry"}
	b.exec(foreignTable)
	b.exec(foreignEvents)
	b.exec("INSERT INTO {events} (id, event_type, aggregate_type, aggregate_id, payload, status, created_at) VALUES (100, 7, N'a', N'1', N'{}', 0, '2026-01-01')")
	schema := maintenance.Schema{Target: b.target()}
	plan, err := schema.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var objects []string
	for _, s := range plan.Steps {
		objects = append(objects, s.Object)
	}
	want := []string{
		"column sales.events.headers", "column sales.events.retry_at", "column sales.events.retry_count", "column sales.events.last_error",
		"column sales.events.created_at", "column sales.events.status",
		"index IX claim", "index IX retry", "table sales.events_claim", "table sales.events_worker", "table sales.events_control",
	}
	if diff := cmp.Diff(want, objects); diff != "" || plan.Executed {
		t.Fatalf("the plan adds (-want +got):\n%s", diff)
	}
	if n := b.value("SELECT COUNT(*) FROM sys.columns WHERE object_id = OBJECT_ID('sales.events')"); n != int64(9) {
		t.Fatalf("the plan changed the table: %v columns", n)
	}
	change, err := schema.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range change.Steps {
		if !s.Done {
			t.Errorf("%s was not added", s.Object)
		}
	}
	if change.Must != 0 {
		t.Errorf("left:\n%s", strings.Join(short(change.Left), "\n"))
	}
	// The worker starts on it.
	store, err := sqlserver.New(sqlserver.Config{DB: b.db, Names: b.names, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for query, want := range map[string]any{
		"SELECT status FROM {events}":                              int64(0),
		"SELECT retry_count FROM {events}":                         int64(0),
		"SELECT fill_factor FROM sys.indexes WHERE name = N'PK_x'": int64(85), // nothing that is there is changed
		"SELECT TYPE_NAME(system_type_id) FROM sys.columns WHERE name = 'payload' AND object_id = OBJECT_ID('sales.events')": "nvarchar",
	} {
		if got := b.value(query); got != want {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	again, err := schema.Apply(t.Context())
	if err != nil || len(again.Steps) != 0 {
		t.Errorf("a second time: %+v, %v", again.Steps, err)
	}
}

func TestSchemaApplyLeavesWhatNobodyCanKnow(t *testing.T) {
	b := newEngine(t, emulator.Config{})
	b.exec(`CREATE TABLE {events} (id BIGINT NOT NULL PRIMARY KEY, payload VARCHAR(100) NOT NULL); INSERT INTO {events} (id, payload) VALUES (1, 'x')`)
	change, err := maintenance.Schema{Target: b.target()}.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := strings.Join(short(change.Left), "\n")
	if !contains(left, "column dbo.outbox_event.status: the column status is missing", "event_type is missing", "IX_outbox_claim is not there") || change.Must == 0 {
		t.Errorf("left\n%s", left)
	}
	for _, f := range change.Left {
		if f.Object == "column dbo.outbox_event.status" && !contains(f.SQL+f.Advice, "DEFAULT (1)", "would be published") {
			t.Errorf("got %+v", f)
		}
	}
	if n := b.value("SELECT COUNT(*) FROM sys.columns WHERE object_id = OBJECT_ID('{events}') AND name = 'status'"); n != int64(0) {
		t.Error("status was added")
	}
}

func TestSchemaApplyStopsAtTheFirstError(t *testing.T) {
	b := newEngine(t, emulator.Config{})
	schema := maintenance.Schema{Target: b.target()}
	// The first requests look at what is there.
	b.server.Inject(emulator.Fault{Nth: 14, Error: &emulator.Error{Number: 1222, Class: 16, Message: "Lock request time out period exceeded."}})
	change, err := schema.Apply(t.Context())
	if err == nil || sqlserver.ClassOf(err) != sqlserver.Contention || !contains(err.Error(), "run it again to go on", "of 7") {
		t.Fatalf("got %v and %+v", err, change)
	}
	done := slices.IndexFunc(change.Steps, func(s maintenance.SchemaStep) bool { return !s.Done })
	if done < 1 {
		t.Fatalf("%d steps were done before the error", done)
	}
	again, err := schema.Apply(t.Context())
	if err != nil || len(again.Steps) != 7-done || again.Must != 0 || len(again.Left) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func TestSchemaApplyIsAlone(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	conn, err := b.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "EXEC sys.sp_getapplock @Resource = N'outbox:schema:[dbo].[outbox_event]', @LockMode = 'Exclusive', @LockOwner = 'Session', @DbPrincipal = 'public'"); err != nil {
		t.Fatal(err)
	}
	_, err = maintenance.Schema{Target: b.target()}.Apply(t.Context())
	var refusal *maintenance.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
}

func TestSchemaOnAnEditionWithoutOnline(t *testing.T) {
	b := newTable(t, emulator.Config{Edition: emulator.SQLServerStandard}, scripts.Options{})
	b.exec("DROP INDEX IX_outbox_retry ON {events}")
	change, err := maintenance.Schema{Target: b.target()}.Apply(context.Background())
	if err != nil || len(change.Steps) != 1 || strings.Contains(change.Steps[0].SQL, "ONLINE") {
		t.Errorf("%+v, %v", change, err)
	}
}
