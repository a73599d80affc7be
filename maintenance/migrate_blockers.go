package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"azsqloutbox/sqlserver"
)

// What the table itself is: sql-docs, sys-tables-transact-sql.md,
// sys-change-tracking-tables-transact-sql.md, serverproperty-transact-sql.md.
const migrateTableSQL = `SELECT /* outbox:MigrateTable */ CONVERT(INT, SERVERPROPERTY('EngineEdition')) AS edition, t.object_id,
       t.temporal_type, t.is_memory_optimized, t.is_replicated, t.is_merge_published, t.is_tracked_by_cdc,
       (SELECT COUNT(*) FROM sys.change_tracking_tables AS k WHERE k.object_id = t.object_id) AS tracked,
       (SELECT COUNT(*) FROM sys.columns AS c WHERE c.object_id = t.object_id AND c.system_type_id IN (34, 35, 99)) AS old_lobs,
       (SELECT COUNT(*) FROM sys.indexes AS i WHERE i.object_id = t.object_id AND i.type IN (5, 6)) AS columnstores,
       (SELECT COUNT(*)
        FROM   sys.indexes AS i
        INNER JOIN sys.data_spaces AS d ON d.data_space_id = i.data_space_id
        WHERE  i.object_id = t.object_id
        AND    i.index_id IN (0, 1)
        AND    d.type = 'PS') AS partitioned
FROM   sys.tables AS t
WHERE  t.object_id = OBJECT_ID(@table);`

// What ALTER COLUMN meets beside indexes, one row each. The page of ALTER TABLE
// lists them: CHECK and FOREIGN KEY constraints, statistics by CREATE STATISTICS,
// computed columns, full-text indexes, and by COLLATE what is schema-bound;
// partitions; a paused index operation is error 10637
// (sys-index-resumable-operations.md). Statistics that the optimizer made go by
// themselves. A definition that the login may not see is NULL and counts as one
// that names the column.
const migrateBlockersSQL = `SELECT /* outbox:MigrateBlockers */ N'check constraint' AS kind, k.name, k.definition
FROM   sys.check_constraints AS k
WHERE  k.parent_object_id = OBJECT_ID(@table)
UNION ALL
SELECT N'computed column', c.name, c.definition
FROM   sys.computed_columns AS c
WHERE  c.object_id = OBJECT_ID(@table)
UNION ALL
SELECT N'filtered statistics', s.name, s.filter_definition
FROM   sys.stats AS s
WHERE  s.object_id = OBJECT_ID(@table)
AND    s.user_created = 1
AND    s.has_filter = 1
UNION ALL
SELECT N'statistics', s.name, N'[' + @column + N']'
FROM   sys.stats AS s
INNER JOIN sys.stats_columns AS sc ON sc.object_id = s.object_id AND sc.stats_id = s.stats_id
WHERE  s.object_id = OBJECT_ID(@table)
AND    s.user_created = 1
AND    sc.column_id = @column_id
UNION ALL
SELECT N'foreign key', o.name, N'[' + @column + N']'
FROM   sys.foreign_key_columns AS f
INNER JOIN sys.objects AS o ON o.object_id = f.constraint_object_id
WHERE  (f.parent_object_id = OBJECT_ID(@table) AND f.parent_column_id = @column_id)
OR     (f.referenced_object_id = OBJECT_ID(@table) AND f.referenced_column_id = @column_id)
UNION ALL
SELECT N'full-text index', @column, N'[' + @column + N']'
FROM   sys.fulltext_index_columns AS f
WHERE  f.object_id = OBJECT_ID(@table)
AND    f.column_id = @column_id
UNION ALL
SELECT N'paused index operation', r.name, N'[' + @column + N']'
FROM   sys.index_resumable_operations AS r
WHERE  r.object_id = OBJECT_ID(@table);`

// Views, functions and policies that are bound to the column. The view needs
// more than the others: SELECT on it is db_owner's (sql-docs,
// sys-sql-expression-dependencies-transact-sql.md).
const migrateBoundSQL = `SELECT /* outbox:MigrateBound */ DISTINCT SCHEMA_NAME(o.schema_id) AS schema_name, o.name, o.type_desc
FROM   sys.sql_expression_dependencies AS d
INNER JOIN sys.objects AS o ON o.object_id = d.referencing_id
WHERE  d.referenced_id = OBJECT_ID(@table)
AND    d.referenced_minor_id = @column_id
AND    d.referencing_id <> d.referenced_id
AND    d.is_schema_bound_reference = 1
AND    o.type NOT IN ('C', 'D');`

// migrationTable is what the table is.
type migrationTable struct {
	edition                                        sqlserver.Edition
	objectID                                       int
	temporal                                       int
	inMemory, replicated, mergePublished           bool
	cdc                                            bool
	changeTracking, oldLOBs, columnstores, schemes int
}

func (m Migration) readTable(ctx context.Context, q querier) (t migrationTable, err error) {
	err = q.QueryRowContext(ctx, migrateTableSQL, sql.Named("table", m.Events())).
		Scan(&t.edition.Engine, &t.objectID, &t.temporal, &t.inMemory, &t.replicated, &t.mergePublished, &t.cdc, &t.changeTracking, &t.oldLOBs, &t.columnstores, &t.schemes)
	if err != nil {
		return t, fmt.Errorf("read what the table %s is: %w", m.Names, err)
	}
	return t, nil
}

