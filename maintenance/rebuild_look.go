package maintenance

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

// A row per key column; a heap and a columnstore index have none. The catalog
// shows the indexes of a table to whoever has a right on it (sql-docs,
// sys-indexes-transact-sql.md, sys-index-columns-transact-sql.md); INDEXPROPERTY
// is NULL before SQL Server 2019. system_type_id 189 is timestamp.
const rebuildIndexesSQL = `DECLARE @object INT = OBJECT_ID(@table);
SELECT /* outbox:RebuildIndexes */ i.object_id, i.index_id, ISNULL(i.name, N'') AS name, i.type, i.is_disabled, i.has_filter, ISNULL(i.filter_definition, N'') AS filter_text, i.fill_factor,
       INDEXPROPERTY(i.object_id, i.name, 'IsOptimizedForSequentialKey') AS for_sequential_key,
       (SELECT ISNULL(SUM(p.rows), 0) FROM sys.partitions AS p WHERE p.object_id = i.object_id AND p.index_id = i.index_id) AS total,
       ISNULL(ic.key_ordinal, 0) AS key_ordinal, ISNULL(c.name, N'') AS column_name,
       CASE WHEN c.is_computed = 1 OR c.system_type_id = 189 THEN 1 ELSE 0 END AS unresumable
FROM   sys.indexes AS i
LEFT JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id AND ic.key_ordinal > 0
LEFT JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE  i.object_id = @object
AND    i.is_hypothetical = 0
ORDER BY i.index_id, ic.key_ordinal;`

// SAMPLED reads one page in a hundred, or all of an index of less than 10,000
// pages, under an intent lock that keeps nobody away; LIMITED would not see the
// density. It needs CONTROL on the table or VIEW DATABASE STATE (sql-docs,
// sys-dm-db-index-physical-stats-transact-sql.md). The object's id is asked for
// before: NULL would stand for every table of the database.
const indexPhysicalStatsSQL = `SELECT /* outbox:IndexPhysicalStats */ s.index_id, s.alloc_unit_type_desc, s.page_count, s.avg_page_space_used_in_percent, s.avg_fragmentation_in_percent,
       s.record_count, s.ghost_record_count, s.avg_record_size_in_bytes
FROM   sys.dm_db_index_physical_stats(DB_ID(), @object, @index, NULL, 'SAMPLED') AS s
WHERE  s.index_level = 0;`

// The text of the statement is left where it is. (sql-docs,
// sys-index-resumable-operations.md; no right but one on the table. start_time is
// the server's local time.)
const resumableOperationsSQL = `SELECT /* outbox:ResumableOperations */ r.index_id, r.name, r.state, r.percent_complete, r.start_time, r.last_pause_time, r.total_execution_time
FROM   sys.index_resumable_operations AS r
WHERE  r.object_id = OBJECT_ID(@table);`

const rebuildUserSQL = `DECLARE @user NVARCHAR(128) = USER_NAME();
SELECT /* outbox:RebuildUser */ @user AS name;`

// rebuildLook reads what a plan is made of.
type rebuildLook struct {
	r      Rebuild
	report *RebuildReport
	object int64
	user   string
}

// read fills the report. orphans are resumable operations of indexes that do not
// exist yet.
func (l *rebuildLook) read(ctx context.Context, conn *sql.Conn) (orphans []string, err error) {
	if err := conn.QueryRowContext(ctx, rebuildUserSQL).Scan(&l.user); err != nil {
		return nil, fmt.Errorf("ask for the name of this user: %w", err)
	}
	if err := l.indexes(ctx, conn); err != nil {
		return nil, err
	}
	if l.object == 0 {
		return nil, fmt.Errorf("the table %s is missing, or this login has no right on it: %w", l.r.Names, ErrSetting)
	}
	if err := l.optional(ctx, conn, "density, size and fragmentation (sys.dm_db_index_physical_stats)", l.physical); err != nil {
		return nil, err
	}
	operations, err := readOperations(ctx, conn, l.r.Events())
	if err != nil {
		return nil, err
	}
	for _, o := range operations {
		at := slices.IndexFunc(l.report.Indexes, func(i RebuildIndex) bool { return i.state.id == o.indexID })
		if at < 0 {
			orphans = append(orphans, o.index)
			continue
		}
		i := &l.report.Indexes[at]
		i.state.operation, i.Operation = &o.ResumableOperation, &o.ResumableOperation
	}
	if l.r.Index != "" {
		l.report.Indexes = slices.DeleteFunc(l.report.Indexes, func(i RebuildIndex) bool { return !strings.EqualFold(i.Name, l.r.Index) })
	}
	return orphans, l.surroundings(ctx, conn)
}

