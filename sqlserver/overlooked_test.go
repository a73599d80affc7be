package sqlserver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

// What becomes of the business data of a caller that overlooks an error of
// Enqueue: it must never be committed without its events.

// business is a table that the transaction writes first.
func (b *outbox) business() {
	b.t.Helper()
	b.exec("CREATE TABLE {business} (id INT NOT NULL PRIMARY KEY)")
	b.t.Cleanup(func() { b.exec("DROP TABLE {business}") })
}

// overlook commits a business row whatever enqueue says, and returns how many
// rows there are then and what that said.
func (b *outbox) overlook(enqueue func(*sql.Tx) error) (rows int64, err error) {
	b.t.Helper()
	tx := b.begin()
	if _, err := tx.ExecContext(testContext(b.t), b.sql("INSERT INTO {business} VALUES (1)")); err != nil {
		b.t.Fatal(err)
	}
	err = enqueue(tx)
	_ = tx.Commit()
	return b.number("SELECT COUNT(*) FROM {business}"), err
}

// refusing is a table whose server refuses the aggregate "no".
func refusing(t *testing.T, b *outbox) (*outbox, sqlserver.OutboxEvent) {
	t.Helper()
	b.exec("ALTER TABLE {events} ADD CHECK (aggregate_id <> 'no')")
	b.business()
	refused := event("{}")
	refused.AggregateID = "no"
	return b, refused
}

func TestOverlookedErrorOfTheServer(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *outbox{
		"sequence": func(t *testing.T) *outbox {
			b := newOutbox(t, scripts.Options{})
			b.needSequences()
			return b
		},
		"identity": identityTable,
	} {
		t.Run(name, func(t *testing.T) {
			b, refused := refusing(t, open(t))
			for how, enqueue := range map[string]func(context.Context, *sql.Tx, ...sqlserver.OutboxEvent) error{
				"Enqueue":       b.writer().Enqueue,
				"the statement": b.writer().EnqueueAlone,
			} {
				rows, err := b.overlook(func(tx *sql.Tx) error {
					return enqueue(testContext(t), tx, event("good"), refused)
				})
				if err == nil || !strings.Contains(err.Error(), "constraint") || rows != 0 {
					t.Errorf("%s: %v, and %d business rows were committed", how, err, rows)
				}
			}
			if n := b.number("SELECT COUNT(*) FROM {events}"); n != 0 {
				t.Errorf("%d events were committed", n)
			}
		})
	}
}

func TestOverlookedRefusal(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.business()
	rows, err := b.overlook(func(tx *sql.Tx) error {
		return b.writer().Enqueue(testContext(t), tx, sqlserver.OutboxEvent{AggregateType: "a", AggregateID: "b"})
	})
	if err == nil || rows != 0 {
		t.Errorf("%v, and %d business rows were committed", err, rows)
	}
}

// XACT_ABORT is the statement's own: the caller's later errors end what they
// ended before.
func TestEnqueueLeavesTheCallersSettings(t *testing.T) {
	b := identityTable(t)
	b.needRestoring()
	b.business()
	tx := b.begin()
	if err := b.writer().Enqueue(testContext(t), tx, event("{}")); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"INSERT INTO {business} VALUES (1)", "INSERT INTO {business} VALUES (1)", "INSERT INTO {business} VALUES (2)"} {
		if _, err := tx.ExecContext(testContext(t), b.sql(text)); (err != nil) != (i == 1) {
			t.Fatalf("statement %d: %v", i, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if n := b.number("SELECT COUNT(*) FROM {business}"); n != 2 {
		t.Errorf("%d business rows, want 2", n)
	}
}
