package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"azsqloutbox/sqlserver"
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
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	insert := regexp.MustCompile("(?s)```sql\n(INSERT INTO .*?)```").FindSubmatch(readme)
	if insert == nil {
		t.Fatal("README has no INSERT")
	}
	db, err := sqlserver.Open(os.Getenv("OUTBOX_SQL_DSN"), sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), string(insert[1])); err != nil {
		t.Errorf("the INSERT of README: %v", err)
	}

	outboxDev("worker", "--drain", "--listen", "off")
	got := outboxDev("receive", "--messages", "3")
	for want, times := range map[string]int{
		"  parcel-shipped\n": 2, "\n  by night\n": 2, "  order-placed\n": 1, "\n  {\"total\": 12.5}\n": 1,
		"  aggregate-type: order\n": 3, "  event-id: ": 3,
	} {
		if strings.Count(got, want) != times {
			t.Errorf("receive shows %q, want %q %d times", got, want, times)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"write", "--sql-dsn", "sqlserver://127.0.0.1:1?database=outbox&dial+timeout=1"}, &stdout, &stderr); code != 1 || stdout.Len() != 0 {
		t.Errorf("without a database write exits %d: %s%s", code, &stdout, &stderr)
	}
}
