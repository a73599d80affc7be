package claimbench_test

import (
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/claimbench"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// The log is that of the transaction, in this database: what tempdb has of it is
// left out. The embedded engine has no log, so that the view is made up, for all
// the transactions that there can be.
func TestTheLogOfATransaction(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	sets, err := b.server.Exec(t.Context(), "SELECT CURRENT_TRANSACTION_ID();")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any
	for id := range int64(2000) {
		id += sets[0].Rows[0][0].(int64)
		rows = append(rows, []any{id, 5, 10_000}, []any{id, 2, 999})
	}
	if _, err := b.server.FakeView(emulator.FakeView{
		Name: "sys.dm_tran_database_transactions", Columns: []string{"transaction_id", "database_id", "database_transaction_log_bytes_used"}, Rows: rows,
	}); err != nil {
		t.Fatal(err)
	}
	r := b.run(b.small())
	for _, x := range r.Results {
		if x.Log == nil || *x.Log != 500 {
			t.Errorf("%+v", x)
		}
	}
	if c := r.Cheapest.Log; c == nil || c.PerEvent != 500 || c.Clear || len(r.Notes) > 0 {
		t.Errorf("%+v, notes %q", c, r.Notes)
	}
}

// A plan that was thrown out of the cache takes its figures along: they are
// unknown, and never those of something else.
func TestThePlanCacheForgets(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	bench := b.small()
	var faked *emulator.Faked
	bench.Progress = func(p maintenance.Progress) {
		switch {
		case p.Stage == "claim by the slim index" && p.Done == p.Total:
			var err error
			if faked, err = b.server.FakeView(emulator.FakeView{Name: "sys.dm_exec_query_stats", Columns: []string{"sql_handle", "plan_handle"}}); err != nil {
				t.Error(err)
			}
		}
	}
	r := b.run(bench)
	if faked == nil {
		t.Fatal("nothing was forgotten")
	}
	for _, x := range r.Results {
		if (x.CPU != nil) != (x.Index == claimbench.Covering) || (x.Reads == nil) != (x.CPU == nil) || (x.Elapsed == nil) != (x.CPU == nil) || x.BatchMillis <= 0 {
			t.Errorf("%+v", x)
		}
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "pipeline with the slim index: the plan cache has lost BenchClaimEvents SELECT before it was read; its figures are unknown, run it again") {
		t.Errorf("notes %q", r.Notes)
	}
	if c := r.Cheapest.CPU; c == nil || c.Index != claimbench.Covering {
		t.Errorf("%+v", c)
	}
}

// What is claimed in a round is new each time, and never what another strategy has.
func TestOnlyWhatIsAskedForIsMeasured(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	bench := b.small()
	bench.Strategies, bench.Rows = []string{claimbench.UpdateTop}, 80
	r := b.run(bench)
	if len(r.Results) != 4 || r.Results[1].Strategy != claimbench.UpdateTop || r.Results[1].Events != 60 {
		t.Errorf("%+v", r.Results)
	}
	if c := r.Cheapest.CPU; c == nil || c.Times != nil || c.Next != "" {
		t.Errorf("with one strategy there is no other: %+v", c)
	}
}
