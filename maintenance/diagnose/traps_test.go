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

// The traps of the Azure SQL article, made real.

func TestTraps(t *testing.T) {
	for _, c := range []struct {
		name    string
		spring  func(*outbox)
		section string
		verdict diagnose.Verdict
		want    []string
		remedy  string
	}{
		{
			"status is a parameter", func(o *outbox) {
				o.query("SELECT TOP (100) id, payload FROM dbo.outbox_event WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE event_type = CAST(@type AS VARCHAR(100)) AND status = @status ORDER BY id",
					sql.Named("type", "order.created"), sql.Named("status", 0))
			},
			"claim_plan", diagnose.Bad,
			[]string{"passes over the filtered index IX_outbox_claim, IX_outbox_retry (UnmatchedIndexes)", "scans PK_outbox_event"},
			"literal",
		},
		{
			"an NVARCHAR parameter", func(o *outbox) {
				o.query("SELECT TOP (100) id FROM dbo.outbox_event WHERE event_type = @type AND status = 0 ORDER BY id", sql.Named("type", "order.created"))
			},
			"claim_plan", diagnose.Bad,
			[]string{"converts the column, not the value (CONVERT_IMPLICIT(nvarchar"},
			"VARCHAR",
		},
		{
			"QUOTED_IDENTIFIER OFF", func(o *outbox) {
				conn, err := o.db.Conn(o.t.Context())
				if err != nil {
					o.t.Fatal(err)
				}
				defer conn.Close()
				for _, text := range []string{
					"SET QUOTED_IDENTIFIER OFF;",
					"SELECT TOP (10) id FROM dbo.outbox_event WHERE event_type = 'order.created' AND status = 0 ORDER BY id",
				} {
					if _, err := conn.ExecContext(o.t.Context(), text); err != nil {
						o.t.Fatal(err)
					}
				}
			},
			"plan_cache", diagnose.Bad,
			[]string{"ran with QUOTED_IDENTIFIER OFF", "1934"},
			"procedure",
		},
		{
			"ARITHABORT of SSMS and of the application", func(o *outbox) {
				conn, err := o.db.Conn(o.t.Context())
				if err != nil {
					o.t.Fatal(err)
				}
				defer conn.Close()
				for _, set := range []string{"SET ARITHABORT OFF;", "SET ARITHABORT ON;"} {
					for _, text := range []string{set, "SELECT TOP (10) id FROM dbo.outbox_event WHERE event_type = 'order.created' AND status = 0 ORDER BY id"} {
						if _, err := conn.ExecContext(o.t.Context(), text); err != nil {
							o.t.Fatal(err)
						}
					}
				}
			},
			"plan_cache", diagnose.Warn,
			[]string{"is compiled 2 times over. They differ in ARITHABORT.", "SSMS turns ARITHABORT on"},
			"SET ARITHABORT ON",
		},
		{
			"no claim index", func(o *outbox) {
				o.query("SELECT TOP (10) id FROM dbo.outbox_event WHERE event_type = 'order.created' AND status = 0 ORDER BY id")
				o.exec("DROP INDEX IX_outbox_claim ON dbo.outbox_event")
				o.query("SELECT TOP (10) id FROM dbo.outbox_event WHERE event_type = 'order.created' AND status = 0 ORDER BY id")
			},
			"indexes", diagnose.Bad,
			[]string{"There is no index IX_outbox_claim", "error 308"},
			"schema apply",
		},
		{
			"a disabled claim index", func(o *outbox) { o.exec("ALTER INDEX IX_outbox_claim ON dbo.outbox_event DISABLE") },
			"indexes", diagnose.Bad,
			[]string{"The index IX_outbox_claim is disabled"},
			"rebuild",
		},
		{
			"status in the key", func(o *outbox) {
				o.exec("CREATE INDEX IX_Outbox_Status_Event_Type_Covering ON dbo.outbox_event (status, event_type, id) INCLUDE (payload)")
				o.events(5)
			},
			"indexes", diagnose.Bad,
			[]string{"status is a key column of IX_Outbox_Status_Event_Type_Covering", "the payload with it"},
			"drop IX_Outbox_Status_Event_Type_Covering",
		},
		{
			"status in the claim index", func(o *outbox) {
				o.exec("CREATE INDEX IX_outbox_claim ON dbo.outbox_event (event_type, status) INCLUDE (payload) WITH (DROP_EXISTING = ON)")
				o.events(5)
			},
			"indexes", diagnose.Bad,
			[]string{"The index IX_outbox_claim has no filter", "status is a key column of IX_outbox_claim"},
			"DROP_EXISTING = ON",
		},
		{
			"an index that nobody reads", func(o *outbox) {
				o.exec("CREATE INDEX IX_nobody ON dbo.outbox_event (created_at)")
				o.exec("INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (100000, 'order', '1', 'order.created', '{}')")
			},
			"indexes", diagnose.Warn,
			[]string{"Nobody reads IX_nobody (created_at)", ": 1 write so far"},
			"DROP INDEX [IX_nobody]",
		},
		{
			"FILLFACTOR 85", func(o *outbox) {
				o.exec("ALTER INDEX PK_outbox_event ON dbo.outbox_event REBUILD WITH (FILLFACTOR = 85)")
			},
			"indexes", diagnose.Warn,
			[]string{"PK_outbox_event has FILLFACTOR 85"},
			"rebuild --fillfactor 98",
		},
		{
			"forced parameterization", func(o *outbox) { o.exec("ALTER DATABASE CURRENT SET PARAMETERIZATION FORCED") },
			"indexes", diagnose.Warn,
			[]string{"Forced parameterization is on"},
			"SET PARAMETERIZATION SIMPLE",
		},
		{
			"OFFSET", func(o *outbox) {
				o.query("SELECT id FROM dbo.outbox_event WHERE id > @from ORDER BY id OFFSET @skip ROWS FETCH NEXT 10 ROWS ONLY", sql.Named("from", 0), sql.Named("skip", 300))
			},
			"statements", diagnose.Warn,
			[]string{"OFFSET pages through the table"},
			"keyset",
		},
		{
			"the claim in one UPDATE … OUTPUT", func(o *outbox) {
				o.query("UPDATE TOP (10) e SET status = 1 OUTPUT inserted.id FROM dbo.outbox_event AS e WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE e.event_type = 'order.created' AND e.status = 0")
			},
			"statements", diagnose.Warn,
			[]string{"An UPDATE … OUTPUT claims in one statement"},
			"flip by primary key",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOutbox(t, emulator.Config{})
			o.events(320)
			c.spring(o)
			s := section(t, o.diagnose(), c.section)
			text := findings(s, c.verdict)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s says %s, with %s:\n%s\nnot %q", c.section, s.Verdict, c.verdict, text, want)
				}
			}
			if !strings.Contains(strings.Join(s.Remedy, "\n"), c.remedy) {
				t.Errorf("remedies are %q, none has %q", s.Remedy, c.remedy)
			}
			if strings.Join(s.Remedy, "") == "" || s.Verdict == diagnose.OK {
				t.Errorf("%s is %s", c.section, s.Verdict)
			}
		})
	}
}

