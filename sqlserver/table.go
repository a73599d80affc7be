package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	"azsqloutbox/worker"
)

// table is what the catalog says about the event table, as far as the
// statements depend on it.
type table struct {
	columns map[string]column
	// receiptType is the receipts' own event_type.
	receiptType column
}

// column is one row of sys.columns.
type column struct {
	name string
	// kind is the base type's name in lower case: varchar, bigint, …
	kind string
	// bytes is max_length: -1 for MAX, two a character for nvarchar.
	bytes     int
	precision int
	scale     int
	// collation is empty for what is no text.
	collation string
	nullable  bool
	identity  bool
}

// querier is a *sql.Conn or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// The catalog views show a table to whoever has any right on it (sql-docs,
// metadata-visibility-configuration.md). The join by system_type_id finds the
// base type of an alias type.
const tableColumnsSQL = `SELECT /* outbox:TableColumns */ c.name, t.name AS type_name, c.max_length, c.precision, c.scale,
       c.collation_name, c.is_nullable, c.is_identity
FROM   sys.columns AS c
INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id
WHERE  c.object_id = OBJECT_ID(@table);`

// readTable reads the columns of the event table. A table that is not there,
// or that the login has no right on, is error 208 as the server would say it.
func readTable(ctx context.Context, q querier, names Names) (*table, error) {
	columns, err := readColumns(ctx, q, names.Events())
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return nil, missingTable(names)
	}
	var missing []string
	for _, name := range neededColumns {
		if _, ok := columns[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, missingColumns(names.String(), missing)
	}
	return &table{columns: columns, receiptType: column{name: "event_type", kind: "varchar", bytes: 100}}, nil
}

// readReceiptType finds out what the receipts' event_type takes. A table that
// cannot be seen is left to the statement that needs it.
func (t *table) readReceiptType(ctx context.Context, q querier, names Names) error {
	columns, err := readColumns(ctx, q, names.Receipts())
	if c, ok := columns["event_type"]; ok {
		t.receiptType = c
	}
	return err
}

func readColumns(ctx context.Context, q querier, tableName string) (map[string]column, error) {
	rows, err := q.QueryContext(ctx, tableColumnsSQL, sql.Named("table", tableName))
	if err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", tableName, err)
	}
	columns := make(map[string]column)
	defer rows.Close()
	for rows.Next() {
		var c column
		var collation sql.NullString
		if err := rows.Scan(&c.name, &c.kind, &c.bytes, &c.precision, &c.scale, &collation, &c.nullable, &c.identity); err != nil {
			return nil, fmt.Errorf("read the columns of %s: %w", tableName, err)
		}
		c.name, c.kind, c.collation = strings.ToLower(c.name), strings.ToLower(c.kind), collation.String
		columns[c.name] = c
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", tableName, err)
	}
	return columns, nil
}

// neededColumns are the columns that the statements name.
var neededColumns = []string{
	"id", "aggregate_type", "aggregate_id", "event_type", "payload", "headers",
	"status", "created_at", "processed_at", "retry_at", "retry_count", "last_error",
}

// textColumns are those that a writer fills.
var textColumns = []string{"aggregate_type", "aggregate_id", "event_type", "payload", "headers"}

// same is true for the row of sys.columns that c was read from, as long as the
// column takes the same texts.
func (c column) same() string {
	collation := "c.collation_name IS NULL"
	if c.collation != "" {
		collation = "c.collation_name = N'" + c.collation + "'"
	}
	return fmt.Sprintf("c.name = N'%s' AND TYPE_NAME(c.system_type_id) = N'%s' AND c.max_length = %d AND %s",
		c.name, c.kind, c.bytes, collation)
}

// utf8 says whether the column's collation stores UTF-8. The driver does not
// know these collations and would decode their bytes by a Windows code page.
func (c column) utf8() bool {
	return strings.HasSuffix(strings.ToUpper(c.collation), "_UTF8")
}

// collate is the clause that gives an expression the column's collation.
func (c column) collate() string {
	if c.collation == "" {
		return ""
	}
	return " COLLATE " + c.collation
}

func (c column) isText() bool { return c.kind == "varchar" || c.kind == "char" || c.isUnicode() }

func (c column) isUnicode() bool { return c.kind == "nvarchar" || c.kind == "nchar" }

func (c column) isInteger() bool {
	return c.kind == "tinyint" || c.kind == "smallint" || c.kind == "int" || c.kind == "bigint"
}

