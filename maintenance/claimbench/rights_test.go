package claimbench_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/claimbench"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// Without the plan cache there is nothing to decide by: neither plan nor run goes
// on, nothing is made, and the refusal has the GRANT for this engine.
func TestTheRightToReadThePlanCache(t *testing.T) {
	for name, c := range map[string]struct {
		edition emulator.Edition
		grant   string
	}{
		"Azure SQL Database": {emulator.AzureSQLDatabase, "GRANT VIEW DATABASE STATE TO [dbo];"},
		"SQL Server":         {emulator.SQLServerStandard, "GRANT VIEW SERVER PERFORMANCE STATE TO [outbox]; -- in master"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOutbox(t, emulator.Config{Edition: c.edition}, scripts.Options{})
			before := b.tables()
			if _, err := b.server.FakeView(emulator.FakeView{Name: "sys.dm_exec_query_stats", Denied: true}); err != nil {
				t.Fatal(err)
			}
			_, planned := b.small().Plan(t.Context())
			r, ran := b.small().Run(t.Context())
			for _, err := range []error{planned, ran} {
				var refusal *maintenance.Refusal
				if !errors.As(err, &refusal) || refusal.Remedy != c.grant || !strings.Contains(refusal.Found, "sys.dm_exec_query_stats") {
					t.Errorf("error is %v", err)
				}
			}
			if r.Executed || b.tables() != before || b.server.StatementCount("BenchCreateScratch") > 0 {
				t.Errorf("%+v, tables were %s and are %s", r, before, b.tables())
			}
		})
	}
}

// The log alone may be out of sight: it is unknown then, and said so once.
func TestTheRightToReadTheLog(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	if _, err := b.server.FakeView(emulator.FakeView{Name: "sys.dm_tran_database_transactions", Denied: true}); err != nil {
		t.Fatal(err)
	}
	r := b.run(b.small())
	for _, x := range r.Results {
		if x.Log != nil || x.CPU == nil {
			t.Errorf("%+v", x)
		}
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "GRANT VIEW DATABASE STATE TO [dbo];") || r.Cheapest.Log != nil {
		t.Errorf("notes %q, cheapest %+v", r.Notes, r.Cheapest.Log)
	}
}

func TestTheRightToMakeATable(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	b.exec(`CREATE USER dba WITH PASSWORD = 'Aa1!aaaaaaaa';
GRANT VIEW DATABASE STATE TO dba;
GRANT SELECT ON dbo.outbox_event TO dba;`)
	db, err := sqlserver.Open(b.server.DSNFor("dba", "Aa1!aaaaaaaa"), sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	bench := b.small()
	bench.DB = db
	_, err = bench.Run(t.Context())
	var refusal *maintenance.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("error is %v", err)
	}
	_, grants, _ := strings.Cut(refusal.Remedy, ": ")
	if grants != "GRANT CREATE TABLE TO [dba]; GRANT ALTER, SELECT, INSERT, UPDATE, DELETE ON SCHEMA::[dbo] TO [dba];" {
		t.Errorf("error is %v", err)
	}
	// What it says is enough.
	b.exec(grants)
	if r := runOn(t, bench, db); len(r.Results) != 10 {
		t.Errorf("%+v", r)
	}
}

func runOn(t *testing.T, bench claimbench.Bench, db *sql.DB) claimbench.Report {
	t.Helper()
	bench.DB = db
	r, err := bench.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}
