package infra

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"azsqloutbox/cmd/outbox-dev/local"
)

// TestTheImageDoesTheMainJob runs the worker of the container that
// infra/check-image.sh made, against engines of this process: what was committed
// arrives, and the table says so.
func TestTheImageDoesTheMainJob(t *testing.T) {
	container := os.Getenv("OUTBOX_TEST_CONTAINER")
	if container == "" {
		t.Skip("OUTBOX_TEST_CONTAINER names no container; infra/check-image.sh makes one")
	}
	stack, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stack.Close() })
	const events = 25
	for id := 1; id <= events; id++ {
		if _, err := stack.SQL.Exec(t.Context(), fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (%d, 'order', '%d', 'order-placed', '{}')`, id, id)); err != nil {
			t.Fatal(err)
		}
	}

	run := exec.CommandContext(t.Context(), "buildah", "run", "--isolation", "chroot",
		"--env", "OUTBOX_SQL_DSN="+stack.SQL.DSN(),
		"--env", "OUTBOX_SERVICEBUS_CONNECTION_STRING="+stack.Bus.ConnectionString(),
		"--env", "OUTBOX_ENTITY="+local.Entity,
		"--env", "OUTBOX_LISTEN=off",
		container, "--", "/usr/local/bin/outbox-worker", "--drain")
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("the container's worker: %v\n%s", err, output)
	}
	if got := len(stack.Bus.Messages(local.Entity)); got != events {
		t.Errorf("%d messages arrived, want %d", got, events)
	}

	// The other program sees what the worker did.
	status := exec.CommandContext(t.Context(), "buildah", "run", "--isolation", "chroot",
		"--env", "OUTBOX_SQL_DSN="+stack.SQL.DSN(), container, "--", "/usr/local/bin/outboxctl", "status", "--json")
	output, err := status.Output()
	if err != nil || !strings.Contains(string(output), `"pending"`) {
		t.Errorf("outboxctl status: %v\n%s", err, output)
	}
}
