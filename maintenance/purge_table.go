package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/maintenance/sizing"
)

// The columns, by base type (sql-docs, sys-columns-transact-sql.md), and whether
// an index begins with the column that a walk in its order can use: rows of a
// filtered one are not all there are.
const purgeColumnsSQL = `SELECT /* outbox:PurgeColumns */ c.name,
       t.name AS type_name,
       c.max_length,
       c.scale,
       c.is_computed,
       (SELECT COUNT(*)
        FROM   sys.index_columns AS k
        INNER JOIN sys.indexes AS i ON i.object_id = k.object_id AND i.index_id = k.index_id
        WHERE  k.object_id = c.object_id
        AND    k.column_id = c.column_id
        AND    k.key_ordinal = 1
        AND    i.type IN (1, 2)
        AND    i.has_filter = 0
        AND    i.is_disabled = 0) AS leads
FROM   sys.columns AS c
INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id
WHERE  c.object_id = OBJECT_ID(@table);`

// The catalog's count costs nothing, is approximate, and needs no right but one
// on the table (sql-docs, sys-partitions-transact-sql.md).
const purgeTableRowsSQL = `SELECT /* outbox:PurgeTableRows */ ISNULL(SUM(p.rows), 0) AS table_rows
FROM   sys.partitions AS p
WHERE  p.object_id = OBJECT_ID(@table)
AND    p.index_id IN (0, 1);`

// purgeTable is what the statements of a purge depend on.
type purgeTable struct{ columns []purgeColumn }

type purgeColumn struct {
	name, kind      string
	bytes, scale    int
	computed, leads bool
}

func (p Purge) readTable(ctx context.Context, conn *sql.Conn) (purgeTable, error) {
	var t purgeTable
	rows, err := conn.QueryContext(ctx, purgeColumnsSQL, sql.Named("table", p.Events()))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		var c purgeColumn
		var leads int
		if err := rows.Scan(&c.name, &c.kind, &c.bytes, &c.scale, &c.computed, &leads); err != nil {
			return t, err
		}
		c.leads, c.kind = leads > 0, strings.ToLower(c.kind)
		t.columns = append(t.columns, c)
	}
	return t, rows.Err()
}

func (t purgeTable) column(name string) (purgeColumn, bool) {
	i := slices.IndexFunc(t.columns, func(c purgeColumn) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return purgeColumn{}, false
	}
	return t.columns[i], true
}

// refuse says why a table cannot be purged; nil where it can.
func (p Purge) refuse(t purgeTable) error {
	refusal := &Refusal{Task: "purge of " + p.Names.String()}
	if len(t.columns) == 0 {
		refusal.Found = fmt.Sprintf("the table %s is not there, or this login has no right on it", p.Events())
		refusal.Remedy = "check --schema and --table, or GRANT SELECT, DELETE on it"
		return refusal
	}
	for _, name := range []string{"id", "status", "created_at", "processed_at"} {
		if _, ok := t.column(name); !ok {
			refusal.Found = fmt.Sprintf("%s has no column %s", p.Events(), name)
			refusal.Remedy = "outboxctl schema check says what is missing"
			return refusal
		}
	}
	id, _ := t.column("id")
	if _, _, ok := idRange(id.kind); !ok {
		refusal.Found = "its id is " + id.kind + ", which is no integer"
		refusal.Remedy = "outboxctl schema check says what the table must be"
		return refusal
	}
	if !id.leads {
		refusal.Found = "no index of it begins with id, so that every batch would read the whole table"
		refusal.Remedy = "make id the primary key, as scripts/001_outbox.sql has it"
		return refusal
	}
	// What is coarser rounds a claim's time: rows of an open receipt would look
	// older than the receipt.
	if at, _ := t.column("processed_at"); at.kind != "datetime2" && at.kind != "datetimeoffset" || at.scale < 3 {
		refusal.Found = fmt.Sprintf("its processed_at is %s(%d): rows of an open claim cannot be told from older ones", at.kind, at.scale)
		refusal.Remedy = "make it DATETIME2(3); outboxctl schema check says what else is wrong"
		return refusal
	}
	return nil
}

func (t purgeTable) idType() string {
	id, _ := t.column("id")
	return strings.ToUpper(id.kind)
}

func (t purgeTable) idRange() (lowest, highest int64) {
	id, _ := t.column("id")
	lowest, highest, _ = idRange(id.kind)
	return lowest, highest
}

// fixedKinds are the types of which every value takes max_length bytes of the
// row, NULL as well.
var fixedKinds = []string{
	"bigint", "int", "smallint", "tinyint", "decimal", "numeric", "money", "smallmoney", "float", "real",
	"date", "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset",
	"char", "nchar", "binary", "uniqueidentifier", "timestamp",
}

// textBytes is the expression for what a row takes in the columns whose length
// varies.
func (t purgeTable) textBytes() string {
	var parts []string
	for _, c := range t.columns {
		if !c.computed && c.kind != "bit" && !slices.Contains(fixedKinds, c.kind) {
			parts = append(parts, "ISNULL(CAST(DATALENGTH(e."+mssql.TSQLQuoter{}.ID(c.name)+") AS BIGINT), 0)")
		}
	}
	if len(parts) == 0 {
		return "CAST(0 AS BIGINT)"
	}
	return strings.Join(parts, " + ")
}

// rowBytes is what else of a page a row takes, its entry of 2 bytes in the slot
// array with it.
func (t purgeTable) rowBytes() int64 {
	var r sizing.Row
	bits := 0
	for _, c := range t.columns {
		switch {
		case c.computed:
			continue
		case c.kind == "bit":
			bits++
		case slices.Contains(fixedKinds, c.kind):
			r.FixedBytes += c.bytes
		default:
			r.VariableColumns++
		}
		r.Columns++
	}
	r.FixedBytes += (bits + 7) / 8
	return int64(r.Bytes()) + 2
}
