package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"azsqloutbox/worker"
)

// Check implements worker.Keeper. It reads the table's columns and indexes
// afresh, then runs every statement of a worker with nothing to do, in a
// transaction that is rolled back: the server checks rights and compiles plans
// all the same.
func (s *Store) Check(ctx context.Context) error {
	op := fmt.Sprintf("check %s", s.names)
	return s.retrying(ctx, op, func(ctx context.Context) error {
		s.ready.Store(nil)
		if err := s.session(ctx, s.checkTable); err != nil {
			return err
		}
		err := s.transact(ctx, s.rehearse)
		if errors.Is(err, errNothingToCommit) {
			return nil
		}
		return err
	})
}

func (s *Store) checkTable(ctx context.Context, conn *sql.Conn, st *statements) error {
	if err := st.table.problem(); err != nil {
		return err
	}
	if err := s.checkDatabase(ctx, conn); err != nil {
		return err
	}
	if err := s.checkIndexes(ctx, conn); err != nil {
		return err
	}
	return s.checkStatusValues(ctx, conn, st)
}

// problem says which column the statements cannot work with, whatever its
// values.
func (t *table) problem() error {
	for _, need := range []struct {
		name string
		fits func(column) bool
		want string
	}{
		{"id", column.isInteger, "a whole number"},
		{"status", column.isInteger, "a whole number"},
		{"retry_count", column.isInteger, "a whole number"},
		{"event_type", func(c column) bool { return c.isText() || c.isInteger() }, "VARCHAR, NVARCHAR or a whole number"},
		{"aggregate_type", column.isText, "VARCHAR or NVARCHAR"},
		{"aggregate_id", column.isText, "VARCHAR or NVARCHAR"},
		{"payload", column.isText, "VARCHAR or NVARCHAR"},
		{"headers", column.isText, "VARCHAR or NVARCHAR"},
		{"last_error", column.isText, "VARCHAR or NVARCHAR"},
		{"created_at", func(c column) bool { return c.kind == "datetime2" || c.kind == "datetime" }, "DATETIME2"},
		{"retry_at", func(c column) bool { return c.kind == "datetime2" || c.kind == "datetime" }, "DATETIME2"},
		// The fence compares it with the receipt's claimed_at. DATETIME rounds to
		// 1/300 s: no row would ever match its receipt.
		{"processed_at", func(c column) bool { return c.kind == "datetime2" && c.scale >= 3 }, "DATETIME2(3) or finer"},
	} {
		c := t.columns[need.name]
		if !need.fits(c) {
			return fmt.Errorf("the column %s is %s, must be %s: %w", need.name, c.declaration(), need.want, worker.ErrPermanent)
		}
	}
	if t.columns["event_type"].nullable {
		// Nobody would ever ask for its rows.
		return fmt.Errorf("the column event_type may be NULL, and an event without a type would wait for ever: make it NOT NULL: %w", worker.ErrPermanent)
	}
	return nil
}

// Updateability is READ_ONLY on a secondary (sql-docs,
// databasepropertyex-transact-sql.md; no right needed). A login always sees its
// own database in sys.databases, there by its name and not by DB_ID() (sql-docs,
// sys-databases-transact-sql.md, on Azure SQL Database).
const databaseStateSQL = `-- outbox:DatabaseState
DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(@database, 'Updateability')) AS updateability,
       (SELECT d.compatibility_level FROM sys.databases AS d WHERE d.name = @database) AS compatibility_level;`

// openJSONLevel is where OPENJSON begins (sql-docs, openjson-transact-sql.md).
// Below it the server says 208, as of a table.
const openJSONLevel = 130

// An engine that is not SQL Server may report a low level and know OPENJSON all
// the same, so the level explains a failure and does not make one.
const openJSONSQL = `-- outbox:OpenJSON
DECLARE @json NVARCHAR(10) = N'[1]';
SELECT COUNT(*) FROM OPENJSON(@json) AS j;`

func takesOpenJSON(ctx context.Context, conn *sql.Conn) bool {
	var n int
	return conn.QueryRowContext(ctx, openJSONSQL).Scan(&n) == nil
}

func (s *Store) checkDatabase(ctx context.Context, conn *sql.Conn) error {
	var updateability sql.NullString
	var level sql.NullInt64
	if err := conn.QueryRowContext(ctx, databaseStateSQL).Scan(&updateability, &level); err != nil {
		return fmt.Errorf("ask for the state of the database: %w", err)
	}
	if level.Valid && level.Int64 < openJSONLevel && !takesOpenJSON(ctx, conn) {
		return fmt.Errorf("the database has compatibility level %d and OPENJSON needs %d: ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = %d or higher: %w",
			level.Int64, openJSONLevel, openJSONLevel, worker.ErrPermanent)
	}
	if updateability.String == "READ_ONLY" {
		return &Error{
			Number: 3906, Class: Reconnect, Advice: knownErrors[3906].advice,
			err: errors.New("the database is READ_ONLY"),
		}
	}
	return nil
}

