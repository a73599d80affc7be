package diagnose_test

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance/diagnose"
	"azsqloutbox/sqlserver/emulator"
)

// The table of the Azure SQL article on the embedded engine: its design is real,
// its size is made up, because 45 million rows are. 3 M events a day, 15 days of
// them, NVARCHAR(2000) with some 600 characters, 1.3 KB a row, 58 GB, on a
// BC_Gen5_8 of 41.5 GB.

const (
	articleRows  = 45_000_000
	articlePages = 7_602_176 // 58 GB
)

func article(t testing.TB) *outbox {
	t.Helper()
	o := newOutbox(t, emulator.Config{ServiceObjective: "BC_Gen5_8"})
	for _, text := range []string{
		"DROP INDEX IX_outbox_claim ON dbo.outbox_event",
		"ALTER TABLE dbo.outbox_event ALTER COLUMN payload NVARCHAR(2000) NOT NULL",
		"CREATE INDEX IX_outbox_claim ON dbo.outbox_event (event_type, id) INCLUDE (aggregate_type, aggregate_id, payload, headers, created_at, retry_count) WHERE status = 0",
		"CREATE INDEX IX_Outbox_Status_Event_Type_Covering ON dbo.outbox_event (status, event_type, id) INCLUDE (aggregate_id, aggregate_type, payload, created_at, processed_at, retry_count)",
		"ALTER INDEX PK_outbox_event ON dbo.outbox_event REBUILD WITH (FILLFACTOR = 85, OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF)",
	} {
		o.exec(text)
	}
	// 600 characters each, the oldest 15 days ago, the newest 35 a second.
	o.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, created_at)
