package claimbench_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/claimbench"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// outbox is an embedded engine with the tables of an outbox.
type outbox struct {
	t      testing.TB
	server *emulator.Server
	db     *sql.DB
	names  sqlserver.Names
}

func newOutbox(t testing.TB, c emulator.Config, o scripts.Options) *outbox {
	t.Helper()
	server, err := emulator.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	db, err := sqlserver.Open(server.DSN(), sqlserver.Options{AppName: "claimbench-test", LongStatements: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &outbox{t: t, server: server, db: db, names: sqlserver.Names{Schema: o.Schema, Table: o.Table, ClaimIndex: o.ClaimIndex, RetryIndex: o.RetryIndex}}
	script, err := scripts.Outbox(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		b.exec(batch)
	}
	return b
}

func (b *outbox) exec(text string) {
	b.t.Helper()
	if _, err := b.server.Exec(b.t.Context(), b.names.Replacer().Replace(text)); err != nil {
		b.t.Fatalf("%v in\n%s", err, text)
	}
}

// tables are those of the database, by name.
func (b *outbox) tables() string {
	b.t.Helper()
	sets, err := b.server.Exec(context.WithoutCancel(b.t.Context()), "SELECT t.name FROM sys.tables AS t ORDER BY t.name;")
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, row := range sets[0].Rows {
		names = append(names, fmt.Sprint(row[0]))
	}
	return strings.Join(names, " ")
}

// small is a benchmark of a moment.
func (b *outbox) small() claimbench.Bench {
	return claimbench.Bench{Target: maintenance.Target{DB: b.db, Names: b.names}, Rows: 400, Batch: 20, Rounds: 3, Payload: 50}
}

func (b *outbox) run(bench claimbench.Bench) claimbench.Report {
	b.t.Helper()
	r, err := bench.Run(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestRunMeasuresEveryStrategyWithBothIndexes(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	before := b.tables()
	r := b.run(b.small())
	var got []string
	for _, x := range r.Results {
		got = append(got, fmt.Sprintf("%s/%s: %d events in %d batches of %d round trips", x.Strategy, x.Index, x.Events, x.Batches, x.RoundTrips))
		if x.CPU == nil || x.Elapsed == nil || x.Reads == nil || *x.Reads <= 0 && x.Strategy != claimbench.Insert || *x.Elapsed < *x.CPU || x.BatchMillis <= 0 {
			t.Errorf("%+v", x)
		}
		if x.Log != nil {
			t.Errorf("%s: %v bytes of log, and the embedded engine has none", x.Strategy, *x.Log)
		}
		for _, s := range x.Statements {
			if s.Executions != 3 {
				t.Errorf("%s: %+v: the warm-up counts, or a round does not", x.Strategy, s)
			}
		}
	}
	want := []string{
		"insert/covering: 60 events in 3 batches of 3 round trips",
		"pipeline/covering: 60 events in 3 batches of 4 round trips",
		"update-output/covering: 60 events in 3 batches of 3 round trips",
		"update-top/covering: 60 events in 3 batches of 3 round trips",
		"delete-output/covering: 60 events in 3 batches of 3 round trips",
		"insert/slim: 60 events in 3 batches of 3 round trips",
		"pipeline/slim: 60 events in 3 batches of 4 round trips",
		"update-output/slim: 60 events in 3 batches of 3 round trips",
		"update-top/slim: 60 events in 3 batches of 3 round trips",
		"delete-output/slim: 60 events in 3 batches of 3 round trips",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if after := b.tables(); after != before {
		t.Errorf("tables were %s and are %s", before, after)
	}
	if r.Cheapest.CPU == nil || r.Cheapest.Log != nil || r.Cheapest.CPU.Strategy == claimbench.DeleteOutput {
		t.Errorf("%+v", r.Cheapest)
	}
}
