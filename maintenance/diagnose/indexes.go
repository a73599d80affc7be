package diagnose

import (
	"context"
	"database/sql"
	"time"
)

// indexFacts are what section 5 judges.
type indexFacts struct {
	physicsFacts
	forced  bool
	latches map[int]latches
	// definitionGrant gives the right to see filters.
	definitionGrant string
	// latchReason is why they are missing.
	latchReason string
	started     time.Time // zero where it is not known
	pageLatchEX waitTotal // of the whole database or server
}

// indexUse counts operations, not rows (sys.dm_db_index_usage_stats).
type indexUse struct {
	seeks, scans, lookups, updates int64
	last                           time.Time // read
}

func (u indexUse) reads() int64 { return u.seeks + u.scans + u.lookups }

// latches are waits for a page in memory, of one index, and how often row locks
// on it became a table lock.
type latches struct {
	waits, ms, escalations int64
}

// sys-dm-db-index-usage-stats-transact-sql.md: reset when the engine starts and
// when the database fails over; VIEW SERVER STATE, on Azure SQL Database VIEW
// DATABASE STATE. Its database_id is the engine's own DB_ID().
const diagnoseUsageSQL = `SELECT /* outbox:DiagnoseUsage */ u.index_id, u.user_seeks, u.user_scans, u.user_lookups, u.user_updates,
       (SELECT MAX(l.read_at) FROM (VALUES (u.last_user_seek), (u.last_user_scan), (u.last_user_lookup)) AS l (read_at)) AS last_read
FROM   sys.dm_db_index_usage_stats AS u
WHERE  u.database_id = DB_ID()
AND    u.object_id = OBJECT_ID(@table);`

// sys-dm-db-index-operational-stats-transact-sql.md: CONTROL on the table or VIEW
// DATABASE STATE. It takes no correlated parameters.
const diagnoseLatchesSQL = `DECLARE @database INT = DB_ID();
DECLARE @object INT = OBJECT_ID(@table);
SELECT /* outbox:DiagnoseLatches */ o.index_id, SUM(o.page_latch_wait_count) AS waits, SUM(o.page_latch_wait_in_ms) AS wait_ms, SUM(o.index_lock_promotion_count) AS escalations
FROM   sys.dm_db_index_operational_stats(@database, @object, NULL, NULL) AS o
GROUP BY o.index_id;`

// sys-dm-os-sys-info-transact-sql.md. It only dates the counters.
const diagnoseStartedSQL = `SELECT /* outbox:DiagnoseStarted */ i.sqlserver_start_time
FROM   sys.dm_os_sys_info AS i
OPTION (RECOMPILE);`

func indexesSection(ctx context.Context, s *source, sec Section) (Section, error) {
	f := indexFacts{latches: make(map[int]latches), forced: s.env.forced}
	f.engine, f.now, f.claimIndex, f.retryIndex, f.events = s.env.Engine, s.env.now, s.claimIndex(), s.name("{retry_index}"), s.names.Events()
	f.definitionGrant = s.env.grant(ofDatabase, "VIEW DEFINITION")
	var err error
	if f.catalog, err = s.indexes.read(ctx); err != nil {
		return sec, err
	}
	if f.storage, err = s.storage.read(ctx); err != nil {
		return sec, err
	}
	f.latchReason = s.optional("latch waits of indexes", ofDatabase, s.readLatches(ctx, &f))
	var started sql.NullTime
	if err := s.each(ctx, "read when the engine started", diagnoseStartedSQL, nil, func(r *sql.Rows) error { return r.Scan(&started) }); err == nil {
		f.started = s.env.utc(started.Time)
	}
	if waits, err := s.readWaits(ctx); err == nil {
		for _, w := range waits {
			if w.name == "PAGELATCH_EX" {
				f.pageLatchEX = w
			}
		}
	}
	if ctx.Err() != nil {
		return sec, context.Cause(ctx)
	}
	return judgeIndexes(f, sec), nil
}

func (s *source) readUsage(ctx context.Context, st *storage) error {
	return s.each(ctx, "read who uses the indexes", diagnoseUsageSQL, []any{s.table()}, func(rows *sql.Rows) error {
		var id int
		var u indexUse
		var last sql.NullTime
		if err := rows.Scan(&id, &u.seeks, &u.scans, &u.lookups, &u.updates, &last); err != nil {
			return err
		}
		u.last = s.env.utc(last.Time)
		st.usage[id] = u
		return nil
	})
}

func (s *source) readLatches(ctx context.Context, f *indexFacts) error {
	return s.each(ctx, "read the latch waits of the indexes", diagnoseLatchesSQL, []any{s.table()}, func(rows *sql.Rows) error {
		var id int
		var waits, ms, escalations sql.NullInt64
		if err := rows.Scan(&id, &waits, &ms, &escalations); err != nil {
			return err
		}
		f.latches[id] = latches{waits.Int64, ms.Int64, escalations.Int64}
		return nil
	})
}
