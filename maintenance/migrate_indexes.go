package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"
)

// Everything that CREATE INDEX takes and the catalog keeps (sql-docs,
// create-index-transact-sql.md; sys-indexes-, sys-index-columns-,
// sys-data-spaces-, sys-stats- and sys-partitions-transact-sql.md). ONLINE,
// SORT_IN_TEMPDB and MAXDOP are not kept: they say how an index is made.
const migrateIndexesSQL = `SELECT /* outbox:MigrateIndexes */ i.index_id, i.name, i.type, i.type_desc, i.is_unique, i.is_primary_key, i.is_unique_constraint, i.ignore_dup_key,
       i.fill_factor, i.is_padded, i.is_disabled, i.is_hypothetical, i.allow_row_locks, i.allow_page_locks,
       i.has_filter, ISNULL(i.filter_definition, N'') AS filter_text, i.optimize_for_sequential_key,
       ISNULL(d.name, N'') AS data_space, ISNULL(d.type, N'') AS data_space_type,
       ISNULL(s.no_recompute, 0) AS no_recompute,
       ISNULL(p.data_compression_desc, N'NONE') AS data_compression,
       c.name AS column_name, ic.key_ordinal, ic.is_descending_key, ic.is_included_column
FROM   sys.indexes AS i
INNER JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
INNER JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
LEFT JOIN sys.data_spaces AS d ON d.data_space_id = i.data_space_id
LEFT JOIN sys.stats AS s ON s.object_id = i.object_id AND s.stats_id = i.index_id
LEFT JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id AND p.partition_number = 1
WHERE  i.object_id = OBJECT_ID(@table)
ORDER BY i.index_id, ic.key_ordinal, ic.index_column_id;`

// tableIndex is one index of the table.
type tableIndex struct {
	id                  int
	name, kind          string // kind is type_desc
	typ                 int
	unique              bool
	primaryKey          bool
	uniqueConstraint    bool
	ignoreDupKey        bool
	fillFactor          int
	padded              bool
	disabled            bool
	hypothetical        bool
	rowLocks, pageLocks bool
	filtered            bool
	filter              string
	sequential          bool
	dataSpace           string
	dataSpaceType       string
	noRecompute         bool
	compression         string
	keys                []indexKey
	include             []string
}

type indexKey struct {
	column     string
	descending bool
}

const (
	clusteredRowstore    = 1
	nonclusteredRowstore = 2
	partitionScheme      = "PS" // sys.data_spaces.type
)

func (m Migration) readIndexes(ctx context.Context, q querier) ([]*tableIndex, error) {
	rows, err := q.QueryContext(ctx, migrateIndexesSQL, sql.Named("table", m.Events()))
	if err != nil {
		return nil, fmt.Errorf("read the indexes of %s: %w", m.Names, err)
	}
	defer rows.Close()
	var list []*tableIndex
	for rows.Next() {
		var i tableIndex
		var column string
		var ordinal int
		var descending, included bool
		if err := rows.Scan(&i.id, &i.name, &i.typ, &i.kind, &i.unique, &i.primaryKey, &i.uniqueConstraint, &i.ignoreDupKey,
			&i.fillFactor, &i.padded, &i.disabled, &i.hypothetical, &i.rowLocks, &i.pageLocks,
			&i.filtered, &i.filter, &i.sequential, &i.dataSpace, &i.dataSpaceType, &i.noRecompute, &i.compression,
			&column, &ordinal, &descending, &included); err != nil {
			return nil, fmt.Errorf("read the indexes of %s: %w", m.Names, err)
		}
		i.dataSpaceType = strings.TrimSpace(i.dataSpaceType)
		if len(list) == 0 || list[len(list)-1].id != i.id {
			list = append(list, &i)
		}
		index := list[len(list)-1]
		switch {
		case included:
			index.include = append(index.include, column)
		case ordinal > 0:
			index.keys = append(index.keys, indexKey{column, descending})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the indexes of %s: %w", m.Names, err)
	}
	return list, nil
}

// holds says whether ALTER COLUMN would meet the index: the column is in its
// key, among the included ones, or in its filter.
func (i *tableIndex) holds(column string) bool {
	return i.inKey(column) || i.includes(column) || mentions(i.filter, column)
}

func (i *tableIndex) inKey(column string) bool {
	for _, k := range i.keys {
		if strings.EqualFold(k.column, column) {
			return true
		}
	}
	return false
}

func (i *tableIndex) includes(column string) bool {
	for _, c := range i.include {
		if strings.EqualFold(c, column) {
			return true
		}
	}
	return false
}

// mentions says whether a definition as the catalog keeps it, with every name in
// brackets, names the column.
func mentions(definition, column string) bool {
	return strings.Contains(strings.ToLower(definition), "["+strings.ToLower(column)+"]")
}

// how is what CREATE INDEX is told beyond what the catalog keeps.
type how struct {
	online, dropExisting bool
	without              string // a column that is left out of INCLUDE
}

// create is the statement that makes the index. Options that are as the server
// has them by default are left out.
func (i *tableIndex) create(table string, h how) string {
	var b strings.Builder
	b.WriteString("CREATE ")
	if i.unique {
		b.WriteString("UNIQUE ")
	}
	fmt.Fprintf(&b, "NONCLUSTERED INDEX %s ON %s (", quoted(i.name), table)
	for n, k := range i.keys {
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(k.column))
		if k.descending {
			b.WriteString(" DESC")
		}
	}
	b.WriteString(")")
	var include []string
	for _, c := range i.include {
		if !strings.EqualFold(c, h.without) {
			include = append(include, quoted(c))
		}
	}
	if len(include) > 0 {
		b.WriteString(" INCLUDE (" + strings.Join(include, ", ") + ")")
	}
	if i.filtered {
		b.WriteString(" WHERE " + i.filter)
	}
	if options := i.options(h); len(options) > 0 {
		b.WriteString(" WITH (" + strings.Join(options, ", ") + ")")
	}
	if i.dataSpace != "" {
		b.WriteString(" ON " + quoted(i.dataSpace))
	}
	return b.String() + ";"
}