func (l *rebuildLook) indexes(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, rebuildIndexesSQL, sql.Named("table", l.r.Events()))
	if err != nil {
		return fmt.Errorf("read the indexes: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s rebuildState
		var sequential sql.NullBool
		var ordinal int
		var column string
		var unresumable bool
		if err := rows.Scan(&l.object, &s.id, &s.name, &s.kind, &s.disabled, &s.filtered, &s.filter, &s.fillFactor, &sequential, &s.rows, &ordinal, &column, &unresumable); err != nil {
			return fmt.Errorf("read the indexes: %w", err)
		}
		if s.kind == heapType {
			l.report.Notes = append(l.report.Notes, "the table is a heap: this is about its indexes; ALTER TABLE … REBUILD is another thing")
			continue
		}
		at := slices.IndexFunc(l.report.Indexes, func(i RebuildIndex) bool { return i.state.id == s.id })
		if at < 0 {
			s.object, s.fillFactor = l.object, cmp.Or(s.fillFactor, 100)
			if sequential.Valid {
				s.sequential = &sequential.Bool
			}
			names := l.r.Names.WithDefaults()
			s.byHint = strings.EqualFold(s.name, names.ClaimIndex) || strings.EqualFold(s.name, names.RetryIndex)
			l.report.Indexes = append(l.report.Indexes, newRebuildIndex(s))
			at = len(l.report.Indexes) - 1
		}
		i := &l.report.Indexes[at]
		i.state.leadingID = i.state.leadingID || ordinal == 1 && strings.EqualFold(column, "id")
		i.state.unresumableKey = i.state.unresumableKey || unresumable
	}
	return rows.Err()
}

func newRebuildIndex(s rebuildState) RebuildIndex {
	kind := map[int]string{clusteredType: "clustered", nonclusteredType: "nonclustered"}[s.kind]
	return RebuildIndex{
		Name: s.name, Kind: cmp.Or(kind, "other"), Filter: s.filter, Disabled: s.disabled,
		FillFactor: s.fillFactor, ForSequentialKey: s.sequential, Rows: s.rows, state: s,
	}
}

func (l *rebuildLook) physical(ctx context.Context, conn *sql.Conn) error {
	sizes, err := readSizes(ctx, conn, l.object, sql.NullInt64{})
	if err != nil {
		return err
	}
	for at := range l.report.Indexes {
		i := &l.report.Indexes[at]
		p, ok := sizes[i.state.id]
		if !ok || !p.seen {
			continue
		}
		s := &i.state
		s.measured = p.density.Valid
		s.pages, s.otherPages, s.density, s.fragmentation = p.pages, p.otherPages, p.density.V, p.fragmentation.V
		s.row, s.ghosts = p.row.V, p.ghosts.V
		bytes := (p.pages + p.otherPages) * pageBytes
		i.Pages, i.Bytes = &p.pages, &bytes
		i.Density, i.Fragmentation, i.Ghosts = pointer(p.density), pointer(p.fragmentation), pointer(p.ghosts)
	}
	return nil
}

// indexSize is what sys.dm_db_index_physical_stats says of an index, over all of its
// partitions. otherPages are those of values that are off the row.
type indexSize struct {
	seen                        bool
	pages, otherPages           int64
	density, fragmentation, row sql.Null[float64]
	ghosts                      sql.Null[int64]
}

