package maintenance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// looks are the sizes that a test makes up for an index: the embedded engine has
// no pages.
type looks struct {
	index              string
	pages              int
	density, row       float64
	ghosts, lobs, rows int
}

func (b *table) fakePages(list ...looks) {
	b.t.Helper()
	object := b.value("SELECT OBJECT_ID('{events}')")
	var rows [][]any
	for _, l := range list {
		id := b.value("SELECT index_id FROM sys.indexes WHERE object_id = OBJECT_ID('{events}') AND name = '" + l.index + "'")
		rows = append(rows, []any{object, id, 1, "IN_ROW_DATA", 0, 12.5, l.pages, l.density, l.rows, l.ghosts, l.row})
		if l.lobs > 0 {
			rows = append(rows, []any{object, id, 1, "LOB_DATA", 0, 0.0, l.lobs, 70.0, 1, 0, 8000.0})
		}
	}
	b.fake(emulator.FakeView{
		Name: "sys.dm_db_index_physical_stats",
		Columns: []string{
			"object_id", "index_id", "partition_number", "alloc_unit_type_desc", "index_level", "avg_fragmentation_in_percent",
			"page_count", "avg_page_space_used_in_percent", "record_count", "ghost_record_count", "avg_record_size_in_bytes",
		},
		Rows: rows,
	})
}

func (b *table) fake(v emulator.FakeView) {
	b.t.Helper()
	if _, err := b.server.FakeView(v); err != nil {
		b.t.Fatal(err)
	}
}

// Columns that the engine does not know, from the views' pages in sql-docs.
var (
	governanceColumns  = []string{"database_name NVARCHAR(128)", "primary_max_log_rate BIGINT"}
	logColumns         = []string{"total_log_size_in_bytes BIGINT", "used_log_space_in_bytes BIGINT"}
	transactionColumns = []string{"transaction_id BIGINT", "transaction_begin_time DATETIME"}
	sessionColumns     = []string{"transaction_id BIGINT", "session_id INT", "is_user_transaction BIT"}
	databaseColumns    = []string{"transaction_id BIGINT", "database_id INT"}
)

// fakeLog makes up what the server knows of the log and of transactions.
func (b *table) fakeLog() {
	b.fake(emulator.FakeView{Name: "sys.dm_user_db_resource_governance", Columns: governanceColumns, Rows: [][]any{{b.value("SELECT DB_NAME()"), 100 << 20}}})
	b.fake(emulator.FakeView{Name: "sys.dm_db_log_space_usage", Columns: logColumns, Rows: [][]any{{1 << 30, 900 << 20}}})
	b.fake(emulator.FakeView{Name: "sys.dm_tran_active_transactions", Columns: transactionColumns, Rows: [][]any{{7, time.Now().UTC().Add(-10 * time.Minute)}, {8, time.Now().UTC()}}})
	b.fake(emulator.FakeView{Name: "sys.dm_tran_session_transactions", Columns: sessionColumns, Rows: [][]any{{7, 77, true}, {8, 78, true}}})
	b.fake(emulator.FakeView{Name: "sys.dm_tran_database_transactions", Columns: databaseColumns, Rows: [][]any{{7, b.value("SELECT DB_ID()")}, {8, b.value("SELECT DB_ID()")}}})
}

const (
	pk    = "PK_outbox_event"
	claim = "IX_outbox_claim"
	retry = "IX_outbox_retry"
)

func (b *table) rebuild() maintenance.Rebuild {
	return maintenance.Rebuild{Target: b.target(), LowPriorityWait: time.Minute, Poll: time.Millisecond}
}

func (b *table) fillFactor(index string) any {
	b.t.Helper()
	return b.value("SELECT fill_factor FROM sys.indexes WHERE object_id = OBJECT_ID('{events}') AND name = '" + index + "'")
}

func indexOf(t *testing.T, r maintenance.RebuildReport, name string) maintenance.RebuildIndex {
	t.Helper()
	at := slices.IndexFunc(r.Indexes, func(i maintenance.RebuildIndex) bool { return i.Name == name })
	if at < 0 {
		t.Fatalf("%s is not in the report", name)
	}
	return r.Indexes[at]
}

// Room in the pages is never filled: whoever asks for it is told, before anything
// is written.
func TestRebuildWarnsOfALowFillFactor(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	for _, c := range []struct {
		fillFactor   int
		force, warns bool
	}{{10, true, true}, {94, true, true}, {95, true, false}, {0, true, false}, {10, false, false}} {
		r := b.rebuild()
		r.Index, r.FillFactor, r.Force = pk, c.fillFactor, c.force
		plan, err := r.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(plan.Warnings, "\n"), "of every page empty for good"); got != c.warns {
			t.Errorf("%+v: warnings %q", c, plan.Warnings)
		}
	}
}

