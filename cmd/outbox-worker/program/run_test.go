package program

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
)

const (
	goodDSN = "sqlserver://sa:s3cret-pw@127.0.0.1:1?database=outbox&encrypt=disable"
	goodBus = "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=c2VjcmV0LWtleQ=="
)

// outboxWorker runs the program and returns its exit code and what it wrote.
func outboxWorker(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestWrongSettingsExitTwoWithOneLine(t *testing.T) {
	routes := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(routes, []byte("routes:\n  - event-type: a\n    entity: q\n    sesion-id: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	everything := filepath.Join(t.TempDir(), "everything.yaml")
	if err := os.WriteFile(everything, []byte("default: {entity: q}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no lanes", []string{"--lanes", "0"}, "--lanes"},
		{"too many lanes", []string{"--lanes", "1000"}, "--lanes"},
		{"batch beyond lock escalation", []string{"--batch", "5000"}, "--batch"},
		{"no number", []string{"--batch", "many"}, "--batch"},
		{"no duration", []string{"--lease", "60"}, "--lease"},
		{"unknown flag", []string{"--lane", "3"}, "--lane"},
		{"deadline above the lease", []string{"--publish-deadline", "90s"}, "--publish-deadline"},
		{"deadline of zero", []string{"--publish-deadline", "0s"}, "--publish-deadline"},
		{"deadline that leaves no time to settle", []string{"--publish-deadline", "59.9s"}, "--publish-deadline"},
		{"lease below a second", []string{"--lease", "10ms"}, "--lease"},
		{"negative batch bytes", []string{"--servicebus-batch-bytes=-5"}, "--servicebus-batch-bytes"},
		{"no schema", []string{"--schema", ""}, "--schema"},
		{"no port", []string{"--listen", "nonsense"}, "--listen"},
		{"no address", []string{"--listen", ""}, "--listen"},
		{"no source", []string{"--source", ""}, "--source"},
		{"no such port", []string{"--listen", ":99999"}, "--listen"},
		{"a DSN whose flag was forgotten", []string{"sqlserver://sa:s3cret-pw@h?database=x"}, "unexpected argument"},
		{"a connection string behind another flag", []string{"--lease", goodBus}, "--lease"},
		{"a password that is not encoded", []string{"--sql-dsn", "sqlserver://sa:x?s3cret-pw@h?database=x"}, "percent-encoded"},
		{"an owner longer than its column", []string{"--owner", strings.Repeat("o", 101)}, "--owner"},
		{"paused and drain", []string{"--paused", "--drain"}, "--paused"},
		{"unknown route key", []string{"--config", routes}, "sesion-id"},
		{"a default route in both places", []string{"--config", everything}, "they are the same thing"},
		{"no such route file", []string{"--config", "/nowhere/routes.yaml"}, "routes.yaml"},
		{"entity with a blank", []string{"--entity", "my queue"}, "entity"},
		{"typo in the DSN", []string{"--sql-dsn", "sqlserver://sa:s3cret-pw@h?databse=x"}, "databse"},
		{"scheme of another driver", []string{"--sql-dsn", "Server=tcp:h,1433;Password=s3cret-pw"}, "ADO"},
		{"wrong case of fedauth", []string{"--sql-dsn", "sqlserver://h?database=x&fedauth=activedirectorymanagedidentity"}, "fedauth"},
		{"DSN without a database", []string{"--sql-dsn", "sqlserver://sa:s3cret-pw@h"}, "database"},
		{"connection string that is none", []string{"--servicebus-connection-string", "SharedAccessKey=c2VjcmV0LWtleQ=="}, "ConnectionString"},
		{"a bound that would park everything", []string{"--max-event-bytes", "64"}, "--max-event-bytes is 64, it may be 1024 or more"},
		{"two ways to the broker", []string{"--servicebus-namespace", "a.servicebus.windows.net"}, "servicebus-namespace"},
		{"unknown credential", []string{"--servicebus-credential", "magic", "--servicebus-namespace", "a.servicebus.windows.net"}, "credential"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--sql-dsn", goodDSN, "--entity", "q", "--listen", "off"}, tt.args...)
			if tt.args[0] != "--servicebus-credential" { // which is for a namespace
				args = append([]string{"--servicebus-connection-string", goodBus}, args...)
			}
			code, stdout, stderr := outboxWorker(t, t.Context(), args...)
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
				t.Errorf("it wrote %q and %q, want one line on stderr that names %q", stdout, stderr, tt.want)
			}
			for _, secret := range []string{"s3cret-pw", "c2VjcmV0LWtleQ"} {
				if strings.Contains(stderr, secret) {
					t.Errorf("the secret %s is in %q", secret, stderr)
				}
			}
		})
	}
}

// A secret in a file ends with a line break, and a compose file writes an empty
// variable for one that is left out: neither is an error.
func TestWhatDeploymentsDoToVariables(t *testing.T) {
	for name, value := range map[string]string{
		"OUTBOX_SQL_DSN": " " + goodDSN + "\n", "OUTBOX_SERVICEBUS_CONNECTION_STRING": goodBus + "\r\n",
		"OUTBOX_BATCH": "", "OUTBOX_SCHEMA": "", "OUTBOX_LEASE": "", "OUTBOX_PAUSED": "", "OUTBOX_SERVICEBUS_BATCH_BYTES": "",
	} {
		t.Setenv(name, value)
	}
	var c cli
	var stderr bytes.Buffer
	if _, ok := service.Parse(&c, Name, "", nil, &stderr, &stderr); !ok {
		t.Fatal(stderr.String())
	}
	if c.SQL.DSN != goodDSN || c.ServiceBus.ConnectionString != goodBus {
		t.Errorf("the DSN is %q, the connection string %q", c.SQL.DSN, c.ServiceBus.ConnectionString)
	}
	if c.Claim.Batch != 500 || c.SQL.Schema != "dbo" || c.Claim.Lease != time.Minute || c.Claim.Paused || c.ServiceBus.BatchBytes != nil {
		t.Errorf("empty variables made %+v", c.Settings.Claim)
	}
}

func TestHelpAndVersionNeedNoSetting(t *testing.T) {
	for _, flag := range []string{"--help", "--version"} {
		code, stdout, stderr := outboxWorker(t, t.Context(), flag)
		if code != 0 || stdout == "" || stderr != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", flag, code, stdout, stderr)
		}
	}
}

func TestWhatNoWaitingMendsExitsOne(t *testing.T) {
	stack, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stack.Close() })
	dsn := stack.SQL.DSN()
	twoSpellings := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(twoSpellings, []byte("routes:\n- {event-type: paid, entity: a}\n- {event-type: PAID, entity: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a table that is not there", []string{"--sql-dsn", dsn, "--table", "events"}, "events"},
		{"two routes that the column calls equal", []string{"--sql-dsn", dsn, "--config", twoSpellings}, "equal"},
		{"a login that is refused", []string{"--sql-dsn", strings.Replace(dsn, "Outbox-Local-1", "s3cret-pw", 1)}, "login"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			args := append([]string{"--servicebus-connection-string", stack.Bus.ConnectionString(), "--entity", local.Entity, "--listen", "off", "--log-level", "error"}, tt.args...)
			code, _, stderr := outboxWorker(t, ctx, args...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.Contains(strings.ToLower(stderr), tt.want) {
				t.Errorf("it wrote %q, want one line that names %q", stderr, tt.want)
			}
			if strings.Contains(stderr, "s3cret-pw") || strings.Contains(stderr, "goroutine") {
				t.Errorf("a secret or a stack trace in %q", stderr)
			}
		})
	}
}