func (i *tableIndex) options(h how) (list []string) {
	for _, o := range []struct {
		text string
		set  bool
	}{
		{fmt.Sprintf("FILLFACTOR = %d", i.fillFactor), i.fillFactor > 0},
		{"PAD_INDEX = ON", i.padded},
		{"IGNORE_DUP_KEY = ON", i.ignoreDupKey},
		{"STATISTICS_NORECOMPUTE = ON", i.noRecompute},
		{"ALLOW_ROW_LOCKS = OFF", !i.rowLocks},
		{"ALLOW_PAGE_LOCKS = OFF", !i.pageLocks},
		{"OPTIMIZE_FOR_SEQUENTIAL_KEY = ON", i.sequential},
		{"DATA_COMPRESSION = " + i.compression, i.compression != "NONE"},
		{"DROP_EXISTING = ON", h.dropExisting},
		{"ONLINE = ON", h.online},
	} {
		if o.set {
			list = append(list, o.text)
		}
	}
	return list
}

func (i *tableIndex) drop(table string) string {
	return "DROP INDEX " + quoted(i.name) + " ON " + table + ";"
}

func (i *tableIndex) disable(table string) string {
	return "ALTER INDEX " + quoted(i.name) + " ON " + table + " DISABLE;"
}

// definition is what two indexes have in common when they are the same.
func (i *tableIndex) definition(table string) string {
	text := i.create(table, how{})
	if i.disabled {
		text += " " + i.disable(table)
	}
	return text
}

// blocker says why an index that holds the column cannot be taken away and made
// again by this task.
func (i *tableIndex) blocker(column string) (b MigrationBlocker, blocks bool) {
	name := i.name
	switch {
	case i.primaryKey:
		return MigrationBlocker{"primary key", name, "has the column in its key", "this column cannot be migrated while it is in the primary key"}, true
	case i.uniqueConstraint:
		return MigrationBlocker{"unique constraint", name, "has the column in its key", "ALTER TABLE … DROP CONSTRAINT " + quoted(name) + " first, and add it again afterwards"}, true
	case i.typ == clusteredRowstore:
		return MigrationBlocker{"clustered index", name, "has the column in its key", "this column cannot be migrated while the table is clustered on it"}, true
	case i.hypothetical:
		return MigrationBlocker{"hypothetical index", name, "was left behind by a tuning tool and holds the column", "DROP INDEX " + quoted(name)}, true
	case i.typ != nonclusteredRowstore:
		return MigrationBlocker{"index", name, "is " + i.kind + " and holds the column", "drop it first, and create it again afterwards"}, true
	case i.dataSpaceType == partitionScheme:
		return MigrationBlocker{"partitioned index", name, "is partitioned and holds the column", "drop it first, and create it again afterwards"}, true
	case i.filtered && i.filter == "":
		return MigrationBlocker{"index", name, "has a filter that this login may not see, so that it could not be made again", "GRANT VIEW DEFINITION on the table"}, true
	case mentions(i.filter, column):
		// N'…' there would convert the column, which a filter may not (sql-docs,
		// create-filtered-indexes.md).
		return MigrationBlocker{"filtered index", name, "compares the column in its filter: " + i.filter, "drop it first, and create it again afterwards with a filter for VARCHAR"}, true
	}
	return MigrationBlocker{}, false
}

// A default is dropped and created again in the transaction of GuardLock only:
// between the two, an insert that relies on it would fail or write NULL.
const migrateDefaultSQL = `SELECT /* outbox:MigrateDefault */ d.name, ISNULL(d.definition, N'') AS definition
FROM   sys.default_constraints AS d
WHERE  d.parent_object_id = OBJECT_ID(@table)
AND    d.parent_column_id = @column_id;`

// columnDefault is the DEFAULT of the column.
type columnDefault struct{ name, definition string }

func (m Migration) readDefault(ctx context.Context, q querier, c *migrationColumn) (*columnDefault, error) {
	var d columnDefault
	err := q.QueryRowContext(ctx, migrateDefaultSQL, sql.Named("table", m.Events()), sql.Named("column_id", c.id)).Scan(&d.name, &d.definition)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the default of %s.%s: %w", m.Names, m.Column, err)
	}
	return &d, nil
}

func (d *columnDefault) drop(table string) string {
	return "ALTER TABLE " + table + " DROP CONSTRAINT " + quoted(d.name) + ";"
}

func (d *columnDefault) create(table, column string) string {
	return "ALTER TABLE " + table + " ADD CONSTRAINT " + quoted(d.name) + " DEFAULT " + d.definition + " FOR " + quoted(column) + ";"
}

func quoted(name string) string { return mssql.TSQLQuoter{}.ID(name) }
