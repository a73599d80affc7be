package diagnose

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"
)

// queryStore is what Query Store kept of statements that touch the outbox since
// the time that was asked for.
type queryStore struct {
	state    string // OFF, READ_ONLY, READ_WRITE, ERROR
	capture  string
	readonly int64 // readonly_reason
	used     int64 // MB
	max      int64
	plans    []storePlan
	split    time.Time // recent from here on
	from     time.Time // the first interval that was read; zero for none
}

// logPerSecond is what the statements that touch the outbox wrote to the log, on
// average over what was read: the application's, the worker's and the purge's.
func (q queryStore) logPerSecond(now time.Time) float64 {
	span := now.Sub(q.from).Seconds()
	if q.from.IsZero() || span < shortLife {
		return 0
	}
	var total float64
	for _, p := range q.plans {
		all := p.earlier.plus(p.recent)
		total += all.logBytes * all.executions
	}
	return total / span
}

// storePlan is one plan of one query; earlier and recent are the two parts of
// the time.
type storePlan struct {
	queryID, planID     int64
	queryHash, planHash string
	text                string
	forced              bool
	forceFailures       int64
	forceFailure        string
	earlier, recent     runtime
}

// runtime is averages over executions that ended well, weighted by how many there
// were: microseconds, pages, bytes.
type runtime struct {
	executions                           float64
	duration, cpu, reads, logBytes, rows float64
}

func (r runtime) plus(o runtime) runtime {
	n := r.executions + o.executions
	if n == 0 {
		return runtime{}
	}
	mean := func(a, b float64) float64 { return (a*r.executions + b*o.executions) / n }
	return runtime{n, mean(r.duration, o.duration), mean(r.cpu, o.cpu), mean(r.reads, o.reads), mean(r.logBytes, o.logBytes), mean(r.rows, o.rows)}
}

func (q queryStore) on() bool { return q.state == "READ_WRITE" || q.state == "READ_ONLY" }

func (q queryStore) whyNot() string {
	if q.state == "" {
		return "Query Store says nothing of itself."
	}
	return fmt.Sprintf("Query Store is %s.", q.state)
}

const turnOnQueryStore = "ALTER DATABASE CURRENT SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE, QUERY_CAPTURE_MODE = AUTO);"

// logBytes is the log of one execution by query hash.
func (q queryStore) logBytes() map[string]float64 {
	sums := make(map[string]runtime)
	for _, p := range q.plans {
		sums[p.queryHash] = sums[p.queryHash].plus(p.earlier).plus(p.recent)
	}
	bytes := make(map[string]float64, len(sums))
	for hash, r := range sums {
		bytes[hash] = r.logBytes
	}
	return bytes
}

// sys-database-query-store-options-transact-sql.md; VIEW DATABASE STATE, 2022+
// VIEW DATABASE PERFORMANCE STATE.
const diagnoseQueryStoreStateSQL = `SELECT /* outbox:DiagnoseQueryStoreState */ ISNULL(o.actual_state_desc, N'') AS actual_state,
       ISNULL(o.query_capture_mode_desc, N'') AS capture_mode,
       ISNULL(o.readonly_reason, 0) AS readonly_reason,
       ISNULL(o.current_storage_size_mb, 0) AS current_storage_size_mb,
       ISNULL(o.max_storage_size_mb, 0) AS max_storage_size_mb
FROM   sys.database_query_store_options AS o
OPTION (RECOMPILE);`

// sys-query-store-runtime-stats-interval-transact-sql.md.
const diagnoseQueryStoreFromSQL = `SELECT /* outbox:DiagnoseQueryStoreFrom */ MIN(i.start_time) AS first_start
FROM   sys.query_store_runtime_stats_interval AS i
WHERE  i.end_time > @since;`

