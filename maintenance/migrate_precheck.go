package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"azsqloutbox/sqlserver"
)

// A window of rows in the order of the primary key. Loss is what does not come
// back from the way to VARCHAR and again to NVARCHAR: a character that the code
// page lacks has become ? or a look-alike. The two are compared under a binary
// collation, because the column's own may call ā and a equal, or a full-width
// form and a plain one; and by DATALENGTH, because = ignores trailing spaces.
// The collation is given before the CONVERT, which would use the database's code
// page otherwise. VARCHAR(MAX) never cuts, so that the bytes are counted in full.
//
// Characters are half the bytes of NVARCHAR, as its (n) counts them: LEN leaves
// trailing spaces out. The casts keep the comparisons in the type of id, which a seek
// needs.
const migrateWindowSQL = `DECLARE @through {id_t};

SELECT /* outbox:MigrateWindow */ @through = MAX(w.id)
FROM   (SELECT TOP (@rows) e.id
        FROM   {events} AS e
        WHERE  e.id >= CAST(@from AS {id_t})
        ORDER BY e.id) AS w;

SELECT /* outbox:MigrateWindow */ @through AS through_id,
       COUNT_BIG(*) AS total,
       ISNULL(MAX(c.wide_bytes), 0) AS max_wide,
       ISNULL(MAX(c.narrow_bytes), 0) AS max_narrow,
       ISNULL(MAX(c.utf8_bytes), 0) AS max_utf8,
       ISNULL(SUM(c.wide_bytes), 0) AS sum_wide,
       ISNULL(SUM(c.narrow_bytes), 0) AS sum_narrow,
       ISNULL(SUM(c.utf8_bytes), 0) AS sum_utf8,
       ISNULL(SUM(c.is_lossy), 0) AS lossy,
       ISNULL(SUM(c.is_lossy_utf8), 0) AS lossy_utf8,
       ISNULL(SUM(CASE WHEN @length > 0 AND c.narrow_bytes > @length THEN 1 ELSE 0 END), 0) AS too_long
FROM   (SELECT CAST(DATALENGTH(e.{column}) AS BIGINT) AS wide_bytes,
               CAST(DATALENGTH(n.narrow) AS BIGINT) AS narrow_bytes,
               CAST(DATALENGTH(n.utf8) AS BIGINT) AS utf8_bytes,
               CASE WHEN b.back <> k.wide
                      OR DATALENGTH(b.back) <> DATALENGTH(k.wide) THEN 1 ELSE 0 END AS is_lossy,
               CASE WHEN b.utf8_back <> k.wide
                      OR DATALENGTH(b.utf8_back) <> DATALENGTH(k.wide) THEN 1 ELSE 0 END AS is_lossy_utf8
        FROM   {events} AS e
        CROSS APPLY (SELECT e.{column} COLLATE {collation} AS coded,
                            e.{column} COLLATE Latin1_General_100_BIN2 AS wide,
                            e.{column} COLLATE Latin1_General_100_BIN2_UTF8 AS coded_utf8) AS k
        CROSS APPLY (SELECT CONVERT(VARCHAR(MAX), k.coded) AS narrow,
                            CONVERT(VARCHAR(MAX), k.coded_utf8) AS utf8) AS n
        CROSS APPLY (SELECT CONVERT(NVARCHAR(MAX), n.narrow) COLLATE Latin1_General_100_BIN2 AS back,
                            CONVERT(NVARCHAR(MAX), n.utf8) COLLATE Latin1_General_100_BIN2 AS utf8_back) AS b
        WHERE  e.id >= CAST(@from AS {id_t})
        AND    e.id <= @through) AS c
OPTION (MAXDOP 1);`

// The size is public and cheap, and right enough for a percentage (sql-docs,
// sys-partitions-transact-sql.md).
const migrateRowsSQL = `SELECT /* outbox:MigrateRows */ ISNULL(SUM(p.rows), 0) AS total
FROM   sys.partitions AS p
WHERE  p.object_id = OBJECT_ID(@table)
AND    p.index_id IN (0, 1);`

const (
	firstWindow    = 5_000 // rows
	smallestWindow = 500
	largestWindow  = 100_000
	// A window should take between these: long enough that round trips do not
	// count, short enough to stop soon.
	shortWindow = 500 * time.Millisecond
	longWindow  = 2 * time.Second
	// maxSamples is what a person reads.
	maxSamples = 20
)

// querier is a *sql.Conn or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// run calls fn with what statements go through: a session that may be replaced
// between two calls, or one transaction.
type run func(op string, fn func(querier) error) error

// inSession runs what only reads, and can be run again: a check of hours must
// not end with a connection that breaks, nor with a lock that is in its way
// (READ COMMITTED without row versions waits for writers).
func (m Migration) inSession(ctx context.Context, d *sqlserver.Dedicated) run {
	return func(op string, fn func(querier) error) error {
		return m.repeat(ctx, mayPass, func() error {
			return d.Use(ctx, op, func(conn *sql.Conn) error { return fn(conn) })
		})
	}
}

