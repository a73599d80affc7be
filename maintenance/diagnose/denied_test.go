package diagnose_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance/diagnose"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// A right that is missing costs its section, or its piece of one, and no more.
func TestMissingRights(t *testing.T) {
	const (
		azure  = "GRANT VIEW DATABASE STATE TO [dbo];"
		server = "GRANT VIEW SERVER PERFORMANCE STATE TO [outbox]; -- in master"
	)
	for _, c := range []struct {
		name    string
		edition emulator.Edition
		view    string
		unknown []string // sections that become so
		noted   []string // sections that say it in a note
		grant   string
	}{
		{"the plan cache", emulator.AzureSQLDatabase, "sys.dm_exec_query_stats", []string{"statements", "plan_cache", "claim_plan"}, []string{"indexes"}, azure},
		{"the plan cache of a server", emulator.SQLServerEnterprise, "sys.dm_exec_query_stats", []string{"statements", "plan_cache", "claim_plan"}, []string{"indexes"}, server},
		{"plans", emulator.AzureSQLDatabase, "sys.dm_exec_query_plan", []string{"claim_plan"}, nil, azure},
		{"sizes", emulator.AzureSQLDatabase, "sys.dm_db_partition_stats", nil, []string{"physics", "indexes"}, azure},
		{"pages", emulator.SQLServerStandard, "sys.dm_db_index_physical_stats", nil, []string{"physics", "indexes"}, "GRANT VIEW DATABASE STATE TO [dbo];"},
		{"use of indexes", emulator.SQLServerEnterprise, "sys.dm_db_index_usage_stats", nil, []string{"indexes"}, server},
		{"waits", emulator.AzureSQLDatabase, "sys.dm_db_wait_stats", []string{"waits"}, nil, azure},
		{"waits of a server", emulator.SQLServerEnterprise, "sys.dm_os_wait_stats", []string{"waits"}, nil, server},
		{"waits of an instance", emulator.ManagedInstance, "sys.dm_os_wait_stats", []string{"waits"}, nil, "GRANT VIEW SERVER STATE TO [outbox]; -- in master"},
		{"load", emulator.AzureSQLDatabase, "sys.dm_db_resource_stats", nil, []string{"waits"}, azure},
		{"Query Store", emulator.AzureSQLDatabase, "sys.database_query_store_options", []string{"query_store"}, []string{"statements"}, azure},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOutbox(t, emulator.Config{Edition: c.edition})
			o.events(10)
			o.work()
			before := o.diagnose()
			o.fake(emulator.FakeView{Name: c.view, Denied: true})
			r := o.diagnose()
			for i, s := range r.Sections {
				said := s.Reason + "\n" + strings.Join(append(s.Remedy, s.Evidence.Notes...), "\n")
				switch {
				case slices.Contains(c.unknown, s.ID):
					if s.Verdict != diagnose.Unknown || !strings.Contains(s.Reason, "is missing.") || !slices.Contains(s.Remedy, c.grant) {
						t.Errorf("%s is %s: %q, %q", s.ID, s.Verdict, s.Reason, s.Remedy)
					}
				case slices.Contains(c.noted, s.ID):
					if s.Verdict != before.Sections[i].Verdict || !strings.Contains(said, "is missing.") || !strings.Contains(said, c.grant) {
						t.Errorf("%s is %s and says %q", s.ID, s.Verdict, said)
					}
				default:
					if s.Verdict != before.Sections[i].Verdict || strings.Contains(said, "is missing.") {
						t.Errorf("%s is %s, was %s, and says %q", s.ID, s.Verdict, before.Sections[i].Verdict, said)
					}
				}
			}
		})
	}
}

