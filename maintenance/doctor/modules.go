package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/diagnose"
)

// What one may not see is not in the catalog at all, and no answer is then no
// "none" (sql-docs, metadata-visibility-configuration.md): the triggers of a table
// take VIEW DEFINITION on it, the modules of others that on the database. A worker
// has the first only. NULL for what is not there.
const doctorSightSQL = `SELECT /* outbox:DoctorSight */ HAS_PERMS_BY_NAME(@events, 'OBJECT', 'VIEW DEFINITION') AS of_table,
       HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DEFINITION') AS of_database;`

// Triggers run inside the claim's and the settle's transactions (sql-docs,
// sys-triggers-transact-sql.md; visible to whoever owns or may alter the table,
// or has VIEW DEFINITION).
const doctorTriggersSQL = `SELECT /* outbox:DoctorTriggers */ t.name, t.is_disabled
FROM   sys.triggers AS t
WHERE  t.parent_id = OBJECT_ID(@events)
ORDER BY t.name;`

// A module keeps the QUOTED_IDENTIFIER and ANSI_NULLS that it was created with
// (sql-docs, sys-sql-modules-transact-sql.md), and a write to a table with a
// filtered index then fails with 1934, whatever the session has. Those whose text
// has the table's name are looked at; the text of an encrypted one is NULL.
const doctorModulesSQL = `SELECT /* outbox:DoctorModules */ QUOTENAME(OBJECT_SCHEMA_NAME(m.object_id)) + N'.' + QUOTENAME(OBJECT_NAME(m.object_id)) AS module,
       m.definition
FROM   sys.sql_modules AS m
WHERE  (m.uses_quoted_identifier = 0 OR m.uses_ansi_nulls = 0)
AND    CHARINDEX(@table, m.definition) > 0
ORDER BY module;`

const doctorEncryptedSQL = `DECLARE @off BIT = 0;
SELECT /* outbox:DoctorEncrypted */ QUOTENAME(OBJECT_SCHEMA_NAME(m.object_id)) + N'.' + QUOTENAME(OBJECT_NAME(m.object_id)) AS module
FROM   sys.sql_modules AS m
WHERE  (m.uses_quoted_identifier = @off OR m.uses_ansi_nulls = @off)
AND    m.definition IS NULL
ORDER BY module;`

// sight says whether all is shown of the event table, and of the database.
func (v *visit) sight(ctx context.Context) (ofTable, ofDatabase bool, err error) {
	var table, database sql.NullBool
	err = v.conn.QueryRowContext(ctx, doctorSightSQL, sql.Named("events", v.Events())).Scan(&table, &database)
	return table.Bool, database.Bool, err
}

func (v *visit) modules(ctx context.Context) ([]Finding, error) {
	ofTable, ofDatabase, err := v.sight(ctx)
	if err != nil {
		return nil, err
	}
	found, err := v.triggers(ctx, ofTable)
	if err != nil {
		return nil, err
	}
	others, err := v.otherModules(ctx, ofDatabase)
	if found = append(found, others...); err != nil {
		return found, err
	}
	writers, err := v.enqueue(ctx, ofDatabase)
	return append(found, writers...), err
}

func (v *visit) triggers(ctx context.Context, all bool) ([]Finding, error) {
	const check = "triggers"
	triggers, err := v.names(ctx, doctorTriggersSQL, sql.Named("events", v.Events()))
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(triggers, isGuard):
		return one(check, Warn, fmt.Sprintf("the guard of migrate-varchar is on the event table: %s. A migration is under way, or one was killed", strings.Join(triggers, ", ")),
			"if none is under way, run the same outboxctl migrate-varchar --execute again: it puts back the indexes that the trigger's text remembers, and drops it. Do not drop it by hand"), nil
	case len(triggers) > 0:
		return one(check, Warn, fmt.Sprintf("the event table has triggers: %s. They run in every claim and settle, and one that fails stops the worker", strings.Join(triggers, ", ")),
			"take them away, or make sure that they are quick, SET NOCOUNT ON and never roll back"), nil
	case !all:
		return one(check, Unknown, "the event table is not there, or its triggers are not shown without VIEW DEFINITION on it",
			"run doctor as someone who has it, or GRANT VIEW DEFINITION ON "+v.Events()+" TO [the user];"), nil
	}
	return one(check, OK, "none on the event table", ""), nil
}

