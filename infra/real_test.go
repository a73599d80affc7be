package infra

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/sqlserver"
)

// TestThePathOnRealEngines takes events from a writer's transaction to a receiver,
// with the programs as they ship, and runs outboxctl's commands on what is left. It
// makes tables of a name of its own and drops them. infra/suites.sh says what it
// needs.
func TestThePathOnRealEngines(t *testing.T) {
	dsn, bus, queue := os.Getenv("OUTBOX_TEST_SQL_DSN"), os.Getenv("OUTBOX_TEST_SERVICEBUS"), os.Getenv("OUTBOX_TEST_SERVICEBUS_ENTITY")
	if dsn == "" || bus == "" || queue == "" {
		t.Skip("OUTBOX_TEST_SQL_DSN, OUTBOX_TEST_SERVICEBUS and OUTBOX_TEST_SERVICEBUS_ENTITY name no engines; infra/test-real.sh starts some")
	}
	p, table := buildPrograms(t), fmt.Sprintf("outbox_path_%x", rand.Uint64())
	p.env = []string{"OUTBOX_SQL_DSN=" + dsn, "OUTBOX_TABLE=" + table, "OUTBOX_SERVICEBUS_CONNECTION_STRING=" + bus, "OUTBOX_ENTITY=" + queue, "OUTBOX_SOURCE=" + table, "OUTBOX_LISTEN=off"}
	db, err := sqlserver.Open(dsn, sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := sqlserver.Names{Table: table}
	t.Cleanup(func() {
		for _, drop := range []string{
			"TABLE IF EXISTS " + names.Events(), "TABLE IF EXISTS " + names.Receipts(), "TABLE IF EXISTS " + names.Workers(),
			"TABLE IF EXISTS " + names.Controls(), "SEQUENCE IF EXISTS " + names.Sequence(),
		} {
			if _, err := db.Exec("DROP " + drop); err != nil {
				t.Errorf("DROP %s: %v", drop, err)
			}
		}
		db.Close()
	})

	p.run(t, []int{0}, "outboxctl", "schema", "apply", "--execute")
	p.run(t, []int{0}, "outboxctl", "schema", "check")

	writer, err := sqlserver.NewWriter(names)
	if err != nil {
		t.Fatal(err)
	}
	const events = 1200 // more than a claim takes
	for batch := range slices.Chunk(make([]int, events), 300) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var some []sqlserver.OutboxEvent
		for i := range batch {
			some = append(some, sqlserver.OutboxEvent{
				AggregateType: "order", AggregateID: fmt.Sprint(i), EventType: "order-placed",
				Payload: []byte(`{"price":"12 €"}`), Headers: map[string]any{"tenant": "north"},
			})
		}
		if err := writer.Enqueue(t.Context(), tx, some...); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	p.run(t, []int{0, 3}, "outboxctl", "doctor") // 3: it finds what a test's engines lack
	p.run(t, []int{0}, "outbox-worker", "--drain")
	receive(t, bus, queue, table+":", events)

	var status struct{ Pending, Parked *int }
	p.result(t, &status, "status")
	if status.Pending == nil || *status.Pending != 0 || status.Parked == nil || *status.Parked != 0 {
		t.Errorf("status after the work: %+v", status)
	}
	p.run(t, []int{0}, "outboxctl", "pause", "--all", "--reason", "a test", "--execute")
	p.run(t, []int{0}, "outboxctl", "resume", "--all", "--execute")
	// As if ten had failed for good: one is given up, the others go out after all.
	if _, err := db.ExecContext(t.Context(), "UPDATE TOP (10) "+names.Events()+" SET status = 2, processed_at = NULL, last_error = 'a test' WHERE status = 1"); err != nil {
		t.Fatal(err)
	}
	p.run(t, []int{0}, "outboxctl", "failed", "list")
	p.run(t, []int{0}, "outboxctl", "failed", "discard", "--parked", "--limit", "1", "--reason", "a test", "--execute")
	p.run(t, []int{0}, "outboxctl", "failed", "retry", "--parked", "--execute")
	p.result(t, &status, "status")
	if *status.Pending != 9 || *status.Parked != 0 {
		t.Errorf("%d events are pending and %d parked, want 9 and none", *status.Pending, *status.Parked)
	}
	p.run(t, []int{0}, "outbox-worker", "--drain")
	p.run(t, []int{0}, "outboxctl", "bench", "claim", "--rows", "2000", "--batch", "100", "--rounds", "2", "--execute")
	p.run(t, []int{0}, "outboxctl", "diagnose")

	// As if the work had been done four days ago.
	if _, err := db.ExecContext(t.Context(), "UPDATE "+names.Events()+" SET created_at = DATEADD(DAY, -4, created_at), processed_at = DATEADD(DAY, -4, processed_at) WHERE status = 1"); err != nil {
		t.Fatal(err)
	}
	var purged struct{ Rows int }
	p.result(t, &purged, "purge", "--execute")
	if purged.Rows != events {
		t.Errorf("%d rows were purged, want %d", purged.Rows, events)
	}
	p.run(t, []int{0}, "outboxctl", "rebuild", "--force", "--execute")
	p.run(t, []int{0}, "outboxctl", "rebuild", "--abort", "--execute")
}

// receive takes n messages whose ids begin so, each once, and throws away what
// others have left in the queue.
func receive(t *testing.T, connectionString, queue, prefix string, n int) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(connectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	receiver, err := client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	received := make(map[string]bool, n)
	for len(received) < n {
		messages, err := receiver.ReceiveMessages(ctx, n, nil)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d are here", err, len(received), n)
		}
		for _, m := range messages {
			if strings.HasPrefix(m.MessageID, prefix) {
				if received[m.MessageID] {
					t.Errorf("message %s came twice, though nothing had failed", m.MessageID)
				}
				received[m.MessageID] = true
				if string(m.Body) != `{"price":"12 €"}` || m.ApplicationProperties["tenant"] != "north" {
					t.Fatalf("message %s is %q with %v", m.MessageID, m.Body, m.ApplicationProperties)
				}
			}
		}
	}
}