// offline says why the change cannot be online; empty where it can (ALTER TABLE,
// WITH ONLINE as applies to altering a column).
func (t migrationTable) offline() string {
	switch {
	case !t.edition.Online():
		return "this edition of SQL Server has no online operations (Enterprise, Developer and all of Azure SQL have)"
	case t.changeTracking > 0:
		return "the table has change tracking"
	case t.mergePublished:
		return "the table is published for merge replication"
	case t.oldLOBs > 0:
		return "the table has columns of type TEXT, NTEXT or IMAGE"
	case t.columnstores > 0:
		return "the table has a columnstore index"
	}
	return ""
}

func (t migrationTable) blockers(m Migration, indexes []*tableIndex) (list []MigrationBlocker) {
	add := func(kind, problem, remedy string) {
		list = append(list, MigrationBlocker{Kind: kind, Name: m.Names.String(), Problem: problem, Remedy: remedy})
	}
	if t.temporal != 0 {
		add("temporal table", "keeps a history, which would be changed without a check", "set SYSTEM_VERSIONING = OFF first, and look at the history table too")
	}
	if t.inMemory {
		add("memory-optimized table", "is memory-optimized", "it has to be rebuilt by hand")
	}
	if t.replicated || t.mergePublished {
		add("replication", "is published, and the change would go to its subscribers without a check", "take the article out of the publication first")
	}
	if t.cdc {
		add("change data capture", "is captured: the change table keeps the old type", "disable the capture instance first, and enable it again afterwards")
	}
	if t.schemes > 0 {
		add("partitioned table", "is partitioned: the type of a column cannot be changed", "copy it into a table without partitions, or leave it as it is")
	}
	byID := false
	for _, i := range indexes {
		byID = byID || (i.typ == clusteredRowstore || i.typ == nonclusteredRowstore) && !i.filtered && !i.disabled && len(i.keys) > 0 && strings.EqualFold(i.keys[0].column, "id")
	}
	if !byID {
		add("no index on id", "has no index that begins with id: the check would read the whole table for each of its windows", "CREATE UNIQUE INDEX … (id)")
	}
	return list
}

// readBlockers looks for what a person has to take away before the ALTER.
func (m Migration) readBlockers(ctx context.Context, q querier, c *migrationColumn) (list []MigrationBlocker, err error) {
	rows, err := q.QueryContext(ctx, migrateBlockersSQL, sql.Named("table", m.Events()), sql.Named("column", m.Column), sql.Named("column_id", c.id))
	if err != nil {
		return nil, fmt.Errorf("look for what holds the column: %w", err)
	}
	defer rows.Close()
	seen := make(map[string]bool)
	for rows.Next() {
		var b MigrationBlocker
		var definition sql.NullString
		if err := rows.Scan(&b.Kind, &b.Name, &definition); err != nil {
			return nil, fmt.Errorf("look for what holds the column: %w", err)
		}
		if (definition.Valid && !mentions(definition.String, m.Column)) || seen[b.Name] {
			continue
		}
		seen[b.Name] = true
		b.Problem, b.Remedy = "uses the column", blockerRemedies[b.Kind](m, b.Name)
		if !definition.Valid {
			b.Problem, b.Remedy = "has a definition that this login may not see", "GRANT VIEW DEFINITION on the table"
		}
		list = append(list, b)
	}
	return list, rows.Err()
}

var blockerRemedies = map[string]func(Migration, string) string{
	"check constraint": func(m Migration, name string) string {
		return "ALTER TABLE " + m.Events() + " DROP CONSTRAINT " + quoted(name) + "; and add it again afterwards"
	},
	"computed column": func(m Migration, name string) string {
		return "ALTER TABLE " + m.Events() + " DROP COLUMN " + quoted(name) + "; and add it again afterwards"
	},
	"statistics":          dropStatistics,
	"filtered statistics": dropStatistics,
	"foreign key": func(m Migration, name string) string {
		return "ALTER TABLE … DROP CONSTRAINT " + quoted(name) + "; and add it again afterwards"
	},
	"full-text index": func(m Migration, _ string) string {
		return "ALTER FULLTEXT INDEX ON " + m.Events() + " DROP (" + quoted(m.Column) + "); and add it again afterwards"
	},
	"paused index operation": func(m Migration, name string) string {
		return "ALTER INDEX " + quoted(name) + " ON " + m.Events() + " RESUME, or ABORT"
	},
}

func dropStatistics(m Migration, name string) string {
	return "DROP STATISTICS " + m.Events() + "." + quoted(name) + "; and create them again afterwards"
}

// readBound looks for schema-bound views and functions.
func (m Migration) readBound(ctx context.Context, q querier, c *migrationColumn) (list []MigrationBlocker, err error) {
	rows, err := q.QueryContext(ctx, migrateBoundSQL, sql.Named("table", m.Events()), sql.Named("column_id", c.id))
	if err != nil {
		return nil, fmt.Errorf("look for schema-bound views: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var schema, name, kind string
		if err := rows.Scan(&schema, &name, &kind); err != nil {
			return nil, fmt.Errorf("look for schema-bound views: %w", err)
		}
		list = append(list, MigrationBlocker{
			Kind: "schema-bound " + strings.ToLower(strings.ReplaceAll(kind, "_", " ")), Name: schema + "." + name,
			Problem: "is bound to the column", Remedy: "drop it, or take WITH SCHEMABINDING away, first",
		})
	}
	return list, rows.Err()
}
