package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"azsqloutbox/worker"
)

// The catalog counts the entries of the claim index, which is the backlog. The
// number is approximate and costs nothing; the view needs no right beyond one
// on the table (sql-docs, sys-partitions-transact-sql.md).
const backlogTotalSQL = `SELECT /* outbox:BacklogTotal */ ISNULL(SUM(p.rows), 0) AS total
FROM   sys.indexes AS i
INNER JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id
WHERE  i.object_id = OBJECT_ID(@table)
AND    i.name = @claim_index;`

// Per type a count that stops at @cap, and the age of the lowest id: a seek
// each; COLLATE as in Pending. A COUNT(*) over a backlog of millions would cost
// more than it tells. A plain read as in Pending; without row versioning it
// waits for rows that a writer or a claim has not committed yet, at most
// LOCK_TIMEOUT.
const backlogTypesSQL = `SELECT /* outbox:BacklogTypes */ t.i,
       (SELECT COUNT(*)
        FROM   (SELECT TOP (@cap) e.id
                FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
                WHERE  e.event_type = t.event_type
                AND    e.status = 0) AS capped) AS pending,
       (SELECT TOP (1) DATEDIFF_BIG(MILLISECOND, e.created_at, SYSUTCDATETIME())
        FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
        WHERE  e.event_type = t.event_type
        AND    e.status = 0
        ORDER BY e.id) AS oldest_ms
FROM   (SELECT CAST(c.[key] AS INT) AS i, CAST(c.value AS {event_type_t}){event_type_collate} AS event_type
        FROM   OPENJSON(@types) AS c) AS t
OPTION (MAXDOP 1);`

// Two ranges of the retry index, each counted up to @cap, and the receipts: a
// row a batch in flight.
const backlogFailedSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
SELECT /* outbox:BacklogFailed */ (SELECT COUNT(*)
        FROM   (SELECT TOP (@cap) e.id
                FROM   {events} AS e WITH (INDEX({retry_index}))
                WHERE  e.status = 2
                AND    e.retry_at IS NOT NULL) AS w) AS waiting,
       (SELECT COUNT(*)
        FROM   (SELECT TOP (@cap) e.id
                FROM   {events} AS e WITH (INDEX({retry_index}))
                WHERE  e.status = 2
                AND    e.retry_at IS NULL) AS p) AS parked,
       (SELECT COUNT(*) FROM {receipts} AS r) AS open_receipts,
       (SELECT COUNT(*) FROM {receipts} AS r WHERE r.lease_until < @now) AS overdue_receipts
OPTION (MAXDOP 1);`

// countedAtMost bounds what the counts of all types read in one pass: a hundred deep
// types of wide entries would otherwise be a gigabyte of pages, with every worker's
// every look.
const countedAtMost = 10 * worker.BacklogCountCap

// Backlog counts what waits.
func (s *Store) Backlog(ctx context.Context, types []string) (worker.Backlog, error) {
	var b worker.Backlog
	err := s.retrying(ctx, fmt.Sprintf("count the backlog of %s", s.names), func(ctx context.Context) error {
		b = worker.Backlog{}
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			row := conn.QueryRowContext(ctx, st.backlogTotal,
				sql.Named("table", s.names.Events()),
				sql.Named("claim_index", s.names.WithDefaults().ClaimIndex))
			if err := row.Scan(&b.Total); err != nil {
				return err
			}
			row = conn.QueryRowContext(ctx, st.backlogFailed, sql.Named("cap", worker.BacklogCountCap))
			if err := row.Scan(&b.Waiting, &b.Parked, &b.OpenReceipts, &b.OverdueReceipts); err != nil {
				return err
			}
			if len(types) == 0 {
				return nil
			}
			for _, t := range types {
				if err := st.checkEventType(t); err != nil {
					return err
				}
			}
			var err error
			b.Types, err = countTypes(types, countedAtMost, func(types []string, limit int) ([]worker.TypeBacklog, error) {
				return backlogOfTypes(ctx, conn, st, types, limit)
			})
			return err
		})
	})
	return b, err
}

// countTypes gives every type an equal share of what may be counted, then what the
// shallow ones left to those that need more than their share.
func countTypes(types []string, atMost int, count func(types []string, limit int) ([]worker.TypeBacklog, error)) ([]worker.TypeBacklog, error) {
	share := func(of, among int) int { return min(max(1, of/among), worker.BacklogCountCap) }
	limit := share(atMost, len(types))
	counts, err := count(types, limit)
	if err != nil {
		return nil, err
	}
	var deep []string
	var at []int
	left := int64(atMost)
	for i, c := range counts {
		left -= c.Pending
		if c.Capped {
			deep, at = append(deep, c.EventType), append(at, i)
		}
	}
	// A little more would not be worth a second look.
	if len(deep) == 0 || share(int(left), len(deep)) < 2*limit {
		return counts, nil
	}
	more, err := count(deep, share(int(left), len(deep)))
	if err != nil {
		return nil, err
	}
	for i, c := range more {
		counts[at[i]] = c
	}
	return counts, nil
}

func backlogOfTypes(ctx context.Context, conn *sql.Conn, st *statements, types []string, limit int) ([]worker.TypeBacklog, error) {
	rows, err := conn.QueryContext(ctx, st.backlogTypes,
		sql.Named("types", stringsJSON(types)),
		sql.Named("cap", limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := make([]worker.TypeBacklog, len(types))
	for i, t := range types {
		counts[i].EventType = t
	}
	for rows.Next() {
		var i int
		var pending int64
		var oldest sql.NullInt64
		if err := rows.Scan(&i, &pending, &oldest); err != nil {
			return nil, err
		}
		if i < 0 || i >= len(types) {
			return nil, fmt.Errorf("the count answered position %d of %d types", i, len(types))
		}
		counts[i].Pending, counts[i].Capped = pending, pending >= int64(limit)
		counts[i].OldestAge = max(0, milliseconds(oldest.Int64))
	}
	return counts, rows.Err()
}

// milliseconds is so long a time, or as much of it as a Duration holds: 292 years.
// created_at is the writer's, who may have left it at its language's zero, year 1.
func milliseconds(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	switch {
	case ms > most:
		return math.MaxInt64
	case ms < -most:
		return math.MinInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// A row a batch in flight: a page or two.
const openReceiptsSQL = `SELECT /* outbox:OpenReceipts */ COUNT(*) AS receipts
FROM   {receipts}
OPTION (RECOMPILE);`

// OpenReceipts implements worker.Keeper.
func (s *Store) OpenReceipts(ctx context.Context) (n int, err error) {
	err = s.retrying(ctx, fmt.Sprintf("count the open claims of %s", s.names), func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			return conn.QueryRowContext(ctx, st.openReceipts).Scan(&n)
		})
	})
	return n, err
}
