package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
)

// A trusted CHECK on a NOT NULL column proves every value. Without it only
// reading the table does, which costs what the table holds. A definition that
// the login may not see is NULL, and proves nothing.
const statusChecksSQL = `SELECT /* outbox:StatusChecks */ ISNULL(k.definition, N'') AS definition, k.is_not_trusted
FROM   sys.check_constraints AS k
WHERE  k.parent_object_id = OBJECT_ID(@table)
AND    k.is_disabled = 0;`

const tableRowsSQL = `SELECT /* outbox:TableRows */ ISNULL(SUM(p.rows), 0) AS total
FROM   sys.partitions AS p
WHERE  p.object_id = OBJECT_ID(@table)
AND    p.index_id IN (0, 1);`

const countUnknownStatusSQL = `SELECT /* outbox:CountUnknownStatus */ COUNT(*) AS unknown
FROM   (SELECT TOP (@cap) e.id
        FROM   {events} AS e
        WHERE  e.status IS NULL
        OR     e.status NOT IN (0, 1, 2)) AS capped;`

const (
	// statusScanRows is the size up to which a start may read the whole table.
	statusScanRows   = 1_000_000
	unknownStatusCap = 10_000
)

// statusValues is what is known of the values of status.
type statusValues struct {
	// proven says that a trusted constraint lets nothing but 0, 1 and 2 in.
	proven bool
	// hidden says that there is a constraint which this login may not see.
	hidden bool
	// forbidden are values of the three that a constraint keeps out.
	forbidden []string
	// counted says that unknown, of rows, was counted.
	counted       bool
	rows, unknown int64
}

// readStatusValues looks at the constraints, and where those prove nothing at a
// table of at most scanRows rows.
func readStatusValues(ctx context.Context, conn *sql.Conn, names Names, nullable bool, scanRows int64) (v statusValues, err error) {
	if err := v.readChecks(ctx, conn, names); err != nil {
		return v, fmt.Errorf("look for a check of status: %w", err)
	}
	if v.rows, err = tableRows(ctx, conn, names.Events()); err != nil {
		return v, err
	}
	if v.proven && !nullable || v.rows > scanRows {
		return v, nil
	}
	row := conn.QueryRowContext(ctx, names.Replacer().Replace(countUnknownStatusSQL), sql.Named("cap", unknownStatusCap))
	if err := row.Scan(&v.unknown); err != nil {
		return v, fmt.Errorf("count unknown status values: %w", err)
	}
	v.counted = true
	return v, nil
}

// tableRows is how many rows the catalog says that a table has.
func tableRows(ctx context.Context, conn *sql.Conn, tableName string) (total int64, err error) {
	if err := conn.QueryRowContext(ctx, tableRowsSQL, sql.Named("table", tableName)).Scan(&total); err != nil {
		return 0, fmt.Errorf("ask for the size of %s: %w", tableName, err)
	}
	return total, nil
}

func (v *statusValues) readChecks(ctx context.Context, conn *sql.Conn, names Names) error {
	rows, err := conn.QueryContext(ctx, statusChecksSQL, sql.Named("table", names.Events()))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var definition string
		var untrusted bool
		if err := rows.Scan(&definition, &untrusted); err != nil {
			return err
		}
		v.hidden = v.hidden || definition == ""
		allowed, ok := allowedStatus(definition)
		if !ok {
			continue
		}
		v.proven = v.proven || !untrusted
		for _, value := range []string{"0", "1", "2"} {
			if !slices.Contains(allowed, value) && !slices.Contains(v.forbidden, value) {
				v.forbidden = append(v.forbidden, value)
			}
		}
	}
	return rows.Err()
}

// allowedStatus are the values that a constraint lets in, where it allows no
// others than 0, 1 and 2. The server stores IN (0, 1, 2) as a chain of OR.
func allowedStatus(definition string) (allowed []string, ok bool) {
	text := normalFilter(definition)
	if list, isList := strings.CutPrefix(text, "statusin"); isList {
		text = "status=" + strings.ReplaceAll(list, ",", "orstatus=")
	}
	for alternative := range strings.SplitSeq(text, "or") {
		value, _ := strings.CutPrefix(alternative, "status=")
		switch alternative {
		case "status=0", "status=1", "status=2":
			allowed = append(allowed, value)
		default:
			return nil, false
		}
	}
	return allowed, true
}

func (v statusValues) defects(names Names, nullable bool) []defect {
	object := "column " + names.String() + ".status"
	var found []defect
	if v.unknown > 0 {
		found = append(found, defect{stops: true, Finding: Finding{
			Severity: Must, Object: object,
			Problem: fmt.Sprintf("%s with a status that is NULL or none of 0, 1, 2 (counted to %d at most)", quantity.Of(v.unknown, "row"), unknownStatusCap),
			Advice:  "nobody claims, retries or purges them: find out what they are and give them one of the three",
		}})
	}
	if len(v.forbidden) > 0 {
		found = append(found, defect{Finding: Finding{
			Severity: Must, Object: object,
			Problem: "a CHECK does not let status be " + strings.Join(v.forbidden, " or ") + ": 0 is PENDING, 1 PROCESSED, 2 FAILED",
		}})
	}
	if nullable {
		found = append(found, defect{Finding: Finding{
			Severity: Should, Object: object, Problem: "the column status may be NULL, and an event without one waits for ever",
			Advice: "make it NOT NULL; the claim and retry indexes stand in the way and come back after it",
		}})
	}
	if v.proven {
		return found
	}
	check := quoteName("CK_" + names.WithDefaults().Table + "_status")
	problem := "no trusted CHECK holds status to 0, 1 and 2: a row with another value is never claimed, retried or purged"
	if !v.counted {
		problem += fmt.Sprintf("; its values were not counted, as the table has %s", quantity.Of(v.rows, "row"))
	}
	if v.hidden {
		return append(found, defect{Finding: Finding{
			Severity: Should, Object: object, Problem: "a CHECK is there that this login may not see: perhaps it holds status to 0, 1 and 2",
			Advice: "GRANT VIEW DEFINITION on the table shows it",
		}})
	}
	f := Finding{
		Severity: Should, Object: object, Problem: problem,
		SQL:    fmt.Sprintf("ALTER TABLE %s WITH CHECK ADD CONSTRAINT %s CHECK (status IN (0, 1, 2));", names.Events(), check),
		Advice: "it reads the whole table under a lock that lets nobody in: choose a quiet hour",
	}
	if v.unknown > 0 {
		f.SQL, f.Advice = "", "after the rows above have one of the three: until then a CHECK is refused (error 547)"
	}
	return append(found, defect{Finding: f})
}

// checkStatusValues refuses unknown values, as far as they can be found cheaply.
func (s *Store) checkStatusValues(ctx context.Context, conn *sql.Conn, st *statements) error {
	nullable := st.table.columns["status"].nullable
	v, err := readStatusValues(ctx, conn, s.names, nullable, statusScanRows)
	if err != nil {
		return err
	}
	if !v.counted && (!v.proven || nullable) {
		s.log.Warn("status has no trusted CHECK on a NOT NULL column; its values were not counted because the table is large: look for others than 0, 1 and 2 when it is quiet",
			zap.Int64("rows", v.rows))
	}
	return stopping(v.defects(s.names, nullable))
}
