package main

import (
	"bytes"
	"strings"
	"testing"
)

// What README has a newcomer do: an event written, moved by a worker and shown.
func TestWriteAndReceive(t *testing.T) {
	for name, value := range served(t, "--queue", "shop") {
		t.Setenv(name, value)
	}
	t.Setenv("OUTBOX_ENTITY", "shop")
	outboxDev := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
			t.Fatalf("outbox-dev %s exits %d: %s", strings.Join(args, " "), code, &stderr)
		}
		return stdout.String()
	}
	if got, want := outboxDev("write", "--events", "2", "--event-type", "parcel-shipped", "--payload", "by night"), "2 events of type parcel-shipped committed\n"; got != want {
		t.Errorf("write says %q, want %q", got, want)
	}
	outboxDev("worker", "--drain", "--listen", "off")
	got := outboxDev("receive", "--messages", "2")
	for _, want := range []string{"  parcel-shipped\n", "  aggregate-type: order\n", "  event-id: ", "\n  by night\n"} {
		if strings.Count(got, want) != 2 {
			t.Errorf("receive shows %q, want %q twice", got, want)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"write", "--sql-dsn", "sqlserver://127.0.0.1:1?database=outbox&dial+timeout=1"}, &stdout, &stderr); code != 1 || stdout.Len() != 0 {
		t.Errorf("without a database write exits %d: %s%s", code, &stdout, &stderr)
	}
}