const tableIndexesSQL = `-- outbox:TableIndexes
SELECT i.name, i.is_disabled, i.has_filter, ISNULL(i.filter_definition, N'') AS filter_text, c.name AS column_name
FROM   sys.indexes AS i
INNER JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
INNER JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE  i.object_id = OBJECT_ID(@table)
AND    ic.key_ordinal > 0
ORDER BY i.name, ic.key_ordinal;`

// index is an index with its key columns in order.
type index struct {
	name     string
	disabled bool
	filtered bool
	// filter is empty also where the login may not see it: definitions need
	// VIEW DEFINITION (sql-docs, metadata-visibility-configuration.md).
	filter string
	key    []string
}

// problem says what keeps the statements from using the index, and the error
// that they would meet. A filter that cannot be seen is left to the rehearsal.
func (i index) problem(filter, first string) (number int32, problem string) {
	switch {
	case i.disabled:
		return 315, "is disabled"
	case !i.filtered || i.filter != "" && normalFilter(i.filter) != normalFilter(filter):
		return 8622, fmt.Sprintf("is filtered by %q, must be by %q", i.filter, filter)
	case i.key[0] != first:
		return 8622, fmt.Sprintf("has %s as its first key column, must have %s", i.key[0], first)
	}
	return 0, ""
}

func (s *Store) checkIndexes(ctx context.Context, conn *sql.Conn) error {
	indexes, err := readIndexes(ctx, conn, s.names)
	if err != nil {
		return err
	}
	for _, need := range []struct{ name, filter, first string }{
		{s.names.ClaimIndex, "([status]=(0))", "event_type"},
		{s.names.RetryIndex, "([status]=(2))", "retry_at"},
	} {
		number, problem := int32(308), "is not there"
		if i, ok := indexes[need.name]; ok {
			number, problem = i.problem(need.filter, need.first)
		}
		if problem == "" {
			continue
		}
		return &Error{
			Number: number, Class: IndexUnusable, Advice: knownErrors[number].advice,
			err: fmt.Errorf("the index %s %s", need.name, problem),
		}
	}
	return nil
}

func readIndexes(ctx context.Context, q querier, names Names) (map[string]index, error) {
	rows, err := q.QueryContext(ctx, tableIndexesSQL, sql.Named("table", names.Events()))
	if err != nil {
		return nil, fmt.Errorf("read the indexes: %w", err)
	}
	defer rows.Close()
	indexes := make(map[string]index)
	for rows.Next() {
		var name sql.NullString
		var i index
		var key string
		if err := rows.Scan(&name, &i.disabled, &i.filtered, &i.filter, &key); err != nil {
			return nil, fmt.Errorf("read the indexes: %w", err)
		}
		i.name = name.String
		if seen, ok := indexes[i.name]; ok {
			i = seen
		}
		i.key = append(i.key, strings.ToLower(key))
		indexes[i.name] = i
	}
	return indexes, rows.Err()
}

// normalFilter makes filters comparable: brackets, parentheses and blanks are
// how the server happens to store them.
func normalFilter(filter string) string {
	return strings.ToLower(strings.NewReplacer("[", "", "]", "", "(", "", ")", "", " ", "").Replace(filter))
}

// A trusted CHECK on a NOT NULL column proves every value. Without it only
// reading the table does, which costs what the table holds. A definition that
// the login may not see is NULL, and proves nothing.
const statusChecksSQL = `-- outbox:StatusChecks
SELECT ISNULL(k.definition, N'') AS definition
FROM   sys.check_constraints AS k
WHERE  k.parent_object_id = OBJECT_ID(@table)
AND    k.is_disabled = 0
AND    k.is_not_trusted = 0;`

const tableRowsSQL = `-- outbox:TableRows
SELECT ISNULL(SUM(p.rows), 0) AS total
FROM   sys.partitions AS p
WHERE  p.object_id = OBJECT_ID(@table)
AND    p.index_id IN (0, 1);`

const countUnknownStatusSQL = `-- outbox:CountUnknownStatus
SELECT COUNT(*) AS unknown
FROM   (SELECT TOP (@cap) e.id
        FROM   {events} AS e
        WHERE  e.status IS NULL
        OR     e.status NOT IN (0, 1, 2)) AS capped;`

// statusScanRows is the size up to which a start may read the whole table.
const statusScanRows = 1_000_000

