package maintenance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// BenchmarkPurgeBatch purges 2,000 events out of a table of 10,000 to 1,000,000
// others that stay, in batches of 500: what a batch reads and takes must not
// depend on the table. The metric rows/delete is total_logical_reads of
// sys.dm_exec_query_stats, which counts rows in the embedded engine; rows/run is
// that of all that a run sends, its plan included.
//
// DeleteTop is the statement that everybody writes first, once nothing is left
// for it to find: it reads the whole table.
func BenchmarkPurgeBatch(b *testing.B) {
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			engine := benchEngine(b, rows)
			db, err := sqlserver.Open(engine.DSN(), sqlserver.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			p := maintenance.Purge{Target: maintenance.Target{DB: db}, Retention: 72 * time.Hour, Batch: 500}
			var batches int64
			before := reads(b, engine, "PurgeLook", "PurgeDelete", "PurgeNewest", "PurgeCutoff")
			for b.Loop() {
				b.StopTimer()
				benchRows(b, engine, 1, 2000, "DAY, -4")
				b.StartTimer()
				r, err := p.Run(b.Context())
				if err != nil || r.Rows != 2000 {
					b.Fatalf("%v, %+v", err, r)
				}
				batches += r.Batches
			}
			after := reads(b, engine, "PurgeLook", "PurgeDelete", "PurgeNewest", "PurgeCutoff")
			b.ReportMetric(float64(after["PurgeDelete"]-before["PurgeDelete"])/float64(batches), "rows/delete")
			total := int64(0)
			for name := range after {
				total += after[name] - before[name]
			}
			b.ReportMetric(float64(total)/float64(b.N), "rows/run")
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(batches), "ms/batch")
		})
		b.Run(fmt.Sprint("DeleteTop/rows=", rows), func(b *testing.B) {
			engine := benchEngine(b, rows)
			before := reads(b, engine, "DeleteTop")["DeleteTop"]
			for b.Loop() {
				if _, err := engine.Exec(b.Context(), `DECLARE @cutoff DATETIME2(3) = DATEADD(HOUR, -72, SYSUTCDATETIME());
					DELETE /* outbox:DeleteTop */ TOP (500) FROM dbo.outbox_event WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE status = 1 AND processed_at < @cutoff`); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(reads(b, engine, "DeleteTop")["DeleteTop"]-before)/float64(b.N), "rows/delete")
		})
	}
}

func benchEngine(b *testing.B, rows int) *emulator.Server {
	b.Helper()
	engine, err := emulator.Start(emulator.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })
	script, err := scripts.Outbox(scripts.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		if _, err := engine.Exec(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for first := 100_001; first < 100_001+rows; first += 100_000 {
		benchRows(b, engine, first, min(100_000, rows), "HOUR, -4")
	}
	return engine
}

func benchRows(b testing.TB, engine *emulator.Server, first, n int, ago string) {
	b.Helper()
	if _, err := engine.Exec(context.Background(), fmt.Sprintf(`SET QUOTED_IDENTIFIER ON;
		INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
		SELECT g.value, 'order', '42', 'placed', '{"n":1}', 1, t.at, t.at
		FROM (SELECT DATEADD(%s, SYSUTCDATETIME()) AS at) AS t CROSS JOIN GENERATE_SERIES(%d, %d) AS g`, ago, first, first+n-1)); err != nil {
		b.Fatal(err)
	}
}

// reads are the total_logical_reads of named statements.
func reads(b testing.TB, engine *emulator.Server, names ...string) map[string]int64 {
	b.Helper()
	sets, err := engine.Exec(context.Background(), `SELECT t.text, SUM(s.total_logical_reads) AS reads
		FROM sys.dm_exec_query_stats AS s CROSS APPLY sys.dm_exec_sql_text(s.sql_handle) AS t GROUP BY t.text`)
	if err != nil {
		b.Fatal(err)
	}
	sums := make(map[string]int64)
	for _, row := range sets[0].Rows {
		for _, name := range names {
			if strings.Contains(row[0].(string), "/* outbox:"+name+" */") {
				sums[name] += row[1].(int64)
			}
		}
	}
	return sums
}
