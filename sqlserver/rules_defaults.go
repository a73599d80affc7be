package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"azsqloutbox/scripts"
)

// A column of type timestamp fills itself (sql-docs, rowversion-transact-sql.md).
const columnDefaultsSQL = `SELECT /* outbox:ColumnDefaults */ c.name,
       CASE WHEN c.is_computed = 1 OR c.is_identity = 1 OR t.name = 'timestamp' THEN 1 ELSE 0 END AS fills_itself,
       CASE WHEN c.default_object_id = 0 THEN 0 ELSE 1 END AS has_default,
       ISNULL(d.definition, N'') AS definition
FROM   sys.columns AS c
INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id
LEFT JOIN sys.default_constraints AS d ON d.object_id = c.default_object_id
WHERE  c.object_id = OBJECT_ID(@table);`

// columnDefault is how a column gets a value that an INSERT does not name.
type columnDefault struct {
	itself bool // identity, computed, rowversion
	there  bool
	// text is empty where the login may not see it.
	text string
}

func readDefaults(ctx context.Context, conn *sql.Conn, tableName string) (map[string]columnDefault, error) {
	rows, err := conn.QueryContext(ctx, columnDefaultsSQL, sql.Named("table", tableName))
	if err != nil {
		return nil, fmt.Errorf("read the defaults of %s: %w", tableName, err)
	}
	defer rows.Close()
	defaults := make(map[string]columnDefault)
	for rows.Next() {
		var name string
		var d columnDefault
		if err := rows.Scan(&name, &d.itself, &d.there, &d.text); err != nil {
			return nil, fmt.Errorf("read the defaults of %s: %w", tableName, err)
		}
		defaults[strings.ToLower(name)] = d
	}
	return defaults, rows.Err()
}

// written are the columns that Writer and the procedure give values.
var written = []string{"id", "aggregate_type", "aggregate_id", "event_type", "payload", "headers"}

// called finds a function in a default: what has none is a constant.
var called = regexp.MustCompile(`[a-z0-9_\]]\s*\(`)

// defaultDefects are about inserts that do not name every column, as those of
// Writer and the procedure.
func defaultDefects(columns map[string]column, defaults map[string]columnDefault, names Names, definitions []scripts.ColumnDefinition) []defect {
	var found []defect
	add := func(severity Severity, name, problem, sql, advice string, adds bool) {
		found = append(found, defect{Finding: Finding{
			Severity: severity, Object: "column " + names.String() + "." + name, Problem: problem, SQL: sql, Advice: advice, Adds: adds,
		}})
	}
	if d := defaults["status"]; d.there && d.text != "" && normalFilter(d.text) != "0" {
		add(Must, "status", fmt.Sprintf("the default of status is %s: an event that does not name its status is never claimed; 0 is PENDING", d.text), "", "drop the default and make it 0", false)
	}
	switch d, text := defaults["created_at"], strings.ToLower(defaults["created_at"].text); {
	case d.there && text != "" && !called.MatchString(text):
		add(Should, "created_at", fmt.Sprintf("the default of created_at is %s, the same for every event: an id that is used twice then has one MessageID, and duplicate detection drops the second event", d.text), "",
			"drop the default and make it SYSUTCDATETIME()", false)
	case strings.Contains(text, "getdate") || strings.Contains(text, "sysdatetime"):
		add(Should, "created_at", fmt.Sprintf("the default of created_at is %s, the server's local time: MessageIDs and ages are made from UTC", d.text), "",
			"Azure SQL runs in UTC; elsewhere make it SYSUTCDATETIME()", false)
	}
	for _, name := range sortedNames(columns) {
		c, d := columns[name], defaults[name]
		if c.nullable || d.there || d.itself || slices.Contains(written, name) {
			continue
		}
		problem := fmt.Sprintf("the column %s is NOT NULL without a default: an INSERT that does not name it fails, as those of sqlserver.Writer and of the procedure", name)
		if sql := addDefault(name, names, definitions); sql != "" {
			add(Must, name, problem, sql, "", true)
		} else {
			add(Should, name, problem, "", "give it a default, or let it be NULL", false)
		}
	}
	return found
}

// addDefault gives an existing column the default that the script has for it.
func addDefault(name string, names Names, definitions []scripts.ColumnDefinition) string {
	for _, d := range definitions {
		if d.Name != name {
			continue
		}
		if _, constraint, ok := strings.Cut(d.Definition, " CONSTRAINT "); ok {
			return "ALTER TABLE " + names.Events() + " ADD CONSTRAINT " + constraint + " FOR " + name + ";"
		}
	}
	return ""
}
