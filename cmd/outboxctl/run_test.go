package main

import (
	"bytes"
	"strings"
	"testing"
)

// outboxctl runs the command in this process.
func outboxctl(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestHelpNeedsNoSetting(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"schema", "--help"}, {"--version"}} {
		code, stdout, stderr := outboxctl(t, args...)
		if code != exitDone || stdout == "" || stderr != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestHelpLeavesOutWhatACommandDoesNotLookAt(t *testing.T) {
	for command, want := range map[string]struct{ dsn, table bool }{
		"size": {false, false}, "schema print": {false, true}, "schema check": {true, true}, "status": {true, true},
	} {
		_, help, _ := outboxctl(t, append(strings.Fields(command), "--help")...)
		if strings.Contains(help, "--sql-dsn") != want.dsn || strings.Contains(help, "--table") != want.table {
			t.Errorf("%s: want the DSN %v, the table %v in\n%s", command, want.dsn, want.table, help)
		}
	}
}

func TestWrongUsageExitsTwoWithOneLine(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"unknown"},
		{"schema"},
		{"schema", "print", "--table="},
		{"schema", "print", "--no-such-flag"},
		{"failed", "retry", "--parked", "--id="},
	} {
		code, _, stderr := outboxctl(t, args...)
		if code != exitUsage || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, stderr %q", args, code, stderr)
		}
	}
}
