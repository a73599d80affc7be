package maintenance_test

import (
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

func (b *oldTable) objectID() int64 {
	b.t.Helper()
	id, err := strconv.ParseInt(b.text(`SELECT OBJECT_ID(@table)`, sql.Named("table", b.names.Events())), 10, 64)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// TestWhatHoldsTheColumnIsNamedBeforeAnythingIsTouched: the engine has most of
// these; what it cannot have is made up in its views.
func TestWhatHoldsTheColumnIsNamedBeforeAnythingIsTouched(t *testing.T) {
	tableRow := func(b *oldTable, temporal int, memory, replicated, merge, cdc bool) emulator.FakeView {
		return emulator.FakeView{
			Name:    "sys.tables",
			Columns: []string{"object_id", "name", "temporal_type", "is_memory_optimized", "is_replicated", "is_merge_published", "is_tracked_by_cdc"},
			Rows:    [][]any{{b.objectID(), "outbox_event", temporal, memory, replicated, merge, cdc}},
		}
	}
	columnID := func(b *oldTable) int64 {
		n, _ := strconv.ParseInt(b.text(`SELECT column_id FROM sys.columns WHERE object_id = OBJECT_ID(@table) AND name = 'payload'`, sql.Named("table", b.names.Events())), 10, 64)
		return n
	}
	for name, c := range map[string]struct {
		guard  maintenance.Guard
		schema scripts.Options
		column string
		before func(b *oldTable)
		want   []string // kind and name
	}{
		"default": {before: func(b *oldTable) { b.exec(`ALTER TABLE {events} ADD CONSTRAINT DF_p DEFAULT (N'x') FOR payload`) }, want: []string{"default DF_p"}},
		"check":   {before: func(b *oldTable) { b.exec(`ALTER TABLE {events} ADD CONSTRAINT CK_p CHECK (payload <> N'x')`) }, want: []string{"check constraint CK_p"}},
		"unique constraint": {
			before: func(b *oldTable) { b.exec(`ALTER TABLE {events} ADD CONSTRAINT UQ_p UNIQUE (payload)`) },
			want:   []string{"unique constraint UQ_p"},
		},
		"unique index": {before: func(b *oldTable) { b.exec(`CREATE UNIQUE INDEX ux ON {events} (payload, id)`) }, want: []string{"unique index ux"}},
		"filter":       {before: func(b *oldTable) { b.exec(`CREATE INDEX fx ON {events} (created_at) WHERE payload = N'x'`) }, want: []string{"filtered index fx"}},
		"statistics and a default": {
			before: func(b *oldTable) {
				b.exec(`CREATE STATISTICS st ON {events} (payload, headers)`)
				b.exec(`ALTER TABLE {events} ADD CONSTRAINT DF_p DEFAULT (N'x') FOR payload`)
			},
			want: []string{"statistics st", "default DF_p"},
		},
		"computed": {before: func(b *oldTable) {
			b.fake(emulator.FakeView{Name: "sys.computed_columns", Columns: []string{"object_id", "name", "definition"}, Rows: [][]any{
				{b.objectID(), "shout", "(upper([payload]))"}, {b.objectID(), "other", "(upper([headers]))"},
			}})
		}, want: []string{"computed column shout"}},
		"a definition that nobody may see": {before: func(b *oldTable) {
			b.fake(emulator.FakeView{Name: "sys.check_constraints", Columns: []string{"parent_object_id", "name"}, Rows: [][]any{{b.objectID(), "CK_secret"}}})
		}, want: []string{"check constraint CK_secret"}},
		"schema-bound": {before: func(b *oldTable) {
			b.exec(`CREATE PROCEDURE bound AS SELECT 1 AS n`)
			id, _ := strconv.ParseInt(b.text(`SELECT OBJECT_ID('bound')`), 10, 64)
			b.fake(emulator.FakeView{
				Name:    "sys.sql_expression_dependencies",
				Columns: []string{"referencing_id", "referenced_id", "referenced_minor_id", "is_schema_bound_reference"},
				Rows:    [][]any{{id, b.objectID(), columnID(b), true}},
			})
		}, want: []string{"schema-bound sql stored procedure dbo.bound"}},
		"full-text": {before: func(b *oldTable) {
			b.fake(emulator.FakeView{Name: "sys.fulltext_index_columns", Columns: []string{"object_id", "column_id"}, Rows: [][]any{{b.objectID(), columnID(b)}}})
		}, want: []string{"full-text index payload"}},
		"foreign key": {before: func(b *oldTable) {
			b.fake(emulator.FakeView{
				Name: "sys.foreign_key_columns", Columns: []string{"constraint_object_id", "parent_object_id", "parent_column_id", "referenced_object_id", "referenced_column_id"},
				Rows: [][]any{{b.objectID(), 1, 1, b.objectID(), columnID(b)}},
			})
		}, want: []string{"foreign key outbox_event"}},
		"paused": {before: func(b *oldTable) {
			b.fake(emulator.FakeView{Name: "sys.index_resumable_operations", Columns: []string{"object_id", "name", "state_desc"}, Rows: [][]any{{b.objectID(), "PK_outbox_event", "PAUSED"}}})
		}, want: []string{"paused index operation PK_outbox_event"}},
		"partitioned": {before: func(b *oldTable) {
			b.fake(emulator.FakeView{Name: "sys.data_spaces", Columns: []string{"data_space_id", "name", "type"}, Rows: [][]any{{1, "by_month", "PS"}}})
		}, want: []string{"partitioned table dbo.outbox_event", "partitioned index IX_outbox_claim"}},
		"temporal":  {before: func(b *oldTable) { b.fake(tableRow(b, 2, false, false, false, false)) }, want: []string{"temporal table dbo.outbox_event"}},
		"in memory": {before: func(b *oldTable) { b.fake(tableRow(b, 0, true, false, false, false)) }, want: []string{"memory-optimized table dbo.outbox_event"}},
		"published and captured": {
			before: func(b *oldTable) { b.fake(tableRow(b, 0, false, true, false, true)) },
			want:   []string{"replication dbo.outbox_event", "change data capture dbo.outbox_event"},
		},
		"no type of text": {schema: scripts.Options{EventType: "INT"}, column: "last_error", before: func(b *oldTable) {
			b.exec(`ALTER TABLE {events} ALTER COLUMN last_error NCHAR(10) NULL`)
		}, want: []string{"type last_error"}},
		"workers": {column: "aggregate_id", schema: scripts.Options{Aggregate: "NVARCHAR(50)"}, before: func(b *oldTable) {
			b.exec(`INSERT INTO {workers} (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at) VALUES ('w', 'v', 's', 1, 1, 0, SYSUTCDATETIME(), SYSUTCDATETIME())`)
		}, want: []string{"running workers [dbo].[outbox_event_worker]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newOldTable(t, c.schema)
			c.before(b)
			m := b.migration()
			m.Column, m.Guard = c.column, c.guard
			if c.column == "aggregate_id" {
				m.Collation = "Latin1_General_100_BIN2_UTF8"
			}
			indexes, column := b.indexes(), b.column("payload")
			r, err := m.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range r.Blockers {
				got = append(got, k.Kind+" "+k.Name)
				if k.Problem == "" || k.Remedy == "" {
					t.Errorf("%+v says too little", k)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("blockers %q, want %q", got, c.want)
			}
			if r.State != maintenance.MigrationRefused || !r.Found() {
				t.Errorf("state %s", r.State)
			}
			if b.indexes() != indexes || b.column("payload") != column || b.guards() != "0" {
				t.Error("something was changed")
			}
			checked, err := m.Check(t.Context())
			if err != nil || !checked.Found() || len(checked.Blockers) != len(c.want) {
				t.Errorf("Check: %+v, %v", checked, err)
			}
			if _, err := m.Script(t.Context()); err == nil || !strings.Contains(err.Error(), "refused, nothing was changed") {
				t.Errorf("Script: %v", err)
			}
		})
	}
}

func TestDefaultIsKeptUnderTheLock(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.exec(`ALTER TABLE {events} ADD CONSTRAINT [DF ]]p] DEFAULT (N'it''s') FOR payload`)
	m := b.migration()
	m.Guard = maintenance.GuardLock
	r, err := m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationDone {
		t.Fatalf("%+v, %v", r, err)
	}
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type) VALUES (1, 'a', '1', 't')`)
	if got := b.text(`SELECT CONCAT(d.name, ' ', d.definition, ' ', (SELECT payload FROM {events})) FROM sys.default_constraints AS d WHERE d.parent_object_id = OBJECT_ID(@table) AND d.name LIKE 'DF ]p'`, sql.Named("table", b.names.Events())); got != "DF ]p (N'it''s') it's" {
		t.Errorf("default is %q", got)
	}
}

// Who may not look for schema-bound objects is told so, and can check all the same.
func TestMissingRightOnDependenciesIsANote(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.fake(emulator.FakeView{Name: "sys.sql_expression_dependencies", Error: &emulator.Error{Number: 229, Class: 14, State: 5, Message: "The SELECT permission was denied on the object 'sql_expression_dependencies', database 'mssqlsystemresource', schema 'sys'."}})
	r := check(t, b.migration())
	if r.Found() || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "GRANT SELECT ON sys.sql_expression_dependencies") }) {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestAlreadyMigrated(t *testing.T) {
	b := newOldTable(t, scripts.Options{Payload: "VARCHAR(10)"})
	m := b.migration()
	for name, run := range map[string]func() (*maintenance.MigrationReport, error){
		"check": func() (*maintenance.MigrationReport, error) { return m.Check(t.Context()) },
		"run":   func() (*maintenance.MigrationReport, error) { return m.Run(t.Context()) },
	} {
		r, err := run()
		if err != nil || r.State != maintenance.MigrationAlready || r.Found() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if text, err := m.Script(t.Context()); err != nil || !strings.Contains(text, "is VARCHAR(10) COLLATE") {
		t.Errorf("script %q, %v", text, err)
	}
	m.Collation = "Latin1_General_100_BIN2_UTF8"
	var refusal *maintenance.Refusal
	if _, err := m.Run(t.Context()); !errors.As(err, &refusal) || !strings.Contains(refusal.Found, "--collation") {
		t.Errorf("another collation: %v", err)
	}
}