func isGuard(trigger string) bool { return strings.HasPrefix(trigger, maintenance.GuardPrefix) }

func (v *visit) otherModules(ctx context.Context, all bool) ([]Finding, error) {
	const check = "modules"
	const again = "create them again behind SET QUOTED_IDENTIFIER ON; SET ANSI_NULLS ON; (sqlcmd starts with the first OFF: use -I)"
	modules, err := v.modulesOnTable(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(modules) > 0:
		return one(check, NoGo, fmt.Sprintf("%s name the event table and were created with QUOTED_IDENTIFIER or ANSI_NULLS OFF: their writes fail with 1934", strings.Join(modules, ", ")), again), nil
	case !all:
		return one(check, Unknown, "which procedures write to the event table is not shown without VIEW DEFINITION on the database",
			"run doctor once as someone who has it, a db_owner for one; a worker needs no such right"), nil
	}
	encrypted, err := v.names(ctx, doctorEncryptedSQL)
	switch {
	case err != nil:
		return nil, err
	case len(encrypted) > 0:
		return one(check, Unknown, fmt.Sprintf("%s were created with QUOTED_IDENTIFIER or ANSI_NULLS OFF, and whether they name the event table is encrypted", strings.Join(encrypted, ", ")),
			"if they write to it, "+again), nil
	}
	return one(check, OK, "none that names the table was created with options that filtered indexes refuse", ""), nil
}

// modulesOnTable are those with the wrong options that name the event table, and not
// only one with a longer name or one of the tables beside it, which have no
// filtered index.
func (v *visit) modulesOnTable(ctx context.Context) (modules []string, err error) {
	table := v.Names.WithDefaults().Table
	rows, err := v.conn.QueryContext(ctx, doctorModulesSQL, sql.Named("table", strings.ReplaceAll(table, "]", "]]"))) // as between brackets
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var module, definition string
		if err := rows.Scan(&module, &definition); err != nil {
			return nil, err
		}
		if diagnose.Mentions(definition, table) {
			modules = append(modules, module)
		}
	}
	return modules, rows.Err()
}

// names are the first column of the rows.
func (v *visit) names(ctx context.Context, text string, args ...any) ([]string, error) {
	rows, err := v.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var names []string
	for rows.Next() {
		values := make([]any, len(columns))
		var name string
		for i := range values {
			values[i] = new(any)
		}
		values[0] = &name
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// A paused resumable rebuild keeps its half-made copy and has later DDL on the
// table fail with 10637 (sql-docs, sys-index-resumable-operations-transact-sql.md,
// state 1 is PAUSED).
const doctorRebuildsSQL = `SELECT /* outbox:DoctorRebuilds */ o.name + N' (' + CONVERT(NVARCHAR(20), CONVERT(INT, o.percent_complete)) + N' %)' AS paused
FROM   sys.index_resumable_operations AS o
WHERE  o.object_id = OBJECT_ID(@events)
AND    o.state = 1
ORDER BY o.name;`

func (v *visit) rebuilds(ctx context.Context) ([]Finding, error) {
	paused, err := v.names(ctx, doctorRebuildsSQL, sql.Named("events", v.Events()))
	if err != nil {
		return nil, err
	}
	if len(paused) > 0 {
		return one("paused rebuilds", Warn, "paused: "+strings.Join(paused, ", ")+"; later changes of the table fail with 10637, and every write serves both copies",
			"outboxctl rebuild resumes it, ALTER INDEX … ABORT gives it up"), nil
	}
	return one("paused rebuilds", OK, "none", ""), nil
}
