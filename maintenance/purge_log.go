package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

// The waits by which the log rate governor slows writers down (azure-docs,
// resource-limits-logical-server.md, "Transaction log rate governance"), of this
// database since it was last moved (sql-docs,
// sys-dm-db-wait-stats-azure-sql-database.md). Needs VIEW DATABASE STATE.
const purgeLogWaitsSQL = `SELECT /* outbox:PurgeLogWaits */ ISNULL(SUM(w.wait_time_ms), 0) AS wait_ms
FROM   sys.dm_db_wait_stats AS w
WHERE  w.wait_type IN (N'LOG_RATE_GOVERNOR', N'POOL_LOG_RATE_GOVERNOR', N'INSTANCE_LOG_RATE_GOVERNOR',
                       N'HADR_THROTTLE_LOG_RATE_SEND_RECV_QUEUE_SIZE', N'HADR_THROTTLE_LOG_RATE_LOG_SIZE', N'HADR_THROTTLE_LOG_RATE_MISMATCHED_SLO')
OPTION (RECOMPILE);`

// A row every 15 seconds (sql-docs,
// sys-dm-db-resource-stats-azure-sql-database.md). Needs VIEW DATABASE STATE;
// Azure SQL Database only.
const purgeLogWriteSQL = `SELECT /* outbox:PurgeLogWrite */ TOP (1)
       s.end_time,
       CAST(s.avg_log_write_percent AS FLOAT) AS log_write_percent
FROM   sys.dm_db_resource_stats AS s
ORDER BY s.end_time DESC
OPTION (RECOMPILE);`

const (
	// logLookEvery is the pause between two looks at the log.
	logLookEvery = 5 * time.Second
	// Short of log rate is a database whose writers, together, waited for it for
	// more than a tenth of the time, or that wrote four fifths of what it may.
	shortWaits   = 0.1
	shortPercent = 80
)

// logGauge tells how short the database is of log rate. Each of its inputs may
// be out of sight.
type logGauge struct {
	looked    time.Time // zero before the first look
	waits     sql.NullInt64
	percentOf time.Time
	noWaits   bool
	noPercent bool
	short     bool
}

// due says whether it is time for another look.
func (g *logGauge) due(now time.Time) bool {
	return !(g.noWaits && g.noPercent) && (g.looked.IsZero() || now.Sub(g.looked) >= logLookEvery)
}

// look asks the database. notes say once what cannot be seen; an error is one of
// the connection.
func (g *logGauge) look(ctx context.Context, conn *sql.Conn, now time.Time) (notes []string, err error) {
	var reading logReading
	if !g.noWaits {
		err := conn.QueryRowContext(ctx, purgeLogWaitsSQL).Scan(&reading.waitMS)
		if g.noWaits = unseen(err); g.noWaits {
			notes = append(notes, unseenNote("the waits for log rate (sys.dm_db_wait_stats)", err))
		} else if err != nil {
			return notes, err
		}
	}
	if !g.noPercent {
		var percent sql.NullFloat64
		var end sql.NullTime
		err := conn.QueryRowContext(ctx, purgeLogWriteSQL).Scan(&end, &percent)
		if g.noPercent = unseen(err); g.noPercent {
			notes = append(notes, unseenNote("the log write percentage (sys.dm_db_resource_stats)", err))
		} else if err != nil && err != sql.ErrNoRows {
			return notes, err
		}
		reading.percentOf, reading.percent = end.Time, percent
	}
	g.judge(reading, now)
	return notes, nil
}

type logReading struct {
	waitMS    sql.NullInt64
	percentOf time.Time
	percent   sql.NullFloat64
}

// judge compares a reading with the one before. Waits that became fewer are
// those of another server.
func (g *logGauge) judge(r logReading, now time.Time) {
	took := now.Sub(g.looked)
	waiting := !g.looked.IsZero() && took > 0 && g.waits.Valid && r.waitMS.Valid &&
		float64(r.waitMS.Int64-g.waits.Int64) > shortWaits*float64(took.Milliseconds())
	full := r.percent.Valid && r.percent.Float64 >= shortPercent
	if full && r.percentOf.Equal(g.percentOf) {
		full = g.short // no news: what it led to stays
	}
	g.short = waiting || full
	g.looked, g.waits, g.percentOf = now, r.waitMS, r.percentOf
}

// unseen says that the server refuses to show a view, or has none: nothing that
// waiting mends, and no fault of the connection.
func unseen(err error) bool {
	server, ok := err.(mssql.Error)
	return ok && sqlserver.ClassOf(sqlserver.Classify("", server)) == sqlserver.Permanent
}

func unseenNote(what string, err error) string {
	return fmt.Sprintf("%s cannot be read and do not slow the purge down: %s; on Azure SQL, GRANT VIEW DATABASE STATE shows them", what, err)
}