func TestRebuildOnlyWhatGains(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.exec("ALTER INDEX PK_outbox_event ON {events} REBUILD WITH (FILLFACTOR = 85); ALTER INDEX PK_outbox_event ON {events} SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF)")
	b.fakePages(looks{index: pk, pages: 9000, density: 80, row: 1300, rows: 45000, lobs: 100}, looks{index: claim, pages: 2000, density: 97, row: 100}, looks{index: retry, pages: 3, density: 10, row: 30})
	b.fakeLog()
	r := b.rebuild()
	plan, err := r.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := indexOf(t, plan, pk)
	if p.Action != maintenance.RebuildWhole || !p.Resumable || len(p.SQL) != 2 || *p.Bytes != 9100*8192 || *p.Density != 80 || *p.Fragmentation != 12.5 || *p.FreesBytes < 900*8192 || *p.LogBytes < 7900*8192 {
		t.Errorf("the plan of %s is %+v", pk, p)
	}
	if *plan.Log.MaxBytesPerSecond != 100<<20 || *plan.Log.LeastSeconds <= 0 || len(plan.Log.Transactions) != 1 || plan.Log.Transactions[0].Session != 77 {
		t.Errorf("the log is %+v", plan.Log)
	}
	warnings := strings.Join(plan.Warnings, "\n")
	if !contains(warnings, "session 77 has had a transaction open for 10m", "error 1205") {
		t.Errorf("warned of\n%s", warnings)
	}
	for _, other := range []string{claim, retry} {
		if i := indexOf(t, plan, other); i.Action != maintenance.RebuildNone || len(i.SQL) != 0 {
			t.Errorf("the plan of %s is %+v", other, i)
		}
	}
	if b.fillFactor(pk) != int64(85) || b.server.StatementCount("RebuildIndex")+b.server.StatementCount("SetSequentialKey") != 0 {
		t.Fatal("the plan changed something")
	}
	done, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if i := indexOf(t, done, pk); i.Outcome != maintenance.RebuildDone || i.BytesAfter == nil || *i.DensityAfter != 80 {
		t.Errorf("%+v", i)
	}
	if b.fillFactor(pk) != int64(98) || b.fillFactor(claim) != int64(0) || b.server.StatementCount("RebuildIndex") != 1 {
		t.Errorf("fill factors are %v and %v after %d rebuilds", b.fillFactor(pk), b.fillFactor(claim), b.server.StatementCount("RebuildIndex"))
	}
	if on := b.value("SELECT optimize_for_sequential_key FROM sys.indexes WHERE name = 'PK_outbox_event'"); on != true {
		t.Error("OPTIMIZE_FOR_SEQUENTIAL_KEY is off")
	}
}

func TestRebuildSetsAnOptionWithoutARebuild(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.exec("ALTER INDEX PK_outbox_event ON {events} SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF)")
	b.fakePages(looks{index: pk, pages: 9000, density: 96, row: 100})
	done, err := b.rebuild().Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if i := indexOf(t, done, pk); i.Action != maintenance.RebuildSet || i.Outcome != maintenance.RebuildDone {
		t.Errorf("%+v", i)
	}
	if b.server.StatementCount("RebuildIndex") != 0 || b.value("SELECT optimize_for_sequential_key FROM sys.indexes WHERE name = 'PK_outbox_event'") != true {
		t.Error("it was rebuilt, or the option is still off")
	}
}

func TestRebuildForcedAndNamed(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	r := b.rebuild()
	r.Force, r.FillFactor = true, 90
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{pk, claim, retry} {
		if f := b.fillFactor(index); f != int64(90) {
			t.Errorf("%s has fill factor %v", index, f)
		}
	}
	b.exec("ALTER INDEX IX_outbox_claim ON {events} DISABLE")
	r = b.rebuild()
	r.Index = "ix_outbox_CLAIM"
	done, err := r.Run(t.Context())
	if err != nil || len(done.Indexes) != 1 || b.fillFactor(claim) != int64(98) {
		t.Errorf("%+v, %v", done, err)
	}
	if off := b.value("SELECT is_disabled FROM sys.indexes WHERE name = 'IX_outbox_claim'"); off != false {
		t.Error("the claim index is still disabled")
	}
	b.exec("ALTER INDEX IX_outbox_claim ON {events} DISABLE")
	r = b.rebuild()
	r.ClaimIndex = "ix_outbox_CLAIM" // a worker's hint finds it in any case
	plan, err := r.Plan(t.Context())
	if err != nil || indexOf(t, plan, claim).Action != maintenance.RebuildWhole {
		t.Errorf("the disabled claim index, by another case: %+v, %v", indexOf(t, plan, claim), err)
	}
	r.Index = "IX_none"
	if _, err := r.Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) {
		t.Errorf("an unknown index: %v", err)
	}
}