// patiently tries again what failed by a deadlock or a lock timeout.
func (m Migration) patiently(ctx context.Context, fn func() error) error {
	return m.repeat(ctx, contended, fn)
}

const attempts = 10

// repeat pauses as long as the wait for a lock may be, which others had behind
// it.
func (m Migration) repeat(ctx context.Context, again func(error) bool, fn func() error) error {
	for attempt := 1; ; attempt++ {
		err := fn()
		if err == nil || !again(err) || attempt == attempts {
			return err
		}
		select {
		case <-time.After(m.LockTimeout):
		case <-ctx.Done():
			return err
		}
	}
}

func contended(err error) bool { return sqlserver.ClassOf(err) == sqlserver.Contention }

// mayPass is contention, and what mends itself: a failover, a lost connection.
func mayPass(err error) bool {
	var refusal *Refusal
	switch sqlserver.ClassOf(err) {
	case sqlserver.Contention, sqlserver.Transient, sqlserver.Reconnect:
		return !errors.As(err, &refusal)
	}
	return false
}

// checkRows looks at every row from the given id on and adds what it finds to
// the report. After an error the report holds what was seen until then.
func (m Migration) checkRows(ctx context.Context, do run, c *migrationColumn, r *MigrationReport, stage string) error {
	var total int64
	err := do(m.op("ask for the size"), func(q querier) error {
		return q.QueryRowContext(ctx, migrateRowsSQL, sql.Named("table", m.Events())).Scan(&total)
	})
	if err != nil {
		return err
	}
	text := m.fill(migrateWindowSQL, c)
	r.nextID = c.lowestID
	if m.FromID != nil {
		r.FromID = strconv.FormatInt(*m.FromID, 10)
		r.nextID = max(r.nextID, *m.FromID)
		total = 0 // of what is left, nobody knows
	}
	window := int64(firstWindow)
	m.Progress(Progress{Stage: stage, Total: total, Unit: "rows"})
	for r.nextID <= c.highestID {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var w migrationWindow
		begun := time.Now()
		err := do(m.op("check the text"), func(q querier) error {
			return w.read(ctx, q, text, window, r.nextID, c.toLength)
		})
		if err != nil {
			return err
		}
		if !w.through.Valid {
			break
		}
		if room := maxSamples - len(r.Samples); room > 0 && w.lossy+w.tooLong > 0 {
			if err := m.readSamples(ctx, do, c, r, r.nextID, w.through.Int64, room); err != nil {
				return err
			}
		}
		r.add(w)
		m.Progress(Progress{Stage: stage, Done: r.Rows, Total: total, Unit: "rows"})
		if w.through.Int64 == c.highestID {
			break
		}
		r.nextID = w.through.Int64 + 1
		switch took := time.Since(begun); {
		case took < shortWindow:
			window = min(2*window, largestWindow)
		case took > longWindow:
			window = max(window/2, smallestWindow)
		}
	}
	r.Complete = m.FromID == nil
	return nil
}

// migrationWindow is one answer of migrateWindowSQL.
type migrationWindow struct {
	through                     sql.NullInt64
	rows                        int64
	maxWide, maxNarrow, maxUTF8 int64
	sumWide, sumNarrow, sumUTF8 int64
	lossy, lossyUTF8, tooLong   int64
}

func (w *migrationWindow) read(ctx context.Context, q querier, text string, rows, from int64, length int) error {
	return q.QueryRowContext(ctx, text, sql.Named("rows", rows), sql.Named("from", from), sql.Named("length", int64(length))).
		Scan(&w.through, &w.rows, &w.maxWide, &w.maxNarrow, &w.maxUTF8, &w.sumWide, &w.sumNarrow, &w.sumUTF8, &w.lossy, &w.lossyUTF8, &w.tooLong)
}

func (r *MigrationReport) add(w migrationWindow) {
	r.ThroughID = strconv.FormatInt(w.through.Int64, 10)
	r.Rows += w.rows
	r.MaxChars = max(r.MaxChars, w.maxWide/2)
	r.MaxBytes = max(r.MaxBytes, w.maxNarrow)
	r.utf8MaxBytes = max(r.utf8MaxBytes, w.maxUTF8)
	r.BytesBefore += w.sumWide
	r.BytesAfter += w.sumNarrow
	r.utf8Bytes += w.sumUTF8
	r.LossyRows += w.lossy
	r.utf8LossyRows += w.lossyUTF8
	r.TooLongRows += w.tooLong
}

// fill renders a statement: what the migration knows first, in words that no
// name of the table can bring in, the names last.
func (m Migration) fill(text string, c *migrationColumn) string {
	text = strings.NewReplacer(
		"{column}", "["+m.Column+"]",
		"{column_name}", m.Column,
		"{collation}", c.toCollation,
		"{length}", strconv.Itoa(c.toLength),
		"{id_t}", strings.ToUpper(c.idType),
		"{type}", fmt.Sprintf("VARCHAR(%s)", lengthText(c.toLength)),
	).Replace(text)
	return m.Names.Replacer().Replace(text)
}
