package diagnose

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// catalog is the event table as the catalog views describe it. They show a table
// to whoever has any right on it (metadata-visibility-configuration.md).
type catalog struct {
	columns []columnDef
	indexes []indexDef
	// hidden: the login may not see filters (VIEW DEFINITION). Those of the claim
	// and retry indexes are then taken to be what the schema makes them.
	hidden bool
}

type columnDef struct {
	name, kind, collation string
	bytes                 int // -1 for MAX, two a character for NVARCHAR
}

// unicode: two bytes a character.
func (c columnDef) unicode() bool { return c.kind == "nvarchar" || c.kind == "nchar" }

func (c columnDef) variable() bool {
	return c.kind == "varchar" || c.kind == "nvarchar" || c.kind == "varbinary" || c.bytes < 0
}

// declaration is the column's type as T-SQL writes it.
func (c columnDef) declaration() string {
	kind := strings.ToUpper(c.kind)
	switch {
	case c.collation == "":
		return kind
	case c.bytes < 0:
		return kind + "(MAX)"
	case c.unicode():
		return fmt.Sprintf("%s(%d)", kind, c.bytes/2)
	default:
		return fmt.Sprintf("%s(%d)", kind, c.bytes)
	}
}

func (c catalog) column(name string) (columnDef, bool) {
	i := slices.IndexFunc(c.columns, func(d columnDef) bool { return strings.EqualFold(d.name, name) })
	if i < 0 {
		return columnDef{}, false
	}
	return c.columns[i], true
}

// indexDef is a row of sys.indexes with its columns.
type indexDef struct {
	id                 int
	name               string
	clustered, unique  bool
	disabled, filtered bool
	filter             string // empty where the login may not see it
	fillFactor         int    // 0 is 100
	sequentialKey      bool   // OPTIMIZE_FOR_SEQUENTIAL_KEY
	keys, included     []string
	rows               int64 // sys.partitions, approximate
}

// has says whether the index holds the column, as key or included; the table itself
// holds all of them.
func (d indexDef) has(column string) bool {
	same := func(c string) bool { return strings.EqualFold(c, column) }
	return d.id <= 1 || slices.ContainsFunc(d.keys, same) || slices.ContainsFunc(d.included, same)
}

func (d indexDef) keyed(column string) bool {
	return slices.ContainsFunc(d.keys, func(c string) bool { return strings.EqualFold(c, column) })
}

// onStatus is the literal that the filter compares status with, empty for other
// filters.
func (d indexDef) onStatus() string {
	if !d.filtered {
		return ""
	}
	text := strings.ToLower(strings.NewReplacer("[", "", "]", "", "(", "", ")", "", " ", "").Replace(d.filter))
	if v, ok := strings.CutPrefix(text, "status="); ok {
		return v
	}
	return ""
}

// describe is the index as DDL writes it.
func (d indexDef) describe() string {
	text := "(" + strings.Join(d.keys, ", ") + ")"
	if len(d.included) > 0 {
		text += " INCLUDE (" + strings.Join(d.included, ", ") + ")"
	}
	if d.filtered {
		text += " WHERE " + cmp.Or(d.filter, "?")
	}
	return text
}

func (c catalog) find(name string) (indexDef, bool) {
	i := slices.IndexFunc(c.indexes, func(d indexDef) bool { return strings.EqualFold(d.name, name) })
	if i < 0 {
		return indexDef{}, false
	}
	return c.indexes[i], true
}

// base is the clustered index, or the heap.
func (c catalog) base() indexDef {
	if i := slices.IndexFunc(c.indexes, func(d indexDef) bool { return d.id <= 1 }); i >= 0 {
		return c.indexes[i]
	}
	return indexDef{}
}

// name is one of the names that sqlserver.Names renders, unquoted.
func (s *source) name(placeholder string) string {
	return unquote(s.names.Replacer().Replace(placeholder))
}

func (s *source) claimIndex() string { return s.name("{claim_index}") }

