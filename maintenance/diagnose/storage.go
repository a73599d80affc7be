package diagnose

import (
	"context"
	"database/sql"
	"time"

	"azsqloutbox/maintenance/sizing"
)

// storage is what the table takes, and how fast it fills.
type storage struct {
	sizes map[int]indexSize
	// sizeReason and pageReason are why sizes or what is on the pages are missing.
	sizeReason, pageReason string
	sample                 payloadSample
	sampleReason           string
	oldest, newest         time.Time // created_at at the ends of the primary key; zero for none
	head                   headCost
	usage                  map[int]indexUse
	usageReason            string
}

// indexSize is one index, summed over its partitions.
type indexSize struct {
	rows                int64
	usedBytes           float64
	leafPages           int64
	lobBytes, overBytes float64
	known               bool // pages were told
	// from sampled pages: how full they are in percent, what a record takes, and
	// deleted records that ghost cleanup has not taken away yet, or may not because
	// of an open snapshot
	density, recordBytes           float64
	ghosts, versionGhosts, records int64
	sampled                        bool
}

// payloadSample is the payload of the newest rows.
type payloadSample struct {
	rows                 int64
	bytes, narrow, chars float64 // averages: as stored, as UTF-8, characters
	from                 time.Time
}

// headCost is what it took to read the first row by the primary key: more than
// a handful of pages are ghosts of what was purged.
type headCost struct {
	reads  int64
	known  bool
	reason string
}

// sys-dm-db-partition-stats-transact-sql.md: VIEW DATABASE STATE and VIEW
// DEFINITION. Pages are 8 KB.
const diagnoseSizesSQL = `SELECT /* outbox:DiagnoseSizes */ ps.index_id,
       SUM(ps.row_count) AS row_count,
       SUM(ps.used_page_count) AS used_page_count,
       SUM(ps.in_row_data_page_count) AS in_row_data_page_count,
       SUM(ps.lob_used_page_count) AS lob_used_page_count,
       SUM(ps.row_overflow_used_page_count) AS row_overflow_used_page_count
FROM   sys.dm_db_partition_stats AS ps
WHERE  ps.object_id = OBJECT_ID(@table)
GROUP BY ps.index_id;`

// sys-dm-db-index-physical-stats-transact-sql.md: CONTROL on the table or VIEW
// DATABASE STATE. SAMPLED reads one page in a hundred of large indexes; LIMITED
// has no density and no ghosts. It takes no correlated parameters, so variables.
const diagnosePagesSQL = `DECLARE @database INT = DB_ID();
DECLARE @object INT = OBJECT_ID(@table);
SELECT /* outbox:DiagnosePages */ ps.index_id,
       SUM(ps.page_count) AS page_count,
       SUM(ps.avg_page_space_used_in_percent * ps.page_count) / NULLIF(SUM(ps.page_count), 0) AS density,
       MAX(ps.avg_record_size_in_bytes) AS record_bytes,
       SUM(ps.ghost_record_count) AS ghosts,
       SUM(ps.version_ghost_record_count) AS version_ghosts,
       SUM(ps.record_count) AS records
FROM   sys.dm_db_index_physical_stats(@database, @object, NULL, NULL, 'SAMPLED') AS ps
WHERE  ps.alloc_unit_type_desc = 'IN_ROW_DATA'
AND    ps.index_level = 0
GROUP BY ps.index_id;`

// What an application holds locked is skipped, not waited for. The rows are the
// newest, which are in memory anyway.
const diagnoseSampleSQL = `SELECT /* outbox:DiagnoseSample */ COUNT(*) AS sampled,
       MIN(n.created_at) AS first_created,
       AVG(CONVERT(FLOAT, DATALENGTH(n.payload))) AS payload_bytes,
       AVG(CONVERT(FLOAT, DATALENGTH(CONVERT(VARCHAR(MAX), CONVERT(NVARCHAR(MAX), n.payload) COLLATE Latin1_General_100_BIN2_UTF8)))) AS utf8_bytes,
       AVG(CONVERT(FLOAT, DATALENGTH(CONVERT(NVARCHAR(MAX), n.payload)))) / 2 AS characters
FROM   (SELECT TOP (@rows) e.payload, e.created_at
        FROM   {events} AS e WITH (READPAST, READCOMMITTEDLOCK)
        ORDER BY e.id DESC) AS n;`

const diagnoseTailSQL = `DECLARE @one INT = 1;
SELECT /* outbox:DiagnoseTail */ TOP (@one) e.created_at
FROM   {events} AS e WITH (READPAST, READCOMMITTEDLOCK)
ORDER BY e.id DESC;`

