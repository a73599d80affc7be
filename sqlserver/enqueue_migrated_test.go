package sqlserver_test

import (
	"strings"
	"testing"
	"time"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// What migrate-varchar does to a table under a Writer that remembers the columns.
const (
	toCodePage = "ALTER TABLE {events} ALTER COLUMN payload VARCHAR(2000) COLLATE Latin1_General_CI_AS NOT NULL"
	toLonger   = "ALTER TABLE {events} ALTER COLUMN payload NVARCHAR(4000) NOT NULL"
)

// wideOutbox has NVARCHAR payloads and no index that holds them.
func wideOutbox(t *testing.T) *outbox {
	t.Helper()
	b := newOutbox(t, scripts.Options{Payload: "NVARCHAR(2000)", SlimClaimIndex: true})
	b.needSequences()
	return b
}

// learn has the Writer look at the columns.
func learn(t *testing.T, b *outbox) *sqlserver.Writer {
	t.Helper()
	w := b.writer()
	if err := b.enqueue(testContext(t), w, event("日本")); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWriterSeesAMigratedColumn(t *testing.T) {
	for name, b := range map[string]*outbox{"sequence": wideOutbox(t), "identity": identityTable(t)} {
		t.Run(name, func(t *testing.T) {
			if name == "identity" {
				b.exec("DROP INDEX IX_outbox_claim ON {events}; ALTER TABLE {events} ALTER COLUMN payload NVARCHAR(2000) NOT NULL")
			}
			w := learn(t, b)
			b.exec("DELETE FROM {events}")
			b.exec(toCodePage)
			// No transaction fails that need not.
			if err := b.enqueue(testContext(t), w, event("Größe"), event("plain")); err != nil {
				t.Errorf("what the new column has: %v", err)
			}
			b.exec("ALTER TABLE {events} ALTER COLUMN payload NVARCHAR(2000) NOT NULL")
			if err := b.enqueue(testContext(t), w, event("plain")); err != nil {
				t.Fatal(err)
			}
			b.exec(toCodePage)
			err := b.enqueue(testContext(t), w, event("plain"), event("日本"))
			if err == nil || !strings.Contains(err.Error(), "event 1: payload") {
				t.Errorf("what the new column does not have: %v", err)
			}
			if n := b.number("SELECT COUNT(*) FROM {events} WHERE payload IN ('Größe', 'plain')"); n != 3 {
				t.Errorf("%d events are as they were sent, want 3", n)
			}
			if n := b.number("SELECT COUNT(*) FROM {events}"); n != 3 {
				t.Errorf("%d events were written, want 3", n)
			}
		})
	}
}

// What was refused by the columns of before is judged again.
func TestWriterSeesALongerColumn(t *testing.T) {
	b := wideOutbox(t)
	w := learn(t, b)
	long := event(strings.Repeat("x", 3000))
	if err := b.enqueue(testContext(t), w, long); err == nil {
		t.Error("3,000 characters were taken for 2,000")
	}
	b.exec(toLonger)
	if err := b.enqueue(testContext(t), w, long); err != nil {
		t.Error(err)
	}
}

// The writer has passed every check of its own when the column changes: its
// INSERT waits for the migration and must see what came of it.
func TestWriterMeetsAChangeBetweenLookAndWrite(t *testing.T) {
	server, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	b := newOutboxOn(t, server.DSN(), scripts.Options{Payload: "NVARCHAR(2000)", SlimClaimIndex: true})
	w := learn(t, b)
	migration := b.begin()
	if _, err := migration.ExecContext(testContext(t), b.sql(toCodePage)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.enqueue(testContext(t), w, event("日本")) }()
	waits := func() bool {
		for _, l := range server.Locks() {
			if l.Waiting() {
				return true
			}
		}
		return false
	}
	for deadline := time.Now().Add(30 * time.Second); !waits(); {
		if time.Now().After(deadline) {
			t.Fatal("the writer does not wait for the migration")
		}
		time.Sleep(time.Millisecond)
	}
	if err := migration.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "event 0: payload") {
		t.Errorf("a text that the migrated column does not have: %v", err)
	}
	if n := b.number("SELECT COUNT(*) FROM {events}"); n != 1 {
		t.Errorf("%d events, want the first only", n)
	}
}

// The procedure was made for the type of before.
func TestProcedureSeesAMigratedColumn(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *outbox{"sequence": wideOutbox, "identity": identityTable} {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			b.options.Payload = "NVARCHAR(2000)"
			procedure := b.installProcedure()
			b.exec("DROP INDEX IX_outbox_claim ON {events}")
			b.exec(toCodePage)
			const good, bad = `{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"Größe"}`,
				`{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"日本"}`
			if err := b.call(procedure, "["+good+","+good+"]"); err != nil {
				t.Errorf("what the new column has: %v", err)
			}
			for _, text := range []string{bad, strings.Replace(bad, "日本", `\u65e5\u672c`, 1)} {
				if err := b.call(procedure, "["+good+","+text+"]"); err == nil || !strings.Contains(err.Error(), "has changed") {
					t.Errorf("%s: %v", text, err)
				}
			}
			if n := b.number("SELECT COUNT(*) FROM {events} WHERE payload = 'Größe'"); n != 2 || b.number("SELECT COUNT(*) FROM {events}") != 2 {
				t.Errorf("%d events are as they were sent, want the first two and no other", n)
			}
		})
	}
}