func TestRebuildWithoutTheRightToSeeDensity(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.exec("ALTER INDEX PK_outbox_event ON {events} REBUILD WITH (FILLFACTOR = 70); INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'a', '1', 'x', '{}')")
	for view, columns := range map[string][]string{
		"sys.dm_db_index_physical_stats": nil, "sys.dm_db_log_space_usage": logColumns, "sys.dm_tran_active_transactions": transactionColumns,
		"sys.dm_tran_session_transactions": sessionColumns, "sys.dm_tran_database_transactions": databaseColumns, "sys.dm_user_db_resource_governance": governanceColumns,
	} {
		b.fake(emulator.FakeView{Name: view, Columns: columns, Denied: true})
	}
	done, err := b.rebuild().Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := indexOf(t, done, pk)
	if i.Outcome != maintenance.RebuildDone || i.Density != nil || !strings.Contains(i.Reason, "density was not seen") || b.fillFactor(pk) != int64(98) {
		t.Errorf("%+v", i)
	}
	if notes := strings.Join(done.Notes, "\n"); !contains(notes, "sys.dm_db_index_physical_stats", "GRANT VIEW DATABASE STATE TO [dbo]", "sys.dm_tran_active_transactions") {
		t.Errorf("noted\n%s", notes)
	}
}

func TestRebuildWithoutOnline(t *testing.T) {
	b := newTable(t, emulator.Config{Edition: emulator.SQLServerStandard}, scripts.Options{})
	r := b.rebuild()
	r.Index, r.Force = pk, true
	plan, err := r.Plan(t.Context())
	var refusal *maintenance.Refusal
	if !errors.As(err, &refusal) || !contains(err.Error(), "Standard", "--offline") || len(plan.Indexes) != 1 {
		t.Fatalf("%v with %+v", err, plan)
	}
	if _, err := r.Run(t.Context()); !errors.As(err, &refusal) || b.server.StatementCount("RebuildIndex") != 0 {
		t.Fatal(err)
	}
	r.Offline, r.FillFactor = true, 91
	done, err := r.Run(t.Context())
	if err != nil || b.fillFactor(pk) != int64(91) || done.Indexes[0].Resumable {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestRebuildElsewhereIsRefused(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.fakeOperation(0, 12)
	_, err := b.rebuild().Run(t.Context())
	var refusal *maintenance.Refusal
	if !errors.As(err, &refusal) || !contains(err.Error(), pk) {
		t.Errorf("got %v", err)
	}
	b.fake(emulator.FakeView{
		Name: "sys.index_resumable_operations", Columns: []string{"object_id", "index_id", "name", "state", "percent_complete", "start_time", "total_execution_time"},
		Rows: [][]any{{b.value("SELECT OBJECT_ID('{events}')"), 99, "IX_new", 1, 12.0, time.Now().UTC(), 3}},
	})
	r := b.rebuild()
	r.Force = true
	if _, err := r.Run(t.Context()); !errors.As(err, &refusal) || !contains(err.Error(), "CREATE INDEX of IX_new", "10637") {
		t.Errorf("got %v", err)
	}
}

// A table that is in use is waited for briefly, and never by those behind.
func TestRebuildGivesWay(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	tx, _ := b.openTransaction()
	defer func() { _ = tx.Rollback() }()
	r := b.rebuild()
	r.Index, r.Force, r.Offline, r.LockTimeout = pk, true, true, 10*time.Millisecond
	done, err := r.Run(t.Context())
	if sqlserver.ClassOf(err) != sqlserver.Contention || !contains(err.Error(), "nothing was changed", "--low-priority-wait") || done.Indexes[0].Outcome != maintenance.RebuildFailed {
		t.Errorf("got %v and %+v", err, done)
	}
	if n := b.server.StatementCount("RebuildIndex"); n != 5 {
		t.Errorf("it was sent %d times", n)
	}
}

func TestRebuildOfNoTable(t *testing.T) {
	b := newEngine(t, emulator.Config{})
	if _, err := b.rebuild().Plan(t.Context()); !errors.Is(err, maintenance.ErrSetting) || !contains(err.Error(), "dbo.outbox_event") {
		t.Errorf("got %v", err)
	}
	b.exec("CREATE TABLE {events} (id INT)")
	plan, err := b.rebuild().Plan(t.Context())
	if err != nil || len(plan.Indexes) != 0 || !strings.Contains(strings.Join(plan.Notes, "\n"), "heap") {
		t.Errorf("%+v, %v", plan, err)
	}
}