// assume fills in the filters that the login may not see.
func (c *catalog) assume(claimIndex, retryIndex string) {
	for i := range c.indexes {
		d := &c.indexes[i]
		if !d.filtered || d.filter != "" {
			continue
		}
		c.hidden = true
		switch {
		case strings.EqualFold(d.name, claimIndex):
			d.filter = "([status]=(0))"
		case strings.EqualFold(d.name, retryIndex):
			d.filter = "([status]=(2))"
		}
	}
}

// sys-columns-transact-sql.md, sys-types-transact-sql.md.
const diagnoseColumnsSQL = `SELECT /* outbox:DiagnoseColumns */ c.name, t.name AS type_name, c.max_length, ISNULL(c.collation_name, N'') AS collation_name
FROM   sys.columns AS c
INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id
WHERE  c.object_id = OBJECT_ID(@table)
ORDER BY c.column_id;`

// sys-indexes-transact-sql.md (optimize_for_sequential_key since SQL Server
// 2019), sys-index-columns-transact-sql.md, sys-partitions-transact-sql.md.
const diagnoseIndexesSQL = `SELECT /* outbox:DiagnoseIndexes */ i.index_id,
       ISNULL(i.name, N'') AS name,
       CASE WHEN i.type = 1 THEN 1 ELSE 0 END AS is_clustered,
       i.is_unique,
       i.is_disabled,
       i.has_filter,
       ISNULL(i.filter_definition, N'') AS filter_definition,
       i.fill_factor,
       i.optimize_for_sequential_key,
       ISNULL(c.name, N'') AS column_name,
       ISNULL(ic.is_included_column, 0) AS is_included_column,
       (SELECT ISNULL(SUM(p.rows), 0) FROM sys.partitions AS p WHERE p.object_id = i.object_id AND p.index_id = i.index_id) AS total_rows
FROM   sys.indexes AS i
LEFT JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
LEFT JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE  i.object_id = OBJECT_ID(@table)
AND    i.is_hypothetical = 0
ORDER BY i.index_id, ic.is_included_column, ic.key_ordinal, ic.index_column_id;`

func (s *source) readCatalog(ctx context.Context) (catalog, error) {
	var c catalog
	err := s.each(ctx, "read the columns", diagnoseColumnsSQL, []any{s.table()}, func(rows *sql.Rows) error {
		var d columnDef
		if err := rows.Scan(&d.name, &d.kind, &d.bytes, &d.collation); err != nil {
			return err
		}
		d.kind = strings.ToLower(d.kind)
		c.columns = append(c.columns, d)
		return nil
	})
	if err == nil && len(c.columns) == 0 {
		return c, fmt.Errorf("%w: the table %s cannot be seen: it is not there, has another name (--schema, --table), or the login has no right on it", ErrNoTable, s.names.String())
	}
	if err != nil {
		return c, err
	}
	err = s.each(ctx, "read the indexes", diagnoseIndexesSQL, []any{s.table()}, func(rows *sql.Rows) error {
		var d indexDef
		var column string
		var included bool
		var sequential sql.NullBool
		if err := rows.Scan(&d.id, &d.name, &d.clustered, &d.unique, &d.disabled, &d.filtered, &d.filter,
			&d.fillFactor, &sequential, &column, &included, &d.rows); err != nil {
			return err
		}
		d.sequentialKey = sequential.Bool
		if n := len(c.indexes); n > 0 && c.indexes[n-1].id == d.id {
			c.indexes[n-1].add(column, included)
			return nil
		}
		d.add(column, included)
		c.indexes = append(c.indexes, d)
		return nil
	})
	c.assume(s.claimIndex(), s.name("{retry_index}"))
	return c, err
}

func (d *indexDef) add(column string, included bool) {
	switch {
	case column == "":
	case included:
		d.included = append(d.included, column)
	default:
		d.keys = append(d.keys, column)
	}
}

// ErrNoTable is in the error of a Run that found no event table.
var ErrNoTable = errors.New("no event table")
