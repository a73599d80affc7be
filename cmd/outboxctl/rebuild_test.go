package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// articleTable is the article's table on an engine: built at 85 %, without the
// option, and with the sizes and the log of a large database, which the embedded
// engine cannot have.
func articleTable(t *testing.T) *local.Stack {
	t.Helper()
	stack := newStack(t, local.Config{})
	sets, err := stack.SQL.Exec(t.Context(), `
ALTER INDEX PK_outbox_event ON dbo.outbox_event REBUILD WITH (FILLFACTOR = 85);
ALTER INDEX PK_outbox_event ON dbo.outbox_event SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF);
SELECT OBJECT_ID('dbo.outbox_event'), DB_NAME();`)
	if err != nil {
		t.Fatal(err)
	}
	object, database := sets[0].Rows[0][0], sets[0].Rows[0][1]
	for _, v := range []emulator.FakeView{
		{
			Name: "sys.dm_db_index_physical_stats",
			Columns: []string{
				"object_id", "index_id", "partition_number", "alloc_unit_type_desc", "index_level", "avg_fragmentation_in_percent",
				"page_count", "avg_page_space_used_in_percent", "record_count", "ghost_record_count", "avg_record_size_in_bytes",
			},
			Rows: [][]any{
				{object, 1, 1, "IN_ROW_DATA", 0, 3.2, 9_000_000, 80.4, 45_000_000, 1200, 1300.0},
				{object, 2, 1, "IN_ROW_DATA", 0, 88.0, 150, 62.0, 700, 40, 1100.0},
				{object, 3, 1, "IN_ROW_DATA", 0, 0.0, 1, 2.0, 9, 0, 30.0},
			},
		},
		{Name: "sys.dm_user_db_resource_governance", Columns: []string{"database_name NVARCHAR(128)", "primary_max_log_rate BIGINT"}, Rows: [][]any{{database, 96 << 20}}},
		{Name: "sys.dm_db_log_space_usage", Columns: []string{"total_log_size_in_bytes", "used_log_space_in_bytes"}, Rows: [][]any{{50 << 30, 1 << 30}}},
		{Name: "sys.databases", Columns: []string{"name", "log_reuse_wait_desc"}, Rows: [][]any{{database, "ACTIVE_TRANSACTION"}}},
		{Name: "sys.dm_tran_active_transactions", Columns: []string{"transaction_id BIGINT", "transaction_begin_time DATETIME"}},
		{Name: "sys.dm_tran_session_transactions", Columns: []string{"transaction_id BIGINT", "session_id INT", "is_user_transaction BIT"}},
		{Name: "sys.dm_tran_database_transactions", Columns: []string{"transaction_id BIGINT", "database_id INT"}},
	} {
		if _, err := stack.SQL.FakeView(v); err != nil {
			t.Fatal(err)
		}
	}
	return stack
}

const rebuildPlanText = `dbo.outbox_event on SQL Azure 12.0.2000.8 (engine edition 5): online, fill factor 98

index            rows  size     fill factor  density  fragmented  ghosts  sequential key  action   frees   log
PK_outbox_event  0     68.7 GB  85           80 %     3 %         1200    off             rebuild  7.3 GB  61.4 GB
IX_outbox_claim  0     1.17 MB  100          62 %     88 %        40      off             none     0 B     0 B
IX_outbox_retry  0     8 KB     100          2 %      0 %         0       off             none     0 B     0 B

PK_outbox_event: rebuild, its pages are 80 % full and would be about 90 %: 11 % of it is nothing; resumable.
          ALTER INDEX [PK_outbox_event] ON [dbo].[outbox_event]
          SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
          ALTER INDEX [PK_outbox_event] ON [dbo].[outbox_event]
          REBUILD WITH (FILLFACTOR = 98, ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1 MINUTES, ABORT_AFTER_WAIT = SELF)), RESUMABLE = ON, MAX_DURATION = 60 MINUTES);

IX_outbox_claim: none, 1.17 MB are too small to matter.

IX_outbox_retry: none, 8 KB are too small to matter.

Together about 7.3 GB freed, for about 61.4 GB written to the log: 10m55s at least, at the 96 MB/s that this database may write.

Warning: while it runs, writes of the table cost up to twice as much, and in a rare deadlock the server ends a statement of an application or a worker (error 1205), not the rebuild.

Warning: the log cannot be reused now (ACTIVE_TRANSACTION): what the rebuild writes comes on top of what is held.

Nothing was changed; add --execute to do it.
`

