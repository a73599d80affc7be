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

func TestWrongUsageSaysWhatIsRight(t *testing.T) {
	for want, args := range map[string][]string{
		"leave it out":          {"failed", "retry", "--all", "--parked"},
		"or say --all":          {"failed", "retry"},
		"write 90s, 30m or 72h": {"purge", "--retention", "3d"},
	} {
		if code, _, stderr := outboxctl(t, args...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, want %q", args, code, stderr, want)
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

// A script's variable that was never set must not mean all events, all indexes,
// any hour, or the default.
func TestTypedZeroOrNothingIsRefused(t *testing.T) {
	for _, args := range []string{
		"failed retry --all --limit=0", "failed discard --all --reason=x --limit=0", "failed list --limit=0",
		"failed retry --all --older-than=0s", "failed retry --parked --id=", "failed retry --parked --event-type=",
		"failed discard --all --reason=x --by=", "pause --all --by=", "pause --all --reason=", "pause --event-type=",
		"purge --batch=0", "purge --window=", "purge --retention=0s",
		"rebuild --index=", "rebuild --maxdop=0", "rebuild --fillfactor=0", "rebuild --max-duration=0s",
		"migrate-varchar --column=", "migrate-varchar --length=", "migrate-varchar --collation=", "migrate-varchar --lock-wait=0s",
		"doctor --block-size=0", "doctor --lease=0s", "doctor --publish-deadline=0s", "doctor --servicebus-send-timeout=0s", "doctor --source=",
		"schema print --payload=", "schema check --collation=", "schema check --block-size=0",
		"size --events-per-second=9 --payload=9 --average=0", "size --events-per-second=9 --payload=9 --outage=0s", "size --events-per-second=0 --payload=9",
		"diagnose --html=", "diagnose --top=0", "bench claim --strategies=", "bench claim --rows=0",
		"status --interval=0s", "status --table=", "status --sql-dsn=",
	} {
		words := strings.Fields(args)
		flag, _, _ := strings.Cut(words[len(words)-1], "=")
		if strings.Contains(args, "--events-per-second=0") {
			flag = "--events-per-second"
		}
		if !strings.HasSuffix(args, "--sql-dsn=") && words[0] != "size" {
			words = append(words, "--sql-dsn=sqlserver://sa:x@127.0.0.1:1?database=x&encrypt=disable")
		}
		code, stdout, stderr := outboxctl(t, words...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, flag) {
			t.Errorf("%s: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
