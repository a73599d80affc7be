package maintenance

import "strings"

func init() {
	for name, kind := range map[string]string{
		"migrateColumnSQL":      "Select",
		"migrateTableSQL":       "Select",
		"migrateIndexesSQL":     "Select",
		"migrateDefaultSQL":     "Select",
		"migrateBlockersSQL":    "Select",
		"migrateBoundSQL":       "Select",
		"migrateCollationsSQL":  "Select",
		"migrateWorkersSQL":     "Declare Select",
		"migrateGuardsSQL":      "Select",
		"migrateGuardSQL":       "CreateTrigger",
		"migrateRowsSQL":        "Select",
		"migrateWindowSQL":      "Declare Select Select",
		"migrateSamplesSQL":     "Select",
		"migrateLockSQL":        "Declare Select",
		"migrateScriptCheckSQL": "Declare Select While(Begin(Select Select Select)) If(Begin(Set Throw))",
	} {
		kinds[name] = kind
	}
	for _, name := range []string{"migrateWindowSQL", "migrateSamplesSQL", "migrateScriptCheckSQL", "migrateGuardSQL"} {
		renderings[name] = filledMigration
	}
}

// filledMigration is the text for some columns and types.
func filledMigration(text string) (list []string) {
	text = strings.NewReplacer("{trigger}", "[dbo].[outbox_varchar_guard_payload_1]", "{about}", "").Replace(text)
	for _, c := range []struct {
		column, collation string
		length            int
	}{
		{"payload", "Latin1_General_100_BIN2_UTF8", -1},
		{"headers", "SQL_Latin1_General_CP1_CI_AS", 2000},
	} {
		m := Migration{Column: c.column}
		list = append(list, m.fill(text, &migrationColumn{toCollation: c.collation, toLength: c.length, idType: "bigint"}))
	}
	return list
}
