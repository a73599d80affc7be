package claimbench

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// What the statements on the table @name have cost since they were compiled. A
// row is there from the first execution on, and as long as its plan is in the
// cache; a plan that is compiled again begins at 0, with another generation.
// Times are microseconds, "but only accurate to milliseconds". (sql-docs,
// sys-dm-exec-query-stats-transact-sql.md, sys-dm-exec-sql-text-transact-sql.md;
// VIEW SERVER STATE, from 2022 on VIEW SERVER PERFORMANCE STATE; on Azure SQL
// Database VIEW DATABASE STATE, and on Basic, S0, S1 and in elastic pools the
// role ##MS_ServerStateReader##.) This text does not hold the name itself.
const queryStatsSQL = `SELECT /* outbox:BenchQueryStats */ qs.plan_handle,
       qs.statement_start_offset,
       qs.plan_generation_num,
       qs.creation_time,
       qs.execution_count,
       qs.total_worker_time,
       qs.total_elapsed_time,
       qs.total_logical_reads,
       LEFT(st.text, 1000) AS batch_head,
       SUBSTRING(st.text, qs.statement_start_offset / 2 + 1,
                 CASE WHEN qs.statement_end_offset < 0 THEN 4000
                      ELSE (qs.statement_end_offset - qs.statement_start_offset) / 2 + 1 END) AS statement_text
FROM   sys.dm_exec_query_stats AS qs
CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st
WHERE  CHARINDEX(@name, st.text) > 0;`

// The log of the transaction that is open, its commit not yet in it. tempdb (2)
// is the only other database that a claim can write: DB_ID() is not compared,
// because on Azure SQL Database it need not be what other views call the database
// (sql-docs, db-id-transact-sql.md). (sys-dm-tran-database-transactions-transact-sql.md,
// the same rights as above; current-transaction-id-transact-sql.md, none.)
const logBytesSQL = `DECLARE @transaction BIGINT = CURRENT_TRANSACTION_ID();
SELECT /* outbox:BenchLogBytes */ SUM(t.database_transaction_log_bytes_used) AS log_bytes
FROM   sys.dm_tran_database_transactions AS t
WHERE  t.transaction_id = @transaction
AND    t.database_id <> 2;`

// statKey is one statement of one plan.
type statKey struct {
	plan       string
	start      int
	generation int64
	created    time.Time
}

// stat is what its executions came to.
type stat struct {
	label                              string
	executions, worker, elapsed, reads int64
}

var requestName = regexp.MustCompile(`/\* outbox:([A-Za-z]+) \*/`)

// readStats reads the figures of the statements whose text holds the quoted name.
func readStats(ctx context.Context, conn *sql.Conn, name string) (map[statKey]stat, error) {
	rows, err := conn.QueryContext(ctx, queryStatsSQL, sql.Named("name", name))
	if err != nil {
		return nil, fmt.Errorf("read sys.dm_exec_query_stats: %w", err)
	}
	defer rows.Close()
	all := make(map[statKey]stat)
	for rows.Next() {
		var k statKey
		var s stat
		var plan []byte
		var head, text sql.NullString
		if err := rows.Scan(&plan, &k.start, &k.generation, &k.created, &s.executions, &s.worker, &s.elapsed, &s.reads, &head, &text); err != nil {
			return nil, fmt.Errorf("read sys.dm_exec_query_stats: %w", err)
		}
		k.plan = string(plan)
		m := requestName.FindStringSubmatch(head.String)
		if m == nil {
			continue
		}
		s.label = label(m[1], text.String)
		sum := all[k] // two statements never share a place
		s.executions, s.worker, s.elapsed, s.reads = s.executions+sum.executions, s.worker+sum.worker, s.elapsed+sum.elapsed, s.reads+sum.reads
		all[k] = s
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read sys.dm_exec_query_stats: %w", err)
	}
	return all, nil
}

// StatementCost is what one statement of a strategy cost, an execution each.
type StatementCost struct {
	// Statement is the name of its request and its verb.
	Statement string `json:"statement"`
	// Executions are those that the plan cache still knew, of Result.Batches.
	Executions int64 `json:"executions"`
	// CPU and Elapsed are microseconds, Reads pages.
	CPU     float64 `json:"cpu_us"`
	Elapsed float64 `json:"elapsed_us"`
	Reads   float64 `json:"logical_reads"`
}

// between is what happened from before to after, a statement each, by label. A
// plan that was compiled in between counts from 0, and what the old one had done
// by then is gone.
func between(before, after map[statKey]stat) []StatementCost {
	sums := make(map[string]stat)
	for k, now := range after {
		was := before[k]
		sum := sums[now.label]
		sum.executions += now.executions - was.executions
		sum.worker += now.worker - was.worker
		sum.elapsed += now.elapsed - was.elapsed
		sum.reads += now.reads - was.reads
		sums[now.label] = sum
	}
	var list []StatementCost
	for name, s := range sums {
		if s.executions <= 0 {
			continue
		}
		n := float64(s.executions)
		list = append(list, StatementCost{Statement: name, Executions: s.executions, CPU: float64(s.worker) / n, Elapsed: float64(s.elapsed) / n, Reads: float64(s.reads) / n})
	}
	slices.SortFunc(list, func(a, b StatementCost) int { return cmp.Compare(a.Statement, b.Statement) })
	return list
}

// querier is a *sql.Tx, or a *sql.Conn outside of one.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readLogBytes is what the open transaction has written to the log; not valid
// where the server does not say.
func readLogBytes(ctx context.Context, q querier) (n sql.NullInt64, err error) {
	err = q.QueryRowContext(ctx, logBytesSQL).Scan(&n)
	return n, err
}