func (s *Store) checkStatusValues(ctx context.Context, conn *sql.Conn, st *statements) error {
	proven, err := statusProven(ctx, conn, s.names)
	if err != nil {
		return err
	}
	if proven && !st.table.columns["status"].nullable {
		return nil
	}
	var total int64
	row := conn.QueryRowContext(ctx, tableRowsSQL, sql.Named("table", s.names.Events()))
	if err := row.Scan(&total); err != nil {
		return fmt.Errorf("ask for the size of the table: %w", err)
	}
	if total > statusScanRows {
		s.log.Warn("status has no trusted CHECK on a NOT NULL column; its values were not counted because the table is large: look for others than 0, 1 and 2 when it is quiet",
			zap.Int64("rows", total))
		return nil
	}
	unknown, err := countUnknownStatus(ctx, conn, s.names)
	if err != nil {
		return err
	}
	if unknown > 0 {
		return fmt.Errorf("%d rows have a status that is NULL or none of 0, 1, 2 (counted to %d at most): %w", unknown, unknownStatusCap, worker.ErrPermanent)
	}
	return nil
}

// statusProven says whether a constraint lets nothing but 0, 1 and 2 in. The
// server stores IN (0, 1, 2) as a chain of OR.
func statusProven(ctx context.Context, conn *sql.Conn, names Names) (bool, error) {
	rows, err := conn.QueryContext(ctx, statusChecksSQL, sql.Named("table", names.Events()))
	if err != nil {
		return false, fmt.Errorf("look for a check of status: %w", err)
	}
	defer rows.Close()
	proven := false
	for rows.Next() {
		var definition string
		if err := rows.Scan(&definition); err != nil {
			return false, fmt.Errorf("look for a check of status: %w", err)
		}
		proven = proven || provesStatus(definition)
	}
	return proven, rows.Err()
}

func provesStatus(definition string) bool {
	text := normalFilter(definition)
	if text == "statusin0,1,2" {
		return true
	}
	for alternative := range strings.SplitSeq(text, "or") {
		switch alternative {
		case "status=0", "status=1", "status=2":
		default:
			return false
		}
	}
	return true
}

const unknownStatusCap = 10_000

func countUnknownStatus(ctx context.Context, conn *sql.Conn, names Names) (int64, error) {
	var unknown int64
	row := conn.QueryRowContext(ctx, names.renderer(nil).Replace(countUnknownStatusSQL), sql.Named("cap", unknownStatusCap))
	if err := row.Scan(&unknown); err != nil {
		return 0, fmt.Errorf("count unknown status values: %w", err)
	}
	return unknown, nil
}

// rehearse runs the worker's statements with nothing to do and rolls back.
func (s *Store) rehearse(ctx context.Context, tx *sql.Tx, st *statements) error {
	var (
		none     = uuid.Nil.String()
		anyTypes = stringsJSON([]string{st.anyType()})
		noType   = sql.Named("event_type", textParam(st.anyType()))
		noIDs    = sql.Named("ids", textParam("[]"))
		theClaim = sql.Named("claim_id", textParam(none))
	)
	beat, err := s.heartbeatArgs(worker.Heartbeat{})
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name, text string
		args       []any
	}{
		{"claim", st.claimEvents, []any{sql.Named("batch", 1), sql.Named("max_bytes", 0), noType, sql.Named("from", 0)}},
		{"flip", st.flipClaim, []any{noIDs, theClaim, sql.Named("owner", textParam(s.cfg.Owner)), noType, sql.Named("lease_ms", s.cfg.Lease.Milliseconds())}},
		{"look for its own claim", st.findClaim, []any{theClaim}},
		{"probe", st.pending, []any{sql.Named("types", anyTypes)}},
		{"look for pending event types", st.discoverPending, []any{sql.Named("limit", 0)}},
		{"count the backlog", st.backlogTypes, []any{sql.Named("types", anyTypes), sql.Named("cap", 1)}},
		{"settle what was sent", st.settleSent, []any{sql.Named("claim_ids", textParam(`["`+none+`"]`))}},
		{"settle", st.settle, []any{theClaim, sql.Named("returned", textParam("[]")), sql.Named("failed", textParam("[]"))}},
		{"look for overdue claims", st.overdueClaims, []any{sql.Named("skip", 0), sql.Named("limit", 1)}},
		{"reap", st.reapClaim, []any{theClaim, noIDs, sql.Named("max_attempts", s.cfg.MaxAttempts)}},
		{"bring back due events", st.retryDue, []any{sql.Named("batch", 0)}},
		{"heartbeat", st.heartbeat, beat},
	} {
		rows, err := tx.QueryContext(ctx, step.text, step.args...)
		if err == nil {
			err = errors.Join(drain(rows), rows.Close())
		}
		if err != nil {
			return fmt.Errorf("rehearse %s: %w", step.name, err)
		}
	}
	return errNothingToCommit
}

// anyType is a key that the event type column can be asked for.
func (st *statements) anyType() string {
	if st.table.columns["event_type"].isInteger() {
		return "0"
	}
	return ""
}