// What fails for another reason says so, and the others go on.
func TestASectionThatFails(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	o.events(10)
	o.work()
	o.fake(emulator.FakeView{Name: "sys.dm_exec_query_stats", Error: &emulator.Error{Number: 8623, Class: 16, Message: "The query processor ran out of internal resources"}})
	o.server.Inject(emulator.Fault{Statement: "DiagnoseDatabaseWaits", Times: -1, Drop: emulator.DropBefore})
	r := o.diagnose()
	for id, want := range map[string]string{"statements": "ran out of internal resources", "plan_cache": "ran out of internal resources", "waits": "read the waits of dbo.outbox_event"} {
		s := section(t, r, id)
		if s.Verdict != diagnose.Unknown || !strings.Contains(s.Reason, want) {
			t.Errorf("%s is %s: %q", id, s.Verdict, s.Reason)
		}
	}
	if s := section(t, r, "indexes"); s.Verdict != diagnose.OK {
		t.Errorf("indexes are %s: %+v", s.Verdict, s.Evidence.Findings)
	}
}

func TestASlowAnswerCostsItsSection(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, emulator.Config{})
	o.events(10)
	o.work()
	o.server.Inject(emulator.Fault{Statement: "DiagnoseStatements", Delay: time.Hour})
	r, err := diagnose.Run(t.Context(), diagnose.Config{DB: o.db, StatementTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if s := section(t, r, "claim_plan"); s.Verdict != diagnose.Unknown || !strings.Contains(s.Reason, "no answer within the time that one statement may take (3s)") {
		t.Errorf("the claim's plan is %s: %q", s.Verdict, s.Reason)
	}
	if s := section(t, r, "indexes"); s.Verdict == diagnose.Unknown {
		t.Errorf("indexes are unknown: %q", s.Reason)
	}
}

func TestStopped(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	ctx, stop := context.WithCancelCause(t.Context())
	_, err := diagnose.Run(ctx, diagnose.Config{DB: o.db, Progress: func(done, total int, title string) {
		if done == 3 {
			stop(errors.New("enough"))
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "diagnose dbo.outbox_event: enough") {
		t.Errorf("got %v", err)
	}
}

func TestEditions(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  emulator.Config
		engine  string
		waits   string // whose they are
		fakes   []emulator.FakeView
		figures map[string]float64
	}{
		{
			"Azure SQL Database",
			emulator.Config{ServiceObjective: "GP_S_Gen5_4"},
			"Azure SQL Database", "this database",
			[]emulator.FakeView{{Name: "sys.dm_db_wait_stats", Columns: []string{"wait_type", "waiting_tasks_count", "wait_time_ms"}, Rows: [][]any{{"WRITELOG", 10, 9}}}},
			map[string]float64{"memory (documented for GP_S_Gen5_4)": 12 << 30, "log-rate limit (documented for GP_S_Gen5_4)": 18 << 20},
		},
		{
			"Managed Instance",
			emulator.Config{Edition: emulator.ManagedInstance},
			"Azure SQL Managed Instance", "the whole server",
			[]emulator.FakeView{
				{Name: "sys.dm_os_wait_stats", Columns: []string{"wait_type", "waiting_tasks_count", "wait_time_ms"}, Rows: [][]any{{"WRITELOG", 10, 9}}},
				{Name: "sys.dm_os_job_object", Columns: []string{"process_memory_limit_mb BIGINT", "non_sos_mem_gap_mb BIGINT"}, Rows: [][]any{{22_000, 1_520}}},
				{Name: "sys.server_resource_stats", Columns: []string{"end_time DATETIME", "sku NVARCHAR(128)", "virtual_core_count INT", "avg_cpu_percent DECIMAL(5,2)"}, Rows: [][]any{
					{time.Now().Add(-15 * time.Second), "Business Critical", 8, "12.5"}, {time.Now(), "Business Critical", 8, "14.5"},
				}},
			},
			map[string]float64{
				"memory (sys.dm_os_job_object)": 20_480 << 20,
				"log-rate limit (documented for Business Critical with 8 vCores, per instance)": 32 << 20,
			},
		},
		{
			"SQL Server",
			emulator.Config{Edition: emulator.SQLServerEnterprise},
			"SQL Server", "the whole server",
			[]emulator.FakeView{
				{Name: "sys.dm_os_wait_stats", Columns: []string{"wait_type", "waiting_tasks_count", "wait_time_ms"}, Rows: [][]any{{"WRITELOG", 10, 9}}},
				{Name: "sys.dm_os_sys_info", Columns: []string{"committed_target_kb BIGINT", "sqlserver_start_time DATETIME"}, Rows: [][]any{{64 << 20, "2026-11-01T08:00:00"}}},
			},
			map[string]float64{"memory (committed_target_kb of sys.dm_os_sys_info)": 64 << 30},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOutbox(t, c.config)
			o.events(10)
			o.work()
			for _, f := range c.fakes {
				o.fake(f)
			}
			r := o.diagnose()
			if r.Engine != c.engine {
				t.Errorf("the engine is %q", r.Engine)
			}
			for _, s := range r.Sections {
				if s.Verdict != diagnose.OK && s.ID != "query_store" && s.ID != "physics" {
					t.Errorf("%s is %s: %+v", s.ID, s.Verdict, s.Evidence.Findings)
				}
			}
			waits := section(t, r, "waits")
			if c.config.Edition == emulator.ManagedInstance && (len(waits.Evidence.Charts) != 1 || len(waits.Evidence.Charts[0].Points) != 2) {
				t.Errorf("charts: %+v", waits.Evidence.Charts)
			}
			if notes := strings.Join(waits.Evidence.Notes, "\n"); !strings.Contains(notes, "Waits are those of "+c.waits) {
				t.Errorf("waits: %s", notes)
			}
			for _, f := range section(t, r, "physics").Evidence.Figures {
				if want, ok := c.figures[f.Name]; ok {
					if f.Value != want {
						t.Errorf("%s is %v, want %v", f.Name, f.Value, want)
					}
					delete(c.figures, f.Name)
				}
			}
			if len(c.figures) > 0 {
				t.Errorf("no figures %v in %+v", c.figures, section(t, r, "physics").Evidence.Figures)
			}
		})
	}
}

// A user who may read the table and nothing else gets a report, with the GRANTs
// that would fill it, and each of them is to be run as it stands.
func TestAUserWithoutRights(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	o.events(10)
	o.work()
	o.exec("CREATE USER [the reader] WITH PASSWORD = 'Correct-Horse-1'; GRANT SELECT ON dbo.outbox_event TO [the reader]")
	reader, err := sqlserver.Open(o.server.DSNFor("the reader", "Correct-Horse-1"), sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	run := func() *diagnose.Report {
		r, err := diagnose.Run(t.Context(), diagnose.Config{DB: reader})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := run()
	var grants []string
	for _, id := range []string{"statements", "plan_cache", "claim_plan", "waits", "query_store"} {
		s := section(t, before, id)
		if s.Verdict != diagnose.Unknown || len(s.Remedy) != 1 || !strings.HasPrefix(s.Remedy[0], "GRANT ") {
			t.Errorf("%s is %s: %q, %q", id, s.Verdict, s.Reason, s.Remedy)
			continue
		}
		grants = append(grants, s.Remedy[0])
	}
	for _, g := range slices.Compact(grants) {
		o.exec(g)
	}
	after := run()
	indexes := section(t, after, "indexes")
	if notes := strings.Join(indexes.Evidence.Notes, "\n"); !strings.Contains(notes, "GRANT VIEW DEFINITION TO [the reader];") {
		t.Errorf("nothing says that filters are hidden: %s", notes)
	}
	for _, id := range []string{"statements", "plan_cache", "claim_plan", "indexes", "waits"} {
		if s := section(t, after, id); s.Verdict != diagnose.OK {
			t.Errorf("after %q %s is %s: %+v", grants, id, s.Verdict, s.Evidence.Findings)
		}
	}
}