func TestRebuildPlanAndRun(t *testing.T) {
	stack := articleTable(t)
	dsn := "--sql-dsn=" + stack.SQL.DSN()
	code, stdout, stderr := outboxctl(t, "rebuild", dsn)
	if code != exitDone || stdout != rebuildPlanText || stderr != "" {
		t.Errorf("exit %d, stderr %q, plan:\n%s", code, stderr, stdout)
	}
	var report maintenance.RebuildReport
	code, stdout, _ = outboxctl(t, "rebuild", "--json", "--execute", dsn)
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitDone {
		t.Fatalf("exit %d, %v in\n%s", code, err, stdout)
	}
	documented(t, "rebuild", stdout)
	if i := report.Indexes[0]; !report.Executed || i.Outcome != maintenance.RebuildDone || report.Indexes[1].Outcome != "" {
		t.Errorf("%+v", report)
	}
	sets, err := stack.SQL.Exec(t.Context(), "SELECT fill_factor, optimize_for_sequential_key FROM sys.indexes WHERE name = 'PK_outbox_event'")
	if err != nil || fmt.Sprint(sets[0].Rows) != "[[98 true]]" {
		t.Errorf("%v, %v", sets, err)
	}
}

func TestRebuildPausedAndAborted(t *testing.T) {
	stack := articleTable(t)
	dsn := "--sql-dsn=" + stack.SQL.DSN()
	stack.SQL.StopRebuild("dbo.outbox_event", "PK_outbox_event", 61)
	code, stdout, stderr := outboxctl(t, "rebuild", "--execute", dsn)
	if code != exitDone || !regexp.MustCompile(`PAUSED at 61 %: run the command again to go on, --abort gives it up in \d+ms\.\n`).MatchString(stdout) || !strings.Contains(stderr, "paused") {
		t.Errorf("exit %d:\n%s%s", code, stdout, stderr)
	}
	_, stdout, _ = outboxctl(t, "rebuild", "--json", dsn)
	documented(t, "rebuild", stdout)
	if _, stdout, _ = outboxctl(t, "rebuild", dsn); !strings.Contains(stdout, "PK_outbox_event: resume, its rebuild was paused at 61 %") {
		t.Errorf("the plan after it:\n%s", stdout)
	}
	code, stdout, _ = outboxctl(t, "rebuild", "--abort", dsn)
	if code != exitDone || !strings.Contains(stdout, "PK_outbox_event: abort, PAUSED at 61 %") || strings.Contains(stdout, "DONE") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	code, stdout, _ = outboxctl(t, "rebuild", "--abort", "--execute", dsn)
	if code != exitDone || !strings.Contains(stdout, "ABORT;\n        DONE") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
}