// dm_exec_query_plan is NULL for a plan that nests 128 levels deep.
func TestAPlanThatIsTooDeepIsReadAsText(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	o.events(10)
	o.work()
	o.fake(emulator.FakeView{Name: "sys.dm_exec_query_plan", Columns: []string{"dbid"}, Rows: [][]any{{5}}})
	s := section(t, o.diagnose(), "claim_plan")
	if text := findings(s, diagnose.OK); !strings.Contains(text, "ClaimEvents SELECT seeks IX_outbox_claim") {
		t.Errorf("the claim's plan is %s: %s, %q", s.Verdict, text, s.Evidence.Notes)
	}
	// And one that the server has in neither form.
	o.fake(emulator.FakeView{Name: "sys.dm_exec_text_query_plan", Columns: []string{"dbid"}, Rows: [][]any{{5}}})
	s = section(t, o.diagnose(), "claim_plan")
	if notes := strings.Join(s.Evidence.Notes, "\n"); !strings.Contains(notes, "ClaimEvents SELECT: The server gives no plan for it") {
		t.Errorf("the claim's plan is %s: %q", s.Verdict, notes)
	}
}

func TestNoTableIsAnError(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	_, err := diagnose.Run(t.Context(), diagnose.Config{DB: o.db, Names: sqlserver.Names{Table: "elsewhere"}})
	if err == nil || !strings.Contains(err.Error(), "the table dbo.elsewhere cannot be seen") {
		t.Errorf("got %v", err)
	}
}

// Names are any, and are quoted wherever they go.
func TestOddNames(t *testing.T) {
	o := newOutbox(t, emulator.Config{})
	names := sqlserver.Names{Table: "it's ]odd[", ClaimIndex: "IX]claim'", RetryIndex: "IX retry"}
	script, err := scripts.Outbox(scripts.Options{Table: names.Table, ClaimIndex: names.ClaimIndex, RetryIndex: names.RetryIndex})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		o.exec(batch)
	}
	o.exec("INSERT INTO "+names.Events()+" (id, aggregate_type, aggregate_id, event_type, payload) VALUES (@id, 'order', '1', 'order.created', '{}')", sql.Named("id", 7))
	store, err := sqlserver.New(sqlserver.Config{DB: o.db, Owner: "test", Names: names})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if claim, err := store.Claim(t.Context(), worker.ClaimRequest{EventType: "order.created", Batch: 10}); err != nil || len(claim.Events) != 1 {
		t.Fatalf("claimed %d: %v", len(claim.Events), err)
	}
	// The other outbox of the database is not this one's.
	o.events(5)
	o.work()
	r, err := diagnose.Run(t.Context(), diagnose.Config{DB: o.db, Names: names})
	if err != nil {
		t.Fatal(err)
	}
	if got := figureOf(t, r, "statements", "events claimed"); got != int64(1) {
		t.Errorf("%v events claimed", got)
	}
	if text := findings(section(t, r, "claim_plan"), diagnose.OK); !strings.Contains(text, "seeks IX]claim'") {
		t.Errorf("the claim's plan: %s", text)
	}
	for _, id := range []string{"statements", "plan_cache", "claim_plan", "indexes"} {
		if s := section(t, r, id); s.Verdict != diagnose.OK {
			t.Errorf("%s is %s: %+v", id, s.Verdict, s.Evidence.Findings)
		}
	}
}
