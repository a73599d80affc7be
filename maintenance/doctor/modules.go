package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Triggers run inside the claim's and the settle's transactions (sql-docs,
// sys-triggers-transact-sql.md; visible to whoever owns or may alter the table,
// or has VIEW DEFINITION).
const doctorTriggersSQL = `-- outbox:DoctorTriggers
SELECT t.name, t.is_disabled
FROM   sys.triggers AS t
WHERE  t.parent_id = OBJECT_ID(@events)
ORDER BY t.name;`

// A module keeps the QUOTED_IDENTIFIER and ANSI_NULLS that it was created with
// (sql-docs, sys-sql-modules-transact-sql.md), and a write to a table with a
// filtered index then fails with 1934, whatever the session has. Those whose text
// names the table are looked at; the text of an encrypted one is NULL.
const doctorModulesSQL = `-- outbox:DoctorModules
SELECT QUOTENAME(OBJECT_SCHEMA_NAME(m.object_id)) + N'.' + QUOTENAME(OBJECT_NAME(m.object_id)) AS module
FROM   sys.sql_modules AS m
WHERE  (m.uses_quoted_identifier = 0 OR m.uses_ansi_nulls = 0)
AND    CHARINDEX(@table, m.definition) > 0
ORDER BY module;`

func (v *visit) modules(ctx context.Context) (found []Finding, err error) {
	triggers, err := v.names(ctx, doctorTriggersSQL, sql.Named("events", v.Events()))
	if err != nil {
		return nil, err
	}
	if len(triggers) > 0 {
		found = one("triggers", Warn, fmt.Sprintf("the event table has triggers: %s. They run in every claim and settle, and one that fails stops the worker", strings.Join(triggers, ", ")),
			"take them away, or make sure that they are quick, SET NOCOUNT ON and never roll back")
	} else {
		found = one("triggers", OK, "none on the event table", "")
	}
	table := v.Table
	if table == "" {
		table = "outbox_event"
	}
	modules, err := v.names(ctx, doctorModulesSQL, sql.Named("table", table))
	if err != nil {
		return found, err
	}
	if len(modules) > 0 {
		return append(found, one("modules", NoGo, fmt.Sprintf("%s name the event table and were created with QUOTED_IDENTIFIER or ANSI_NULLS OFF: their writes fail with 1934", strings.Join(modules, ", ")),
			"create them again behind SET QUOTED_IDENTIFIER ON; SET ANSI_NULLS ON; (sqlcmd starts with the first OFF: use -I)")...), nil
	}
	return append(found, one("modules", OK, "none that names the table was created with options that filtered indexes refuse", "")...), nil
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
const doctorRebuildsSQL = `-- outbox:DoctorRebuilds
SELECT o.name + N' (' + CONVERT(NVARCHAR(20), CONVERT(INT, o.percent_complete)) + N' %)' AS paused
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