func TestRebuildExitCodes(t *testing.T) {
	stack := newEngine(t, emulator.Config{Edition: emulator.SQLServerStandard})
	for _, c := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"--force"}, exitFound, "--offline"},
		{[]string{"--execute"}, exitDone, ""},
		{[]string{"--force", "--execute"}, exitFound, "this edition has no ONLINE: Standard Edition"},
		{[]string{"--force", "--execute", "--offline"}, exitDone, ""},
		{[]string{"--offline", "--online"}, exitUsage, "--offline"},
		{[]string{"--index=IX_none"}, exitUsage, "IX_none"},
		{[]string{"--fillfactor=0"}, exitUsage, "1 to 100"},
		{[]string{"--fillfactor=101"}, exitUsage, "1 to 100"},
		{[]string{"--max-duration=90s"}, exitUsage, "whole minutes"},
		{[]string{"--max-duration=0"}, exitUsage, "--max-duration"},
		{[]string{"--low-priority-wait=5s"}, exitUsage, "whole minutes"},
		{[]string{"--abort", "--force"}, exitUsage, "exclude"},
		{[]string{"--table=other"}, exitUsage, "dbo.other"},
	} {
		code, _, stderr := outboxctl(t, append([]string{"rebuild", "--sql-dsn=" + stack.DSN()}, c.args...)...)
		if code != c.want || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d, stderr %q", c.args, code, stderr)
		}
	}
	if _, stdout, _ := outboxctl(t, "rebuild", "--execute", "--sql-dsn="+stack.DSN()); !strings.HasSuffix(stdout, "\nNothing to rebuild.\n") {
		t.Errorf("with nothing to do it says %q", stdout)
	}
	_, stdout, _ := outboxctl(t, "rebuild", "--force", "--json", "--sql-dsn="+stack.DSN())
	documented(t, "rebuild", stdout)
	if !strings.Contains(stdout, `"refused": "rebuild of dbo.outbox_event refused`) || !strings.Contains(stdout, `"frees_bytes": null`) {
		t.Errorf("refused, and not measured: %s", stdout)
	}
}

// A rebuild of every index, again and again, while applications write and a
// worker publishes: nothing is lost, nothing comes twice, nobody is a deadlock's
// victim.
func TestRebuildBesideAWorker(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	const events = 1500
	stack := newStack(t, local.Config{})
	settings, err := service.DefaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	settings.SQL.DSN, settings.ServiceBus.ConnectionString = stack.SQL.DSN(), stack.Bus.ConnectionString()
	settings.ServiceBus.Entity, settings.Process.Listen = local.Entity, "off"
	settings.Claim.IdlePoll = 5 * time.Millisecond
	w, err := service.New(settings, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	working := make(chan error, 1)
	go func() { working <- w.Run(ctx) }()
	written := make(chan error, 1)
	go func() { written <- writeEvents(ctx, stack.SQL.DSN(), events) }()

	rebuilds := 0
	for stack.Bus.Counts(local.Entity).Active < events && ctx.Err() == nil {
		code, stdout, stderr := outboxctl(t, "rebuild", "--force", "--execute", "--sql-dsn="+stack.SQL.DSN())
		if code != exitDone || strings.Count(stdout, "DONE") != 3 {
			t.Fatalf("exit %d:\n%s%s", code, stdout, stderr)
		}
		rebuilds++
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-working; err != nil {
		t.Error(err)
	}
	if got := stack.Bus.Counts(local.Entity).Active; got != events {
		t.Errorf("%d events arrived, want %d", got, events)
	}
	sets, err := stack.SQL.Exec(t.Context(), "SELECT COUNT(*), ISNULL(SUM(CASE WHEN status = 1 THEN 1 ELSE 0 END), 0) FROM dbo.outbox_event; SELECT COUNT(*) FROM dbo.outbox_event_claim")
	if err != nil || fmt.Sprint(sets[0].Rows, sets[1].Rows) != fmt.Sprintf("[[%d %d]] [[0]]", events, events) {
		t.Errorf("rows and receipts: %v, %v", sets, err)
	}
	t.Logf("%d rebuilds of three indexes beside %d events", rebuilds, events)
}

// writeEvents writes them in transactions of ten, and tries again what lost a
// lock.
func writeEvents(ctx context.Context, dsn string, events int) error {
	db, err := sqlserver.Open(dsn, sqlserver.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	writer, err := sqlserver.NewWriter(sqlserver.Names{})
	if err != nil {
		return err
	}
	batch := slices.Repeat([]sqlserver.OutboxEvent{{AggregateType: "order", AggregateID: "42", EventType: "placed", Payload: []byte(`{"n":1}`)}}, 10)
	for n := 0; n < events; {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		err = writer.Enqueue(ctx, tx, batch...)
		if err == nil {
			err = tx.Commit()
		}
		switch {
		case err == nil:
			n += len(batch)
		case sqlserver.ClassOf(sqlserver.Classify("write", err)) != sqlserver.Contention:
			return errors.Join(err, tx.Rollback())
		}
	}
	return nil
}