// A statement of its own, because its last_logical_reads are the evidence.
const diagnoseHeadSQL = `SELECT /* outbox:DiagnoseHead */ TOP (@one) e.created_at
FROM   {events} AS e WITH (READPAST, READCOMMITTEDLOCK)
ORDER BY e.id;`

const diagnoseHeadCostSQL = `SELECT /* outbox:DiagnoseHeadCost */ TOP (@one) qs.last_logical_reads
FROM   sys.dm_exec_query_stats AS qs
CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st
WHERE  CHARINDEX(N'/* outbox:DiagnoseHead' + N' */', st.text) > 0
AND    CHARINDEX(@events, st.text) > 0
ORDER BY qs.last_execution_time DESC;`

// sampleRows are some 30 MB of pages that were just written; at 4,000 events a
// second they are five seconds.
const sampleRows = 20_000

// readStorage asks piece by piece, so that a right that is missing costs only
// its piece.
func (s *source) readStorage(ctx context.Context) (storage, error) {
	st := storage{sizes: make(map[int]indexSize), usage: make(map[int]indexUse)}
	// Before anything here reads the table itself and is counted.
	st.usageReason = s.optional("reads and writes of indexes", ofServer, s.readUsage(ctx, &st))
	st.sizeReason = s.optional("sizes", ofDatabase, s.readSizes(ctx, &st))
	st.pageReason = s.optional("fill and ghosts of the pages", ofDatabase, s.readPages(ctx, &st))
	st.sampleReason = s.optional("sample of payloads", ofDatabase, s.readSample(ctx, &st))
	st.head.reason = s.optional("cost of reading the first row", ofServer, s.readEnds(ctx, &st))
	return st, context.Cause(ctx)
}

func (s *source) readSizes(ctx context.Context, st *storage) error {
	return s.each(ctx, "read the sizes", diagnoseSizesSQL, []any{s.table()}, func(rows *sql.Rows) error {
		var id int
		var count, used, leaf, lob, over sql.NullInt64
		if err := rows.Scan(&id, &count, &used, &leaf, &lob, &over); err != nil {
			return err
		}
		st.sizes[id] = indexSize{
			rows: count.Int64, usedBytes: float64(used.Int64) * sizing.PageBytes, leafPages: leaf.Int64, known: used.Valid,
			lobBytes: float64(lob.Int64) * sizing.PageBytes, overBytes: float64(over.Int64) * sizing.PageBytes,
		}
		return nil
	})
}

// On a readable secondary the lock that this takes can block redo (the page of
// the view says so).
func (s *source) readPages(ctx context.Context, st *storage) error {
	if s.env.updatability == "READ_ONLY" {
		return errSecondary
	}
	return s.each(ctx, "sample the pages", diagnosePagesSQL, []any{s.table()}, func(rows *sql.Rows) error {
		var id int
		var pages, ghosts, versionGhosts, records sql.NullInt64
		var density, record sql.NullFloat64
		if err := rows.Scan(&id, &pages, &density, &record, &ghosts, &versionGhosts, &records); err != nil {
			return err
		}
		z := st.sizes[id]
		z.density, z.recordBytes = density.Float64, record.Float64
		z.ghosts, z.versionGhosts, z.records, z.sampled = ghosts.Int64, versionGhosts.Int64, records.Int64, density.Valid
		st.sizes[id] = z
		return nil
	})
}

func (s *source) readSample(ctx context.Context, st *storage) error {
	query := s.names.Replacer().Replace(diagnoseSampleSQL)
	return s.each(ctx, "look at the newest rows", query, []any{sql.Named("rows", sampleRows)}, func(rows *sql.Rows) error {
		var bytes, narrow, chars sql.NullFloat64
		var from sql.NullTime
		if err := rows.Scan(&st.sample.rows, &from, &bytes, &narrow, &chars); err != nil {
			return err
		}
		st.sample.bytes, st.sample.narrow, st.sample.chars, st.sample.from = bytes.Float64, narrow.Float64, chars.Float64, from.Time
		return nil
	})
}

func (s *source) readEnds(ctx context.Context, st *storage) error {
	one := func(at *time.Time) func(*sql.Rows) error {
		return func(rows *sql.Rows) error { return rows.Scan(at) }
	}
	fill := s.names.Replacer()
	if err := s.each(ctx, "read the last row", fill.Replace(diagnoseTailSQL), nil, one(&st.newest)); err != nil {
		return err
	}
	if err := s.each(ctx, "read the first row", fill.Replace(diagnoseHeadSQL), []any{sql.Named("one", 1)}, one(&st.oldest)); err != nil {
		return err
	}
	return s.each(ctx, "read what the first row cost", diagnoseHeadCostSQL,
		[]any{sql.Named("one", 1), sql.Named("events", s.names.Events())},
		func(rows *sql.Rows) error {
			st.head.known = true
			return rows.Scan(&st.head.reads)
		})
}
