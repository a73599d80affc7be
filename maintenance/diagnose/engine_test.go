package diagnose_test

import (
	"database/sql"
	"strings"
	"testing"

	"azsqloutbox/maintenance/diagnose"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

// outbox is an embedded engine with the tables, and some events that a store has
// claimed and settled.
type outbox struct {
	t      testing.TB
	server *emulator.Server
	db     *sql.DB
}

func newOutbox(t testing.TB, c emulator.Config) *outbox {
	t.Helper()
	server, err := emulator.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	db, err := sqlserver.Open(server.DSN(), sqlserver.Options{AppName: "diagnose-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	o := &outbox{t: t, server: server, db: db}
	script, err := scripts.Outbox(scripts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		o.exec(batch)
	}
	return o
}

func (o *outbox) exec(text string, args ...any) {
	o.t.Helper()
	if _, err := o.db.ExecContext(o.t.Context(), text, args...); err != nil {
		o.t.Fatalf("%v in\n%s", err, text)
	}
}

// query runs a statement as an application would, and drops its rows.
func (o *outbox) query(text string, args ...any) {
	o.t.Helper()
	rows, err := o.db.QueryContext(o.t.Context(), text, args...)
	if err != nil {
		o.t.Fatalf("%v in\n%s", err, text)
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		o.t.Fatalf("%v in\n%s", err, text)
	}
	rows.Close()
}

// events adds n pending ones of the type order.created.
func (o *outbox) events(n int) {
	o.t.Helper()
	o.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)
SELECT ISNULL((SELECT MAX(e.id) FROM dbo.outbox_event AS e), 0) + g.value, 'order', CONVERT(VARCHAR(20), g.value), 'order.created', CONCAT('{"n":', g.value, ',"text":"`+strings.Repeat("x", 200)+`"}')
FROM GENERATE_SERIES(1, @n) AS g`, sql.Named("n", n))
}

// work claims and settles everything, as a worker does.
func (o *outbox) work() {
	o.t.Helper()
	store, err := sqlserver.New(sqlserver.Config{DB: o.db, Owner: "test"})
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	for {
		claim, err := store.Claim(o.t.Context(), worker.ClaimRequest{EventType: "order.created", Batch: 100})
		if err != nil {
			o.t.Fatal(err)
		}
		if len(claim.Events) == 0 {
			return
		}
		if _, err := store.SettleSent(o.t.Context(), []worker.Receipt{claim.Receipt}); err != nil {
			o.t.Fatal(err)
		}
	}
}

func (o *outbox) diagnose() *diagnose.Report {
	o.t.Helper()
	r, err := diagnose.Run(o.t.Context(), diagnose.Config{DB: o.db})
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

func section(t testing.TB, r *diagnose.Report, id string) diagnose.Section {
	t.Helper()
	for _, s := range r.Sections {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no section %s", id)
	return diagnose.Section{}
}

// findings are the texts of a section's findings of that verdict, in one.
func findings(s diagnose.Section, v diagnose.Verdict) string {
	var texts []string
	for _, f := range s.Evidence.Findings {
		if f.Verdict == v {
			texts = append(texts, f.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func TestAHealthyOutbox(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	o.events(250)
	o.work()
	r := o.diagnose()
	want := map[string]diagnose.Verdict{
		"statements": diagnose.OK, "plan_cache": diagnose.OK, "claim_plan": diagnose.OK, "physics": diagnose.Unknown, // there are no pages here

		"indexes": diagnose.OK, "waits": diagnose.OK, "query_store": diagnose.Unknown,
	}
	for _, s := range r.Sections {
		if s.Verdict != want[s.ID] {
			t.Errorf("%s is %s: %+v", s.ID, s.Verdict, s.Evidence.Findings)
		}
	}
	if r.Verdict != diagnose.OK || len(r.Sections) != 7 {
		t.Errorf("the report of %d sections is %s", len(r.Sections), r.Verdict)
	}
	if text := findings(section(t, r, "claim_plan"), diagnose.OK); !strings.Contains(text, "ClaimEvents SELECT seeks IX_outbox_claim") {
		t.Errorf("the claim's plan: %s", text)
	}
	if got := figureOf(t, r, "statements", "events claimed"); got != int64(250) {
		t.Errorf("events claimed: %v", got)
	}
}

func figureOf(t testing.TB, r *diagnose.Report, id, name string) any {
	t.Helper()
	for _, f := range section(t, r, id).Evidence.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("%s has no figure %q: %+v", id, name, section(t, r, id).Evidence.Figures)
	return nil
}
