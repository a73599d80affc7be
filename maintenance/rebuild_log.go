package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// LogState is what the log can take. What the server did not show is null.
type LogState struct {
	// MaxBytesPerSecond is the log rate that this database is held to.
	MaxBytesPerSecond *int64 `json:"max_bytes_per_second"`
	// LeastSeconds is what the rebuild's log takes at that rate, all of it.
	LeastSeconds *float64 `json:"least_seconds"`
	// TotalBytes and UsedBytes are of the log as large as it is now.
	TotalBytes *int64 `json:"total_bytes"`
	UsedBytes  *int64 `json:"used_bytes"`
	// ReuseWait says why the log cannot be reused; NOTHING where it can.
	ReuseWait string `json:"reuse_wait"`
	// Transactions are the longest that are open, of a minute or more.
	Transactions []LongTransaction `json:"transactions"`
}

// LongTransaction is one that has been open for long.
type LongTransaction struct {
	Session int   `json:"session"`
	Seconds int64 `json:"seconds"`
}

func (s LogState) free() *int64 {
	if s.TotalBytes == nil || s.UsedBytes == nil {
		return nil
	}
	free := *s.TotalBytes - *s.UsedBytes
	return &free
}

// Azure SQL Database only; VIEW DATABASE STATE (sql-docs,
// sys-dm-user-db-resource-governor-azure-sql-database.md). A pool shows a row for
// each of its databases.
const logRateSQL = `DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT /* outbox:LogRate */ TOP (1) g.primary_max_log_rate
FROM   sys.dm_user_db_resource_governance AS g
WHERE  g.database_name = @database;`

// VIEW DATABASE STATE on Azure SQL Database, VIEW SERVER STATE elsewhere
// (sql-docs, sys-dm-db-log-space-usage-transact-sql.md).
const logSpaceSQL = `SELECT /* outbox:LogSpace */ s.total_log_size_in_bytes, s.used_log_space_in_bytes
FROM   sys.dm_db_log_space_usage AS s
OPTION (RECOMPILE);`

// A login always sees its own database (sql-docs, sys-databases-transact-sql.md).
const logReuseSQL = `DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT /* outbox:LogReuse */ d.log_reuse_wait_desc
FROM   sys.databases AS d
WHERE  d.name = @database;`

// transaction_begin_time is the server's local time. A transaction that has
// written nothing is in dm_tran_active_transactions too, and its locks count
// (sql-docs, sys-dm-tran-active-transactions-transact-sql.md,
// sys-dm-tran-session-transactions-transact-sql.md).
const longTransactionsSQL = `SELECT /* outbox:LongTransactions */ TOP (5) s.session_id, DATEDIFF(SECOND, a.transaction_begin_time, GETDATE()) AS seconds
FROM   sys.dm_tran_active_transactions AS a
INNER JOIN sys.dm_tran_session_transactions AS s ON s.transaction_id = a.transaction_id
INNER JOIN sys.dm_tran_database_transactions AS d ON d.transaction_id = a.transaction_id AND d.database_id = DB_ID()
WHERE  s.is_user_transaction = 1
AND    s.session_id <> @@SPID
AND    a.transaction_begin_time <= DATEADD(SECOND, -60, GETDATE())
ORDER BY a.transaction_begin_time
OPTION (RECOMPILE);`

// surroundings are the log and the transactions that a rebuild meets.
func (l *rebuildLook) surroundings(ctx context.Context, conn *sql.Conn) error {
	log := &l.report.Log
	log.Transactions = []LongTransaction{}
	one := func(text string, into ...any) func(context.Context, *sql.Conn) error {
		return func(ctx context.Context, conn *sql.Conn) error {
			err := conn.QueryRowContext(ctx, text).Scan(into...)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		}
	}
	var reuse sql.NullString
	for _, step := range []struct {
		what string
		read func(context.Context, *sql.Conn) error
	}{
		{"the log's rate limit (sys.dm_user_db_resource_governance)", one(logRateSQL, &log.MaxBytesPerSecond)},
		{"the space in the log (sys.dm_db_log_space_usage)", one(logSpaceSQL, &log.TotalBytes, &log.UsedBytes)},
		{"why the log is not reused (sys.databases)", one(logReuseSQL, &reuse)},
		{"transactions that are open for long (sys.dm_tran_active_transactions)", l.transactions},
	} {
		if err := l.optional(ctx, conn, step.what, step.read); err != nil {
			return fmt.Errorf("look at %s: %w", step.what, err)
		}
	}
	log.ReuseWait = reuse.String
	return nil
}

func (l *rebuildLook) transactions(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, longTransactionsSQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t LongTransaction
		if err := rows.Scan(&t.Session, &t.Seconds); err != nil {
			return err
		}
		l.report.Log.Transactions = append(l.report.Log.Transactions, t)
	}
	return rows.Err()
}
