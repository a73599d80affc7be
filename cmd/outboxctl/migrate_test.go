package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	sqlemulator "azsqloutbox/sqlserver/emulator"
)

// nvarcharStack has a table as it was before: its payload is NVARCHAR(20).
func nvarcharStack(t *testing.T, rows ...string) *local.Stack {
	t.Helper()
	stack := newStack(t, local.Config{Schema: scripts.Options{Payload: "NVARCHAR(20)", Collation: "SQL_Latin1_General_CP1_CI_AS"}})
	for i, payload := range rows {
		text := fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)
VALUES (%d, 'order', '1', 'order-placed', N'%s')`, i+1, payload)
		if _, err := stack.SQL.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return stack
}

// varyingMigration is what differs from run to run.
var varyingMigration = regexp.MustCompile(`(guard_payload_)\d+|(Migrated in )[^ ]+\.|("seconds": )[0-9.e-]+|(?m)^\d\d:\d\d:\d\d\.\d+`)

func steadyMigration(text string) string { return varyingMigration.ReplaceAllString(text, "$1$2$3…") }

func sameMigration(t *testing.T, what, got, want string) {
	t.Helper()
	if got = steadyMigration(got); got != want {
		t.Errorf("%s is\n%s\nwant\n%s", what, got, want)
	}
}

const lossyText = `dbo.outbox_event.payload
  from  NVARCHAR(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL
  to    VARCHAR(10) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL

Checked all rows:
  rows           3
  max_chars      12
  max_bytes      12
  lossy_rows     1
  too_long_rows  1
  bytes before   52
  bytes after    26
  id 1, 8 bytes; U+012B becomes U+0069; U+0101 becomes U+0061; U+1F600 becomes U+003F U+003F
  id 3, 12 bytes, too long

--collation Latin1_General_100_BIN2_UTF8 --length 14 would lose nothing of what was checked: the longest value takes 14 bytes, all together 33, 7 more than asked for; as NVARCHAR they take 52.

Plan (--guard lock):
  1. check every row
  2. lock the table
       DECLARE @first BIGINT;
       SELECT /* outbox:MigrateLock */ TOP (1) @first = e.id
       FROM   [dbo].[outbox_event] AS e WITH (TABLOCKX)
       ORDER BY e.id;
  3. check every row again
  4. drop IX_outbox_claim
       /* outbox:MigrateDropIndex */
       DROP INDEX [IX_outbox_claim] ON [dbo].[outbox_event];
  5. change the column
       /* outbox:MigrateAlterColumn */
       ALTER TABLE [dbo].[outbox_event] ALTER COLUMN [payload] VARCHAR(10) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL;
  6. create IX_outbox_claim
       /* outbox:MigrateCreateIndex */
       CREATE NONCLUSTERED INDEX [IX_outbox_claim] ON [dbo].[outbox_event] ([event_type], [id]) INCLUDE ([aggregate_type], [aggregate_id], [payload], [headers], [created_at], [retry_count]) WHERE ([status]=(0)) ON [PRIMARY];

Notes:
  * from the lock to the commit everybody waits who touches the table, workers too: they go on by themselves
  * after the change nothing notices a character that SQL_Latin1_General_CP1_CI_AS lacks: only a UTF-8 collation keeps what is written later. sqlserver.Writer sees the new type and refuses such text; the procedure does too if it is made anew from this version's 010_enqueue.sql
  * the old text stays in the rows until they are rebuilt: run outboxctl rebuild afterwards

Not migrated: see above. Nothing was changed.
`

const migratedText = `dbo.outbox_event.payload
  from  NVARCHAR(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL
  to    VARCHAR(20) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL

Checked all rows:
  rows           3
  max_chars      12
  max_bytes      14
  lossy_rows     0
  too_long_rows  0
  bytes before   52
  bytes after    33

Notes:
  * while the guard is there, a transaction that writes text which would be lost or cut is rolled back with error 50000, and statements with OUTPUT but no INTO fail on the table with error 334 (EF Core 7 and later use them)
  * a bulk load fires no trigger unless it asks for it (FIRE_TRIGGERS), nor does a write by another trigger where the server option nested triggers is off: keep both away until the end
  * the change is online: it needs about twice the space of the column, and writers wait only for its first and last moments
  * IX_outbox_claim stays, without the column, until the change is done: claims through it cost one lookup an event more

Migrated in … Its indexes are as they were.
`

const alreadyText = `dbo.outbox_event.payload
  from  VARCHAR(20) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL
  to    VARCHAR(20) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL

The column is VARCHAR already: there is nothing to migrate.
`

func TestMigrateVarchar(t *testing.T) {
	stack := nvarcharStack(t, "Rīga ā😀", "Genève", "Æ0123456789é")
	dsn := "--sql-dsn=" + stack.SQL.DSN()

	code, stdout, stderr := outboxctl(t, "migrate-varchar", "--length=10", "--guard=lock", dsn)
	if code != exitFound || stderr != "check: 0 of 3 rows\n" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	sameMigration(t, "the text", stdout, lossyText)

	// To execute what would lose something is refused, with the same exit.
	if code, stdout, _ = outboxctl(t, "migrate-varchar", "--execute", dsn); code != exitFound || !strings.HasSuffix(stdout, "Not migrated: see above. Nothing was changed.\n") {
		t.Errorf("exit %d: %s", code, stdout)
	}

	code, stdout, stderr = outboxctl(t, "migrate-varchar", "--execute", "--collation=Latin1_General_100_BIN2_UTF8", dsn)
	if code != exitDone {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	sameMigration(t, "the text", stdout, migratedText)
	var logged []string
	for line := range strings.Lines(stderr) {
		if fields := strings.Split(line, "\t"); len(fields) > 3 {
			logged = append(logged, fields[2])
			if !strings.Contains(fields[3], "/* outbox:") {
				t.Errorf("step %s is logged without its SQL: %s", fields[2], line)
			}
		}
	}
	if want := []string{"create the guard", "take the column out of IX_outbox_claim", "change the column", "put the column back into IX_outbox_claim", "drop the guard"}; !slices.Equal(logged, want) {
		t.Errorf("logged %q, want %q", logged, want)
	}

	for _, args := range [][]string{{"migrate-varchar"}, {"migrate-varchar", "--execute"}} {
		code, stdout, _ = outboxctl(t, append(args, dsn)...)
		if code != exitDone {
			t.Errorf("%v: exit %d", args, code)
		}
		sameMigration(t, "the text", stdout, alreadyText)
	}
	if code, stdout, _ = outboxctl(t, "migrate-varchar", "--json", dsn); code != exitDone || !strings.Contains(stdout, `"state": "already"`) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	code, _, stderr = outboxctl(t, "migrate-varchar", "--length=MAX", dsn)
	if code != exitFound || !strings.Contains(stderr, "already, which is not --length MAX") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

const lossyJSON = `{
  "table": "dbo.outbox_event",
  "column": "payload",
  "from": "NVARCHAR(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL",
  "to": "VARCHAR(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL",
  "state": "checked",
  "guard": "trigger",
  "from_id": "2",
  "through_id": "2",
  "complete": false,
  "rows": 1,
  "max_chars": 1,
  "max_bytes": 1,
  "lossy_rows": 1,
  "too_long_rows": 0,
  "bytes_before": 2,
  "bytes_after": 1,
  "samples": [
    {
      "id": "2",
      "bytes": 1,
      "too_long": false,
      "characters": [
        {
          "code_point": "U+0101",
          "becomes": "U+0061",
          "times": 1
        }
      ],
      "payload": "ā"
    }
  ],
  "lossless": {
    "collation": "Latin1_General_100_BIN2_UTF8",
    "length": "20",
    "max_bytes": 2,
    "bytes": 2,
    "bytes_more": 1,
    "unsavable_rows": 0
  },
  "blockers": [
    {
      "kind": "statistics",
      "name": "st",
      "problem": "uses the column",
      "remedy": "DROP STATISTICS [dbo].[outbox_event].[st]; and create them again afterwards"
    }
  ],
`

func TestMigrateVarcharJSON(t *testing.T) {
	stack := nvarcharStack(t, "before", "ā")
	if _, err := stack.SQL.Exec(t.Context(), `CREATE STATISTICS st ON dbo.outbox_event (payload)`); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := outboxctl(t, "migrate-varchar", "--json", "--from-id=2", "--show-payload", "--sql-dsn="+stack.SQL.DSN())
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	head, rest, _ := strings.Cut(stdout, `  "plan": `)
	sameMigration(t, "the JSON", head, lossyJSON)
	var tail struct {
		Plan  []struct{ Step, SQL string }
		Notes []string
	}
	if err := json.Unmarshal([]byte(`{"plan": `+rest), &tail); err != nil || len(tail.Plan) != 6 || len(tail.Notes) == 0 {
		t.Errorf("%v: %s", err, rest)
	}
}

func TestMigrateVarcharPrintsAScript(t *testing.T) {
	stack := nvarcharStack(t, "ok")
	code, stdout, stderr := outboxctl(t, "migrate-varchar", "--print-sql", "--sql-dsn="+stack.SQL.DSN())
	if code != exitDone || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if got := len(scripts.Batches(stdout)); got != 5 {
		t.Errorf("%d batches in\n%s", got, stdout)
	}
	if _, err := stack.SQL.Exec(t.Context(), `ALTER TABLE dbo.outbox_event ADD CONSTRAINT CK CHECK (payload <> N'x')`); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = outboxctl(t, "migrate-varchar", "--print-sql", "--sql-dsn="+stack.SQL.DSN())
	if code != exitFound || stdout != "" || !strings.Contains(stderr, "the check constraint CK uses the column") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestMigrateVarcharUsage(t *testing.T) {
	const dsn = "--sql-dsn=sqlserver://u:p@127.0.0.1:1?database=x"
	for name, args := range map[string][]string{
		"--from-id":       {"--from-id=5", "--execute"},
		"--print-sql":     {"--print-sql", "--execute"},
		"--lock-wait":     {"--lock-wait=0s"},
		"event_type":      {"--column=event_type"},
		"--length is":     {"--length=9000"},
		"--guard":         {"--guard=hope"},
		"name of one":     {"--collation=a b"},
		"one of payload,": {"--column=status"},
	} {
		code, stdout, stderr := outboxctl(t, append([]string{"migrate-varchar", dsn}, args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, name) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// What fails on the way exits 1 and says where the table stands.
func TestMigrateVarcharFailure(t *testing.T) {
	stack := nvarcharStack(t, "ok")
	stack.SQL.Inject(sqlemulator.Fault{Statement: "MigrateAlterColumn", Error: &sqlemulator.Error{Number: 1105, Class: 17, Message: "Could not allocate space."}})
	code, stdout, stderr := outboxctl(t, "migrate-varchar", "--execute", "--sql-dsn="+stack.SQL.DSN())
	if code != exitFailed || !strings.Contains(stderr, "outboxctl: change the column of dbo.outbox_event.payload: mssql: Could not allocate space. (1105)") {
		t.Errorf("exit %d, stderr %s", code, stderr)
	}
	if want := "\nWhere it stands: dbo.outbox_event.payload is NVARCHAR(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL, its indexes are as they were, and no guard is left\n"; !strings.HasSuffix(stdout, want) {
		t.Errorf("stdout is %s", stdout)
	}
}

// migrationKeys are the keys of a struct's JSON, as docs/json.md writes them.
func migrationKeys(of reflect.Type, prefix string) (keys []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		keys = append(keys, prefix+name)
		inner := field.Type
		below := prefix + name + "."
		if inner.Kind() == reflect.Slice {
			below = prefix + name + "[]."
			inner = inner.Elem()
		} else if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			keys = append(keys, migrationKeys(inner, below)...)
		}
	}
	return keys
}

func TestMigrateVarcharKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## migrate-varchar\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if row, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ := strings.Cut(row, "`")
			documented = append(documented, key)
		}
	}
	want := append(migrationKeys(reflect.TypeFor[maintenance.MigrationReport](), ""), "script")
	if !slices.Equal(documented, want) {
		t.Errorf("docs/json.md has\n%q\nthe report has\n%q", documented, want)
	}
}