// above is the lowest id that the cursor lets through, in the column's own
// range; some is false where there is none.
func (c column) above(after worker.Cursor) (from int64, some bool) {
	lowest, highest := c.span()
	switch {
	case !after.Set:
		return lowest, true
	case after.ID >= highest:
		return 0, false
	default:
		return max(lowest, after.ID+1), true
	}
}

// span is the range of a whole-number column.
func (c column) span() (lowest, highest int64) {
	switch c.kind {
	case "int":
		return math.MinInt32, math.MaxInt32
	case "smallint":
		return math.MinInt16, math.MaxInt16
	case "tinyint":
		return 0, math.MaxUint8
	}
	return math.MinInt64, math.MaxInt64
}

// next counts one up and stays where the type ends: an overflow would undo the
// whole settlement, each time it is tried.
func (c column) next() string {
	return fmt.Sprintf("ISNULL(TRY_CAST(e.%s + CAST(1 AS BIGINT) AS %s), e.%[1]s)", c.name, c.declaration())
}

// declaration is the column's type as T-SQL writes it, without the collation.
func (c column) declaration() string {
	kind := strings.ToUpper(c.kind)
	switch {
	case c.kind == "datetime2" || c.kind == "datetimeoffset" || c.kind == "time":
		return fmt.Sprintf("%s(%d)", kind, c.scale)
	case c.kind == "decimal" || c.kind == "numeric":
		return fmt.Sprintf("%s(%d, %d)", kind, c.precision, c.scale)
	case !c.isText():
		return kind
	case c.bytes < 0:
		return kind + "(MAX)"
	case c.isUnicode():
		return fmt.Sprintf("%s(%d)", kind, c.bytes/2)
	default:
		return fmt.Sprintf("%s(%d)", kind, c.bytes)
	}
}

// varying is the declaration without the padding of CHAR and NCHAR.
func (c column) varying() string {
	switch c.kind {
	case "char":
		c.kind = "varchar"
	case "nchar":
		c.kind = "nvarchar"
	}
	return c.declaration()
}

// shortText reads a text column that nobody migrates: bytes where the collation
// is UTF-8, else as the column is, which the driver decodes.
func (c column) shortText() string {
	if c.readsBytes() {
		return "CONVERT(" + c.longText() + ", e." + c.name + ")"
	}
	return "e." + c.name
}

// longText is the type that payload and headers are read as. A varchar in a
// UTF-8 collation gives the bytes that the message wants, without a conversion.
// Everything else goes by NVARCHAR(MAX), which says the same characters whatever
// the column becomes while the worker runs: migrate-varchar changes its type and
// collation under a living worker. VARBINARY(8000) would cut if such a column
// grew to MAX, so 8,000 bytes of a column that has fewer mean that it did.
func (c column) longText() string {
	switch {
	case !c.readsBytes():
		return "NVARCHAR(MAX)"
	case !c.readsCut():
		return "VARBINARY(MAX)"
	default:
		return "VARBINARY(8000)"
	}
}

// bytesRead is how much of a short column longText reads.
const bytesRead = 8000

// readsCut says whether the column is read as VARBINARY(8000), which is cheaper
// than a MAX type, and is shorter than that.
func (c column) readsCut() bool { return c.readsBytes() && c.bytes > 0 && c.bytes < bytesRead }

// readsBytes says whether the column's own bytes are UTF-8.
func (c column) readsBytes() bool { return c.utf8() && !c.isUnicode() }

func (t *table) renderings() []string {
	c := t.columns
	pairs := []string{
		"{id_t}", c["id"].declaration(),
		"{event_type_t}", c["event_type"].declaration(),
		"{event_type_varying_t}", c["event_type"].varying(),
		"{receipt_event_type_t}", t.receiptType.declaration(),
		"{last_error_t}", c["last_error"].declaration(),
		"{retry_count_next}", c["retry_count"].next(),
		"{retry_at_t}", c["retry_at"].declaration(),
		"{event_type}", c["event_type"].shortText(),
		"{aggregate_type}", c["aggregate_type"].shortText(),
		"{aggregate_id}", c["aggregate_id"].shortText(),
		"{payload_read_t}", c["payload"].longText(),
		"{headers_read_t}", c["headers"].longText(),
	}
	var same []string
	for _, name := range textColumns {
		pairs = append(pairs,
			"{"+name+"_collate}", c[name].collate(),
			"{"+name+"_misfit}", c[name].misfit())
		same = append(same, c[name].same())
	}
	return append(pairs, "{text_columns_same}", strings.Join(same, "\n                OR "))
}