// sys-query-store-runtime-stats-transact-sql.md: averages of an interval, so that
// sums must be weighted by count_executions; several rows an interval while it is
// the current one; execution_type 0 ended well; times in microseconds, reads in
// pages. avg_log_bytes_used is there since SQL Server 2017 and on Azure SQL.
// sys-query-store-runtime-stats-interval-transact-sql.md,
// sys-query-store-plan-transact-sql.md, sys-query-store-query-transact-sql.md,
// sys-query-store-query-text-transact-sql.md.
const diagnoseQueryStoreSQL = `SELECT /* outbox:DiagnoseQueryStore */ q.query_id,
       p.plan_id,
       q.query_hash,
       p.query_plan_hash,
       p.is_forced_plan,
       p.force_failure_count,
       ISNULL(p.last_force_failure_reason_desc, N'') AS force_failure,
       LEFT(t.query_sql_text, 4000) AS query_text,
       s.is_recent,
       s.executions,
       s.duration,
       s.cpu,
       s.reads,
       s.log_bytes,
       s.row_count
FROM  (SELECT r.plan_id,
              w.is_recent,
              SUM(r.count_executions) AS executions,
              SUM(r.avg_duration * r.count_executions) / SUM(r.count_executions) AS duration,
              SUM(r.avg_cpu_time * r.count_executions) / SUM(r.count_executions) AS cpu,
              SUM(r.avg_logical_io_reads * r.count_executions) / SUM(r.count_executions) AS reads,
              SUM(r.avg_log_bytes_used * r.count_executions) / SUM(r.count_executions) AS log_bytes,
              SUM(r.avg_rowcount * r.count_executions) / SUM(r.count_executions) AS row_count
       FROM   sys.query_store_runtime_stats AS r
       INNER JOIN (SELECT i.runtime_stats_interval_id,
                          CASE WHEN i.start_time >= @split THEN 1 ELSE 0 END AS is_recent
                   FROM   sys.query_store_runtime_stats_interval AS i
                   WHERE  i.end_time > @since) AS w ON w.runtime_stats_interval_id = r.runtime_stats_interval_id
       WHERE  r.execution_type = 0
       AND    r.count_executions > 0
       GROUP BY r.plan_id, w.is_recent) AS s
INNER JOIN sys.query_store_plan AS p ON p.plan_id = s.plan_id
INNER JOIN sys.query_store_query AS q ON q.query_id = p.query_id
INNER JOIN sys.query_store_query_text AS t ON t.query_text_id = q.query_text_id
WHERE  CHARINDEX(@name, t.query_sql_text) > 0
AND    CHARINDEX(N'/* outbox:Diagnose', t.query_sql_text) = 0
ORDER BY q.query_id, p.plan_id, s.is_recent;`

func (s *source) readQueryStore(ctx context.Context) (queryStore, error) {
	q := queryStore{split: s.since.Add(s.env.now.Sub(s.since) * 3 / 4)}
	err := s.each(ctx, "read the state of Query Store", diagnoseQueryStoreStateSQL, nil, func(rows *sql.Rows) error {
		return rows.Scan(&q.state, &q.capture, &q.readonly, &q.used, &q.max)
	})
	if err != nil || !q.on() {
		return q, err
	}
	var from sql.NullTime
	err = s.each(ctx, "read how far Query Store goes back, for statements", diagnoseQueryStoreFromSQL, []any{sql.Named("since", s.since)},
		func(rows *sql.Rows) error { return rows.Scan(&from) })
	if err != nil {
		return q, err
	}
	q.from = from.Time.UTC()
	if !from.Valid {
		q.from = time.Time{}
	}
	bare := s.bareTable()
	args := []any{sql.Named("since", s.since), sql.Named("split", q.split), sql.Named("name", doubled(bare))}
	err = s.each(ctx, "read Query Store for statements", diagnoseQueryStoreSQL, args, func(rows *sql.Rows) error {
		var p storePlan
		var hash, planHash []byte
		var r runtime
		var recent bool
		var logBytes sql.NullFloat64
		if err := rows.Scan(&p.queryID, &p.planID, &hash, &planHash, &p.forced, &p.forceFailures, &p.forceFailure, &p.text,
			&recent, &r.executions, &r.duration, &r.cpu, &r.reads, &logBytes, &r.rows); err != nil {
			return err
		}
		r.logBytes = logBytes.Float64
		if !mentionsOutbox(p.text, bare) {
			return nil
		}
		p.queryHash, p.planHash = hex.EncodeToString(hash), hex.EncodeToString(planHash)
		if n := len(q.plans); n > 0 && q.plans[n-1].planID == p.planID {
			p = q.plans[n-1]
			q.plans = q.plans[:n-1]
		}
		if recent {
			p.recent = p.recent.plus(r)
		} else {
			p.earlier = p.earlier.plus(r)
		}
		q.plans = append(q.plans, p)
		return nil
	})
	return q, err
}
