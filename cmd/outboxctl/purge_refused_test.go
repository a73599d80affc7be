package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Who reads the JSON learns from it that a purge was refused, and why.
func TestPurgeRefusedInJSON(t *testing.T) {
	engine := purgeEngine(t)
	for _, args := range [][]string{{}, {"--execute"}} {
		code, stdout, stderr := outboxctl(t, append([]string{"purge", "--json", "--retention=1m", "--sql-dsn=" + engine.DSN()}, args...)...)
		var r struct{ Stopped, Refused string }
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitUsage || r.Stopped != "refused" || !strings.Contains(r.Refused, "twice the lease") {
			t.Errorf("%v: exit %d, %v, stdout %q, stderr %q", args, code, err, stdout, stderr)
			continue
		}
		if strings.Contains(stderr, "setting refused") {
			t.Errorf("stderr %q", stderr)
		}
		documented(t, "purge", stdout)
	}
}