SELECT g.value, 'order', CONVERT(VARCHAR(20), g.value), 'order.created', REPLICATE(N'x', 600), DATEADD(MILLISECOND, -(700 - g.value) * 28, SYSUTCDATETIME())
FROM GENERATE_SERIES(@from, @to) AS g`, sql.Named("from", 1), sql.Named("to", 700))
	o.exec("UPDATE dbo.outbox_event SET created_at = DATEADD(DAY, -15, SYSUTCDATETIME()) WHERE id = @id", sql.Named("id", 1))
	o.work()
	o.events(40)
	o.applicationsTraps()
	o.fakeArticle()
	return o
}

// applicationsTraps are the statements that the article warns of.
func (o *outbox) applicationsTraps() {
	o.query("SELECT TOP (100) id, payload FROM dbo.outbox_event WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE event_type = CAST(@type AS VARCHAR(100)) AND status = @status ORDER BY id",
		sql.Named("type", "order.created"), sql.Named("status", 0))
	o.query("UPDATE TOP (10) e SET status = 1, processed_at = SYSUTCDATETIME() OUTPUT inserted.id FROM dbo.outbox_event AS e WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE e.event_type = 'order.created' AND e.status = 0")
	conn, err := o.db.Conn(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	defer conn.Close()
	for _, set := range []string{"SET ARITHABORT OFF;", "SET ARITHABORT ON;"} {
		for _, text := range []string{set, "SELECT /* <script>alert(1)</script> */ TOP (10) id FROM dbo.outbox_event WHERE event_type = 'order.created' AND status = 0 ORDER BY id"} {
			if _, err := conn.ExecContext(o.t.Context(), text); err != nil {
				o.t.Fatal(err)
			}
		}
	}
}

func (o *outbox) fake(f emulator.FakeView) {
	o.t.Helper()
	if _, err := o.server.FakeView(f); err != nil {
		o.t.Fatal(err)
	}
}

// ids are the object id of the table and the index ids by name.
func (o *outbox) ids() (object int64, indexes map[string]int64) {
	o.t.Helper()
	sets, err := o.server.Exec(o.t.Context(), "SELECT i.object_id, i.index_id, i.name FROM sys.indexes AS i WHERE i.object_id = OBJECT_ID('dbo.outbox_event')")
	if err != nil {
		o.t.Fatal(err)
	}
	indexes = make(map[string]int64)
	for _, row := range sets[0].Rows {
		object = row[0].(int64)
		indexes[row[2].(string)] = row[1].(int64)
	}
	return object, indexes
}

func (o *outbox) fakeArticle() {
	object, ids := o.ids()
	pk, claim, retry, wide := ids["PK_outbox_event"], ids["IX_outbox_claim"], ids["IX_outbox_retry"], ids["IX_Outbox_Status_Event_Type_Covering"]
	o.fake(emulator.FakeView{
		Name:    "sys.dm_db_partition_stats",
		Columns: []string{"object_id", "index_id", "partition_number", "row_count", "used_page_count", "in_row_data_page_count", "lob_used_page_count", "row_overflow_used_page_count"},
		Rows: [][]any{
			{object, pk, 1, articleRows, articlePages, articlePages - 20_000, 0, 0},
			{object, claim, 1, 3_500, 620, 600, 0, 0},
			{object, retry, 1, 12, 2, 1, 0, 0},
			{object, wide, 1, articleRows, 7_900_000, 7_880_000, 0, 0},
		},
	})
	o.fake(emulator.FakeView{
		Name: "sys.dm_db_index_physical_stats",
		Columns: []string{
			"database_id", "object_id", "index_id", "partition_number", "alloc_unit_type_desc", "index_level", "page_count",
			"avg_page_space_used_in_percent", "avg_record_size_in_bytes", "avg_fragmentation_in_percent", "ghost_record_count", "version_ghost_record_count", "record_count",
		},
		Rows: [][]any{
			{5, object, pk, 1, "IN_ROW_DATA", 0, articlePages - 20_000, 84.7, 1331.0, 2.1, 300_000, 10_000, articleRows},
			{5, object, claim, 1, "IN_ROW_DATA", 0, 600, 61.0, 1289.0, 40.0, 900, 0, 3_500},
			{5, object, wide, 1, "IN_ROW_DATA", 0, 7_880_000, 81.5, 1311.0, 38.0, 0, 0, articleRows},
		},
	})
	o.fake(emulator.FakeView{
		Name:    "sys.dm_db_index_usage_stats",
		Columns: []string{"database_id", "object_id", "index_id", "user_seeks", "user_scans", "user_lookups", "user_updates", "last_user_seek"},
		Rows: [][]any{
			{5, object, pk, 9_100_000, 44, 0, 6_200_000, time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)},
			{5, object, claim, 1_240_000, 0, 0, 6_100_000, time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)},
			{5, object, wide, 0, 0, 0, 6_100_000, nil},
		},
	})
	o.fake(emulator.FakeView{
		Name:    "sys.dm_db_index_operational_stats",
		Columns: []string{"database_id", "object_id", "index_id", "partition_number", "page_latch_wait_count", "page_latch_wait_in_ms", "index_lock_promotion_count"},
		Rows:    [][]any{{5, object, pk, 1, 410_000, 2_950_000, 96}, {5, object, wide, 1, 9_000, 12_000, 0}},
	})
	o.fake(emulator.FakeView{Name: "sys.dm_os_job_object", Columns: []string{"process_memory_limit_mb BIGINT", "non_sos_mem_gap_mb BIGINT"}, Rows: [][]any{{44_500, 2_004}}})
	o.fake(emulator.FakeView{
		Name:    "sys.dm_user_db_resource_governance",
		Columns: []string{"database_name NVARCHAR(128)", "slo_name NVARCHAR(128)", "primary_max_log_rate BIGINT"},
		Rows:    [][]any{{"outbox", "SQLDB_BC_GEN5_8_SQLG5", 96 << 20}},
	})
	o.fake(emulator.FakeView{
		Name:    "sys.dm_db_wait_stats",
		Columns: []string{"wait_type", "waiting_tasks_count", "wait_time_ms", "max_wait_time_ms", "signal_wait_time_ms"},
		Rows: [][]any{
			{"PAGEIOLATCH_SH", 5_400_000, 21_000_000, 900, 0},
			{"LOG_RATE_GOVERNOR", 640_000, 7_900_000, 1_500, 0},
			{"WRITELOG", 3_900_000, 6_100_000, 420, 0},
			{"PAGELATCH_EX", 480_000, 3_300_000, 380, 0},
			{"LCK_M_U", 4_100, 350_000, 2_000, 0},
			{"SOS_WORK_DISPATCHER", 90_000_000, 900_000_000, 60_000, 0},
			{"ASYNC_NETWORK_IO", 210_000, 95_000, 300, 0},
		},
	})
	o.fake(loadOfAnHour(time.Now().UTC()))
	o.fakeQueryStore()
}

// loadOfAnHour has a burst of log writes in its last third.
func loadOfAnHour(now time.Time) emulator.FakeView {
	f := emulator.FakeView{
		Name:    "sys.dm_db_resource_stats",
		Columns: []string{"end_time", "avg_cpu_percent", "avg_data_io_percent", "avg_log_write_percent", "avg_memory_usage_percent", "max_worker_percent"},
	}
	for i := range 240 {
		x := float64(i)
		burst := 62 * math.Exp(-math.Pow((x-175)/18, 2))
		row := []any{now.Add(-time.Duration(239-i) * 15 * time.Second)}
		for _, v := range []float64{18 + 7*math.Sin(x/11) + burst/6, 41 + 12*math.Sin(x/17) + burst/5, 24 + 9*math.Sin(x/13) + burst, 97.5, 8 + 3*math.Sin(x/9) + burst/9} {
			row = append(row, fmt.Sprintf("%.2f", v))
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// fakeQueryStore turns it on: one statement that changed its plan and got dearer.
func (o *outbox) fakeQueryStore() {
	now := time.Now().UTC()
	// The worker's flip.
	sets, err := o.server.Exec(o.t.Context(), "SELECT qs.query_hash FROM sys.dm_exec_query_stats AS qs CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st WHERE st.text LIKE '%outbox:FlipClaim%' AND SUBSTRING(st.text, qs.statement_start_offset / 2 + 1, 60) LIKE '%UPDATE % e%'")
	if err != nil || len(sets[0].Rows) != 1 {
		o.t.Fatalf("the hash of the flip: %v, %v", sets, err)
	}
	flip := sets[0].Rows[0][0]
	o.fake(emulator.FakeView{
		Name:    "sys.database_query_store_options",
		Columns: []string{"desired_state", "desired_state_desc", "actual_state", "actual_state_desc", "query_capture_mode_desc", "current_storage_size_mb", "max_storage_size_mb"},
		Rows:    [][]any{{2, "READ_WRITE", 2, "READ_WRITE", "AUTO", 312, 1000}},
	})
	o.fake(emulator.FakeView{
		Name: "sys.query_store_query_text", Columns: []string{"query_text_id", "query_sql_text"},
		Rows: [][]any{
			{1, "(@P0 int)select top 100 id, payload from dbo.outbox_event with (updlock, rowlock, readpast) where event_type = @P0 and status = 0 order by id"},
			{2, "(@id bigint)UPDATE dbo.outbox_event SET status = 1 WHERE id = @id"},
			{3, "SELECT 1 FROM dbo.outbox_event_archive"},
			{4, "UPDATE /* outbox:FlipClaim */ e SET status = 1, processed_at = @now FROM OPENJSON(@ids) AS c INNER LOOP JOIN [dbo].[outbox_event] AS e ON e.id = c.id"},
		},
	})
	o.fake(emulator.FakeView{
		Name: "sys.query_store_query", Columns: []string{"query_id", "query_text_id", "query_hash"},
		Rows: [][]any{{11, 1, []byte{1, 2, 3, 4, 5, 6, 7, 8}}, {12, 2, []byte{2, 2, 3, 4, 5, 6, 7, 8}}, {13, 3, []byte{3, 2, 3, 4, 5, 6, 7, 8}}, {14, 4, flip}},
	})
	o.fake(emulator.FakeView{
		Name: "sys.query_store_plan", Columns: []string{"plan_id", "query_id", "query_plan_hash", "is_forced_plan", "force_failure_count BIGINT", "last_force_failure_reason_desc NVARCHAR(128)"},
		Rows: [][]any{{21, 11, []byte{9}, false, 0, "NONE"}, {22, 11, []byte{8}, false, 0, "NONE"}, {23, 12, []byte{7}, true, 4, "NO_INDEX"}, {24, 13, []byte{6}, false, 0, "NONE"}, {25, 14, []byte{5}, false, 0, "NONE"}},
	})
	o.fake(emulator.FakeView{
		Name: "sys.query_store_runtime_stats_interval", Columns: []string{"runtime_stats_interval_id", "start_time", "end_time"},
		Rows: [][]any{
			{1, now.Add(-72 * time.Hour), now.Add(-71 * time.Hour)},
			{2, now.Add(-20 * time.Hour), now.Add(-19 * time.Hour)},
			{3, now.Add(-10 * time.Hour), now.Add(-9 * time.Hour)},
			{4, now.Add(-1 * time.Hour), now},
		},
	})
	stats := emulator.FakeView{
		Name: "sys.query_store_runtime_stats",
		Columns: []string{
			"runtime_stats_id", "plan_id", "runtime_stats_interval_id", "execution_type", "count_executions", "avg_duration", "avg_cpu_time",
			"avg_logical_io_reads", "avg_rowcount", "avg_log_bytes_used FLOAT",
		},
		Rows: [][]any{
			{1, 21, 1, 0, 1_000_000, 90_000_000.0, 90_000_000.0, 9e6, 100.0, 0.0}, // before --since
			{2, 21, 2, 0, 30_000, 3_100.0, 2_800.0, 34.0, 100.0, 900.0},
			{3, 21, 3, 0, 10_000, 3_500.0, 3_200.0, 38.0, 100.0, 1_300.0},
			{4, 22, 4, 0, 4_000, 151_000.0, 142_000.0, 61_400.0, 100.0, 1_000.0},
			{5, 22, 4, 3, 999, 9e9, 9e9, 9e9, 1.0, 9e9}, // broken off
			{6, 23, 3, 0, 500_000, 210.0, 160.0, 7.0, 0.0, 4_700.0},
			{7, 23, 4, 0, 60_000, 220.0, 170.0, 7.0, 0.0, 4_700.0},
			{8, 24, 4, 0, 60_000, 220.0, 170.0, 7.0, 0.0, 0.0},
			{9, 25, 3, 0, 300, 1_900.0, 1_500.0, 720.0, 100.0, 300_000.0},
			{10, 25, 4, 0, 100, 1_900.0, 1_500.0, 720.0, 100.0, 260_000.0},
			{11, 25, 1, 0, 900, 9e6, 9e6, 9e6, 100.0, 9e6}, // before --since
		},
	}
	o.fake(stats)
}

func TestTheArticle(t *testing.T) {
	o := article(t)
	r := o.diagnose()
	if r.Verdict != diagnose.Bad || r.ServiceObjective != "BC_Gen5_8" {
		t.Errorf("the report is %s on %s", r.Verdict, r.ServiceObjective)
	}
	// 7 flips of 290,000 bytes for 700 events, by the hash of the query; and 2.79 GB
	// by all statements in the 20 hours that Query Store goes back.
	if got := figureOf(t, r, "statements", "log per event, all of the worker's statements"); got != 2900.0 {
		t.Errorf("log per event is %v", got)
	}
	if got := figureOf(t, r, "physics", "log of all statements of the outbox, by Query Store").(float64); got < 38_000 || got > 39_500 {
		t.Errorf("log of all statements is %v", got)
	}
	for id, want := range map[string][]string{
		"statements": {"An UPDATE … OUTPUT claims in one statement"},
		"plan_cache": {"is compiled 2 times over. They differ in ARITHABORT."},
		"claim_plan": {"passes over the filtered index IX_outbox_retry, IX_outbox_claim", "status is a parameter in it"},
		"physics": {
			"The table does not fit in memory: 45,000,000 rows and their indexes take 118 GB (the table alone 58 GB), and the whole engine has 41.5 GB (6.28 GB of it kept for In-Memory OLTP)",
			"times its payload: insert, flip and purge",
		},
		"indexes": {
			"status is a key column of IX_Outbox_Status_Event_Type_Covering: each flip deletes the entry in one place and inserts it in another, the payload with it. That is 1.28 KB of index for every published event",
			"Nobody reads IX_Outbox_Status_Event_Type_Covering",
			"PK_outbox_event is 84.7 % full: 7.85 GB of nothing in memory",
			"It was built with FILLFACTOR 85",
			"Locks on PK_outbox_event were escalated to a lock of the whole table 96 times",
			"Inserts queue for the last page: 410,000 waits for page latches on PK_outbox_event, 49m10s in all, 7.2 ms each, and OPTIMIZE_FOR_SEQUENTIAL_KEY is off.",
		},
		"waits": {
			"LOG_RATE_GOVERNOR is 20.4 % of all waiting: 2h12m over 640,000 waits, 12.3 ms each.",
			"PAGEIOLATCH_* is 54.2 % of all waiting",
			"Log writes stood at",
		},
		"query_store": {
			"“select top 100 id, payload from dbo.outbox_event with (updl…” got dearer: 142 ms of CPU and 61,400 pages each time, before it was 2.9 ms and 35 pages. It changed from plan 21 to plan 22.",
			"Plan 23 is forced on “UPDATE dbo.outbox_event SET status = 1 WHERE id = @id”, and forcing it failed 4 times (NO_INDEX).",
		},
	} {
		s := section(t, r, id)
		text := findings(s, diagnose.Bad) + "\n" + findings(s, diagnose.Warn) + "\n" + findings(s, diagnose.OK)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q but\n%s", id, w, text)
			}
		}
		if s.Verdict == diagnose.OK || len(s.Remedy) == 0 {
			t.Errorf("%s is %s, its remedies %q", id, s.Verdict, s.Remedy)
		}
	}
}
