package maintenance

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// The guard of GuardTrigger: it refuses text that the column would lose or cut.
// It compares with the column as NVARCHAR, so that it lets everything pass once
// the column is VARCHAR. In a trigger XACT_ABORT is ON: THROW rolls back the
// application's transaction (sql-docs, set-xact-abort-transact-sql.md). UPDATE()
// lets the worker's flips pass without a look at the text.
//
// What it says about restoring is how a run that was killed between the drop of
// an index and its creation is mended by the next one: nothing else remembers.
const migrateGuardSQL = `/* outbox:VarcharGuard */
CREATE TRIGGER {trigger} ON {events} AFTER INSERT, UPDATE AS
{about}SET NOCOUNT ON;
IF NOT UPDATE({column}) RETURN;
IF EXISTS (SELECT /* outbox:VarcharGuard */ 1
           FROM   inserted AS e
           CROSS APPLY (SELECT e.{column} COLLATE {collation} AS coded,
                               CONVERT(NVARCHAR(MAX), e.{column}) COLLATE Latin1_General_100_BIN2 AS wide) AS k
           CROSS APPLY (SELECT CONVERT(VARCHAR(MAX), k.coded) AS narrow) AS n
           CROSS APPLY (SELECT CONVERT(NVARCHAR(MAX), n.narrow) COLLATE Latin1_General_100_BIN2 AS back) AS b
           WHERE  b.back <> k.wide
           OR     DATALENGTH(b.back) <> DATALENGTH(k.wide)
           OR     ({length} > 0 AND DATALENGTH(n.narrow) > {length}))
    THROW 50000, N'outbox: migrate-varchar is at work, and {column_name} would lose characters of this text or cut it as {type} COLLATE {collation}: the transaction is rolled back', 1;`

// A trigger belongs to the schema of its table, which is where DROP TRIGGER
// looks for it (sql-docs, sys-triggers-transact-sql.md).
const migrateGuardsSQL = `SELECT /* outbox:MigrateGuards */ t.name, t.is_disabled, ISNULL(s.definition, N'') AS definition
FROM   sys.triggers AS t
LEFT JOIN sys.sql_modules AS s ON s.object_id = t.object_id
WHERE  t.parent_id = OBJECT_ID(@table)
AND    CHARINDEX(@prefix, t.name) = 1;`

// GuardPrefix begins the name of the trigger that guards a migration. One that
// is there while no migration runs is what a killed one left; its next run puts
// back what the trigger's text remembers.
const GuardPrefix = "outbox_varchar_guard_"

const (
	restorePrefix = "-- outbox:restore "

	aboutGuard = `-- Made by outboxctl migrate-varchar, which drops it at its end. If it was killed,
-- its next run with --execute makes the indexes below as they were and drops this.
`
	// scriptPrefix is another one: nobody knows whether a script is still at it.
	scriptPrefix = "outbox_varchar_script_"
	aboutScript  = `-- Made by a script of outboxctl migrate-varchar. Its last batches, which put the
-- indexes back and drop this, can be run again.
`
)

// guardName is the trigger's: the object id tells tables of one schema apart.
func (m Migration) guardName(prefix string, objectID int) string {
	return fmt.Sprintf("%s%s_%d", prefix, m.Column, objectID)
}

// guard is a trigger as the catalog has it.
type guard struct {
	name     string
	disabled bool
	restore  []restoreIndex
}

// restoreIndex is how an index was before the migration. It travels in the
// guard's text as one line of JSON.
type restoreIndex struct {
	Index    string `json:"index"`
	Create   string `json:"create"`
	Again    string `json:"again"` // over what has its name
	Disable  string `json:"disable,omitempty"`
	original *tableIndex
}

// createGuard is the guard of a run, which remembers the indexes.
func (m Migration) createGuard(p *migrationPlan) (string, error) {
	about := aboutGuard
	for _, r := range p.indexes {
		// JSON has no line break inside, whatever the name of the index has.
		line, err := json.Marshal(r)
		if err != nil {
			return "", fmt.Errorf("write down the index %s: %w", r.Index, err)
		}
		about += restorePrefix + string(line) + "\n"
	}
	return m.guardText(p.guard, about, p.column), nil
}

// guardText puts in last what the catalog said: nothing in it is replaced.
func (m Migration) guardText(name, about string, c *migrationColumn) string {
	text := strings.Replace(migrateGuardSQL, "{trigger}", m.inSchema(name), 1)
	before, after, _ := strings.Cut(text, "{about}")
	return m.fill(before, c) + about + m.fill(after, c)
}

func (m Migration) dropGuard(name string) MigrationStep {
	return named("drop the guard", "MigrateDropGuard", "DROP TRIGGER IF EXISTS "+m.inSchema(name)+";")
}

// inSchema is the two-part name of an object beside the table.
func (m Migration) inSchema(name string) string {
	return m.Names.Replacer().Replace("{schema}") + "." + quoted(name)
}

// readGuards finds the guards of this and of earlier runs.
func (m Migration) readGuards(ctx context.Context, q querier) ([]guard, error) {
	rows, err := q.QueryContext(ctx, migrateGuardsSQL, sql.Named("table", m.Events()), sql.Named("prefix", GuardPrefix))
	if err != nil {
		return nil, fmt.Errorf("look for a guard: %w", err)
	}
	defer rows.Close()
	var list []guard
	for rows.Next() {
		var g guard
		var definition string
		if err := rows.Scan(&g.name, &g.disabled, &definition); err != nil {
			return nil, fmt.Errorf("look for a guard: %w", err)
		}
		for line := range strings.Lines(definition) {
			text, ok := strings.CutPrefix(strings.TrimSpace(line), restorePrefix)
			if !ok {
				continue
			}
			var r restoreIndex
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				return nil, fmt.Errorf("the trigger %s remembers an index in a way that cannot be read: %w", g.name, err)
			}
			g.restore = append(g.restore, r)
		}
		list = append(list, g)
	}
	return list, rows.Err()
}