func pointer[T any](v sql.Null[T]) *T {
	if !v.Valid {
		return nil
	}
	return &v.V
}

func readSizes(ctx context.Context, conn *sql.Conn, object int64, index sql.NullInt64) (map[int]indexSize, error) {
	rows, err := conn.QueryContext(ctx, indexPhysicalStatsSQL, sql.Named("object", object), sql.Named("index", index))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sizes := make(map[int]indexSize)
	for rows.Next() {
		var id int
		var unit string
		var pages sql.NullInt64
		var density, fragmentation, row sql.Null[float64]
		var records, ghosts sql.Null[int64]
		if err := rows.Scan(&id, &unit, &pages, &density, &fragmentation, &records, &ghosts, &row); err != nil {
			return nil, err
		}
		s := sizes[id]
		if unit != "IN_ROW_DATA" {
			s.otherPages += pages.Int64
			sizes[id] = s
			continue
		}
		s.seen = s.seen || pages.Valid
		// Partitions weigh as much as they have pages.
		s.density = weigh(s.density, s.pages, density, pages.Int64)
		s.fragmentation = weigh(s.fragmentation, s.pages, fragmentation, pages.Int64)
		s.row = weigh(s.row, s.pages, row, pages.Int64)
		s.pages += pages.Int64
		s.ghosts.V, s.ghosts.Valid = s.ghosts.V+ghosts.V, ghosts.Valid
		sizes[id] = s
	}
	return sizes, rows.Err()
}

func weigh(a sql.Null[float64], pagesA int64, b sql.Null[float64], pagesB int64) sql.Null[float64] {
	if !a.Valid || pagesA+pagesB == 0 {
		return b
	}
	return sql.Null[float64]{V: (a.V*float64(pagesA) + b.V*float64(pagesB)) / float64(pagesA+pagesB), Valid: b.Valid}
}

// operation is a resumable operation and the index it is of.
type operation struct {
	ResumableOperation
	indexID int
	index   string
}

func readOperations(ctx context.Context, conn *sql.Conn, table string) ([]operation, error) {
	rows, err := conn.QueryContext(ctx, resumableOperationsSQL, sql.Named("table", table))
	var answer mssql.Error
	if errors.As(err, &answer) && answer.Number == 208 { // before SQL Server 2017
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for paused rebuilds: %w", err)
	}
	defer rows.Close()
	var list []operation
	for rows.Next() {
		var o operation
		var state int
		var paused sql.NullTime
		if err := rows.Scan(&o.indexID, &o.index, &state, &o.PercentComplete, &o.Started, &paused, &o.Minutes); err != nil {
			return nil, fmt.Errorf("look for paused rebuilds: %w", err)
		}
		o.State = map[int]string{0: "RUNNING", 1: "PAUSED"}[state]
		if paused.Valid {
			o.LastPaused = &paused.Time
		}
		list = append(list, o)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for paused rebuilds: %w", err)
	}
	return list, nil
}

// optional runs what only helps a person to decide: an answer of the server that
// is an error becomes a note, and the plan goes on without it. What this server
// does not have (error 208) is not worth one.
func (l *rebuildLook) optional(ctx context.Context, conn *sql.Conn, what string, fn func(context.Context, *sql.Conn) error) error {
	err := fn(ctx, conn)
	var answer mssql.Error
	if err == nil || !errors.As(err, &answer) {
		return err
	}
	if _, denied := sqlserver.Denied(err); denied {
		l.report.Notes = append(l.report.Notes, fmt.Sprintf("%s: not shown to this login; GRANT VIEW DATABASE STATE TO %s;", what, mssql.TSQLQuoter{}.ID(l.user)))
		return nil
	}
	if answer.Number != 208 {
		l.report.Notes = append(l.report.Notes, fmt.Sprintf("%s: error %d, %s", what, answer.Number, answer.Message))
	}
	return nil
}
