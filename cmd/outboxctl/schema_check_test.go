package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/maintenance"
)

// damaged is a stack whose table lacks an index and a column.
func damaged(t *testing.T) *local.Stack {
	t.Helper()
	stack := newStack(t, local.Config{})
	if _, err := stack.SQL.Exec(t.Context(), `
DROP INDEX IX_outbox_retry ON dbo.outbox_event;
ALTER TABLE dbo.outbox_event DROP COLUMN last_error;
ALTER INDEX PK_outbox_event ON dbo.outbox_event SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF);`); err != nil {
		t.Fatal(err)
	}
	return stack
}

const damagedCheck = `dbo.outbox_event, 0 rows, on SQL Azure 12.0.2000.8 (engine edition 5)

MUST    column dbo.outbox_event.last_error
        the column last_error is missing.
          ALTER TABLE [dbo].[outbox_event] ADD last_error VARCHAR(400) NULL;

SHOULD  index PK_outbox_event
        the index PK_outbox_event has OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF: inserts of a burst convoy at its last page.
          ALTER INDEX [PK_outbox_event] ON [dbo].[outbox_event] SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);

MUST    index IX_outbox_retry
        the index IX_outbox_retry is not there.
          IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID(N'[dbo].[outbox_event]') AND name = N'IX_outbox_retry')
              CREATE NONCLUSTERED INDEX [IX_outbox_retry]
                  ON [dbo].[outbox_event] (retry_at, id)
                  WHERE status = 2
                  WITH (ONLINE = ON);

2 must be mended, 1 should.
`

const damagedPlan = `dbo.outbox_event: what --execute would add

column dbo.outbox_event.last_error
          ALTER TABLE [dbo].[outbox_event] ADD last_error VARCHAR(400) NULL;

index IX_outbox_retry
          IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID(N'[dbo].[outbox_event]') AND name = N'IX_outbox_retry')
              CREATE NONCLUSTERED INDEX [IX_outbox_retry]
                  ON [dbo].[outbox_event] (retry_at, id)
                  WHERE status = 2
                  WITH (ONLINE = ON);

Left to you:

SHOULD  index PK_outbox_event
        the index PK_outbox_event has OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF: inserts of a burst convoy at its last page.
          ALTER INDEX [PK_outbox_event] ON [dbo].[outbox_event] SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
`

func TestSchemaCheckAndApply(t *testing.T) {
	stack := damaged(t)
	dsn := "--sql-dsn=" + stack.SQL.DSN()
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := outboxctl(t, append(args, dsn)...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
		}
	}
	documented(t, "schema", run(exitDone, "schema", "print", "--json"))
	documented(t, "schema", run(exitFound, "schema", "check", "--json"))
	documented(t, "schema", run(exitDone, "schema", "apply", "--json"))
	same("check", run(exitFound, "schema", "check"), damagedCheck)
	same("plan", run(exitDone, "schema", "apply"), damagedPlan)
	var report maintenance.SchemaReport
	if err := json.Unmarshal([]byte(run(exitFound, "schema", "check", "--json")), &report); err != nil || report.Must != 2 || report.Should != 1 || len(report.Findings) != 3 {
		t.Errorf("%+v, %v", report, err)
	}
	var change maintenance.SchemaChange
	if err := json.Unmarshal([]byte(run(exitDone, "schema", "apply", "--execute", "--json")), &change); err != nil || len(change.Steps) != 2 || !change.Executed ||
		slices.ContainsFunc(change.Steps, func(s maintenance.SchemaStep) bool { return !s.Done }) {
		t.Errorf("%+v, %v", change, err)
	}
	if after := run(exitDone, "schema", "check"); !strings.Contains(after, "0 must be mended, 1 should.") {
		t.Errorf("after it:\n%s", after)
	}
	if again := run(exitDone, "schema", "apply", "--execute"); !strings.HasPrefix(again, "dbo.outbox_event: nothing is missing.\n") {
		t.Errorf("again:\n%s", again)
	}
	if _, err := stack.SQL.Exec(t.Context(), "ALTER INDEX PK_outbox_event ON dbo.outbox_event SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON)"); err != nil {
		t.Fatal(err)
	}
	same("all well", run(exitDone, "schema", "check"), "dbo.outbox_event, 0 rows, on SQL Azure 12.0.2000.8 (engine edition 5)\n\nNothing to mend.\n")
}

// What only a person can mend is exit 3 after everything else was added.
func TestSchemaApplyLeavesThingsToAPerson(t *testing.T) {
	stack := damaged(t)
	if _, err := stack.SQL.Exec(t.Context(), "ALTER TABLE dbo.outbox_event ALTER COLUMN processed_at DATETIME2(0) NULL"); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := outboxctl(t, "schema", "apply", "--sql-dsn="+stack.SQL.DSN())
	if code != exitFound || !strings.Contains(stdout, "Left to you:\n\nMUST") {
		t.Errorf("the plan: exit %d:\n%s", code, stdout)
	}
	code, stdout, _ = outboxctl(t, "schema", "apply", "--execute", "--sql-dsn="+stack.SQL.DSN())
	if code != exitFound || !strings.Contains(stdout, "index IX_outbox_retry  added\n") || !strings.Contains(stdout, "processed_at is DATETIME2(0), must be DATETIME2(3) or finer") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
}

func TestSchemaCheckUsage(t *testing.T) {
	for _, args := range [][]string{
		{"schema", "check"},
		{"schema", "check", "--sql-dsn=nonsense"},
		{"schema", "apply", "--sql-dsn=sqlserver://h?database=d", "--block-size=0"},
		{"schema", "check", "--sql-dsn=sqlserver://h?database=d", "--payload=TEXT"},
		{"schema", "check", "--sql-dsn=sqlserver://h?database=d", "--execute"},
	} {
		code, stdout, stderr := outboxctl(t, args...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// A type that is asked for changes no column that is there; it is said, and how to.
func TestSchemaSaysThatTheTypesAreForANewTable(t *testing.T) {
	stack := newStack(t, local.Config{})
	dsn := "--sql-dsn=" + stack.SQL.DSN()
	const alter = "ALTER TABLE [dbo].[outbox_event] ALTER COLUMN payload VARCHAR(MAX) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL"
	for _, command := range []string{"check", "apply"} {
		code, stdout, stderr := outboxctl(t, "schema", command, "--payload=varchar(max)", dsn)
		if code != exitDone || !strings.Contains(stdout, "Notes:\n  * payload is VARCHAR(2000) and stays so") || !strings.Contains(stdout, alter) {
			t.Errorf("schema %s: exit %d:\n%s%s", command, code, stdout, stderr)
		}
		if _, stdout, _ := outboxctl(t, "schema", command, dsn); strings.Contains(stdout, "Note") {
			t.Errorf("schema %s without --payload:\n%s", command, stdout)
		}
	}
}

// A table of another name is made by schema apply, not by the script of the usual name.
func TestAMissingTableIsToldWithItsName(t *testing.T) {
	dsn := "--sql-dsn=" + newStack(t, local.Config{}).SQL.DSN()
	for command, want := range map[string]string{
		"status": "outboxctl schema apply, with the same --schema and --table",
		"doctor": "outboxctl schema apply --table foo --execute",
	} {
		_, stdout, stderr := outboxctl(t, command, "--table=foo", dsn)
		if said := stdout + stderr; !strings.Contains(said, want) || strings.Contains(said, "001_outbox") || strings.Contains(said, "CREATE TABLE") {
			t.Errorf("%s:\n%s", command, said)
		}
	}
}
