package maintenance_test

import (
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
)

// runScript does what Management Studio does: batch after batch on one
// connection, also behind one that failed.
func (b *oldTable) runScript(text string) (failed []error) {
	b.t.Helper()
	conn, err := b.db.Conn(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	for _, batch := range scripts.Batches(text) {
		if _, err := conn.ExecContext(b.t.Context(), batch); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func TestScriptMigrates(t *testing.T) {
	for _, guard := range []maintenance.Guard{maintenance.GuardTrigger, maintenance.GuardLock} {
		for name, o := range map[string]scripts.Options{
			"default": {},
			"odd":     {Schema: "my schema", Table: "it's ]odd[", ClaimIndex: "IX\n'a]b"},
		} {
			t.Run(string(guard)+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := newOldTable(t, o)
				for _, text := range awkwardIndexes {
					b.exec(text)
				}
				m := b.migration()
				m.Guard = guard
				m.Collation = "Latin1_General_100_BIN2_UTF8"
				if guard == maintenance.GuardLock {
					b.exec(`ALTER TABLE {events} ADD CONSTRAINT DF_p DEFAULT (N'x') FOR payload`)
				}
				b.add("a", "✓✓✓", "")
				indexes := b.indexes()
				text, err := m.Script(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				b.add("much ✓✓✓")
				if failed := b.runScript(text); len(failed) == 0 || !strings.Contains(failed[0].Error(), "outbox: 0 rows would lose text and 1 are too long for VARCHAR(10)") {
					t.Errorf("a row that is too long: %v", failed)
				}
				if b.column("payload") != "nvarchar 20 SQL_Latin1_General_CP1_CI_AS 0" || b.indexes() != indexes || b.guards() != "0" {
					t.Error("something was changed, or is left")
				}
				b.exec(`DELETE FROM {events} WHERE DATALENGTH(payload) > 8`)
				if failed := b.runScript(text); len(failed) > 0 {
					t.Fatalf("%v in\n%s", failed, text)
				}
				if got := b.column("payload"); got != "varchar 10 Latin1_General_100_BIN2_UTF8 0" {
					t.Errorf("column is %q", got)
				}
				if got := b.text(`SELECT STRING_AGG(CONVERT(NVARCHAR(10), payload), ',') WITHIN GROUP (ORDER BY id) FROM {events}`); got != "a,✓✓✓," {
					t.Errorf("payloads %q", got)
				}
				b.restored(indexes)
			})
		}
	}
}
