package maintenance_test

import (
	"database/sql"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
)

// describeIndexes is everything the catalog says of the indexes.
const describeIndexes = `
SELECT STRING_AGG(CONCAT(i.name, ' ', i.type_desc, ' unique=', i.is_unique, ' fill=', i.fill_factor, ' padded=', i.is_padded,
       ' disabled=', i.is_disabled, ' rows=', i.allow_row_locks, ' pages=', i.allow_page_locks, ' sequential=', i.optimize_for_sequential_key,
       ' filter=', i.filter_definition, ' columns=', x.list), CHAR(10)) WITHIN GROUP (ORDER BY i.name)
FROM   sys.indexes AS i
CROSS APPLY (SELECT STRING_AGG(CONCAT(c.name, ' ', ic.key_ordinal, ' ', ic.is_descending_key, ' ', ic.is_included_column), ', ')
                    WITHIN GROUP (ORDER BY ic.index_column_id) AS list
             FROM   sys.index_columns AS ic
             INNER JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
             WHERE  ic.object_id = i.object_id AND ic.index_id = i.index_id) AS x
WHERE  i.object_id = OBJECT_ID(@table)`

func (b *oldTable) indexes() string {
	b.t.Helper()
	return b.text(describeIndexes, sql.Named("table", b.names.Events()))
}

// column is the declaration of one.
func (b *oldTable) column(name string) string {
	b.t.Helper()
	return b.text(`
SELECT CONCAT(t.name, ' ', c.max_length, ' ', c.collation_name, ' ', c.is_nullable)
FROM   sys.columns AS c
INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id
WHERE  c.object_id = OBJECT_ID(@table) AND c.name = @column`, sql.Named("table", b.names.Events()), sql.Named("column", name))
}

// guards counts the triggers on the table.
func (b *oldTable) guards() string {
	b.t.Helper()
	return b.text(`SELECT COUNT(*) FROM sys.triggers WHERE parent_id = OBJECT_ID(@table)`, sql.Named("table", b.names.Events()))
}

// restored checks that the indexes are what they were, and that no guard is left.
func (b *oldTable) restored(indexes string) {
	b.t.Helper()
	if got := b.indexes(); got != indexes {
		b.t.Errorf("indexes are\n%s\nwere\n%s", got, indexes)
	}
	if b.guards() != "0" {
		b.t.Error("a guard is left")
	}
}

// awkwardIndexes hold the payload in every way that the task takes.
var awkwardIndexes = []string{
	`CREATE NONCLUSTERED INDEX [by ]]payload'] ON {events} (payload DESC, event_type) INCLUDE (headers, created_at) WITH (FILLFACTOR = 70, PAD_INDEX = ON)`,
	`CREATE NONCLUSTERED INDEX filtered ON {events} (created_at) INCLUDE (payload) WHERE aggregate_id = 'x' AND processed_at IS NULL`,
	`CREATE NONCLUSTERED INDEX sequential ON {events} (created_at, id) INCLUDE (payload) WITH (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON, ALLOW_PAGE_LOCKS = OFF)`,
	`CREATE NONCLUSTERED INDEX asleep ON {events} (aggregate_id) INCLUDE (payload)`,
	`ALTER INDEX asleep ON {events} DISABLE`,
	`CREATE NONCLUSTERED INDEX untouched ON {events} (aggregate_id) WHERE headers IS NOT NULL`,
}

func TestRunMigratesAndLeavesEverythingElse(t *testing.T) {
	for _, guard := range []maintenance.Guard{maintenance.GuardTrigger, maintenance.GuardLock} {
		for name, o := range map[string]scripts.Options{
			"default":  {},
			"odd":      {Schema: "my schema", Table: "it's ]odd[", ClaimIndex: "IX'a]b"},
			"max":      {Payload: "NVARCHAR(MAX)"},
			"slim":     {SlimClaimIndex: true},
			"nullable": {},
		} {
			t.Run(string(guard)+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := newOldTable(t, o)
				if name == "default" || name == "odd" {
					for _, text := range awkwardIndexes {
						b.exec(text)
					}
				}
				b.add("plain", "", "é ", "0123456789")
				indexes := b.indexes()
				m := b.migration()
				m.Guard = guard
				column := "payload"
				if name == "nullable" {
					column = "headers"
				}
				m.Column = column
				core, logged := observer.New(zap.InfoLevel)
				m.Logger = zap.New(core)
				r, err := m.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.State != maintenance.MigrationDone || r.Found() {
					t.Fatalf("state %s, blockers %+v", r.State, r.Blockers)
				}
				want := "varchar 10 SQL_Latin1_General_CP1_CI_AS 0"
				switch name {
				case "max":
					want = "varchar -1 SQL_Latin1_General_CP1_CI_AS 0"
				case "nullable":
					want = "varchar 2000 SQL_Latin1_General_CP1_CI_AS 1"
				}
				if got := b.column(column); got != want {
					t.Errorf("column is %q, want %q", got, want)
				}
				b.restored(indexes)
				if got := b.text(`SELECT STRING_AGG(CONCAT('<', payload, '>'), '') WITHIN GROUP (ORDER BY id) FROM {events}`); got != "<plain><><é ><0123456789>" {
					t.Errorf("payloads are %q", got)
				}
				if logged.FilterMessage("change the column").Len() != 1 {
					t.Errorf("logged %v", logged.All())
				}
				again, err := m.Run(t.Context())
				if err != nil || again.State != maintenance.MigrationAlready {
					t.Errorf("again: %+v, %v", again, err)
				}
			})
		}
	}
}
