package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/sqlserver/emulator"
)

// scratchTables counts what is there beside the outbox.
func scratchTables(t *testing.T, engine *emulator.Server) int {
	t.Helper()
	sets, err := engine.Exec(t.Context(), "SELECT t.name FROM sys.tables AS t WHERE t.name LIKE '%bench%';")
	if err != nil {
		t.Fatal(err)
	}
	return len(sets[0].Rows)
}

// What was measured differs from run to run.
var benchFigures = []replacement{
	replacing(`(?m)^((?:insert|pipeline|update-output|update-top|delete-output) +(?:covering|slim)).*$`, "$1 …"),
	replacing(`(?m)^(CPU µs of .*: ).*$`, "$1…"),
	replacing(`(?m)^(By CPU ).*$`, "$1…"),
	replacing(`(CPU|reads) [0-9.]+ instead of [0-9.]+`, "$1 N instead of N"),
	replacing(`strategy +index .*`, "strategy index …"),
	replacing(`  +`, " "),
}

func TestBenchClaim(t *testing.T) {
	stack := newStack(t, local.Config{})
	args := []string{"bench", "claim", "--sql-dsn", stack.SQL.DSN(), "--rows", "400", "--batch", "20", "--rounds", "3"}
	code, stdout, stderr := outboxctl(t, args...)
	if code != exitDone || stderr != "" || stack.SQL.StatementCount("BenchCreateScratch") > 0 {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	golden(t, "bench-claim-plan", stdout)
	code, stdout, _ = outboxctl(t, append(args, "--json")...)
	if code != exitDone {
		t.Errorf("exit %d", code)
	}
	golden(t, "bench-claim-plan-json", stdout)

	code, stdout, stderr = outboxctl(t, append(args, "--execute")...)
	if code != exitDone || scratchTables(t, stack.SQL) > 0 || !strings.Contains(stderr, "claim by the slim index: 1 of 3 rounds") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	golden(t, "bench-claim", stdout, benchFigures...)

	code, stdout, _ = outboxctl(t, append(args, "--execute", "--json")...)
	documented(t, "bench claim", stdout)
	var result benchResult
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != exitDone {
		t.Fatalf("exit %d, %v in\n%s", code, err, stdout)
	}
	if len(result.Results) != 10 || !result.Executed || result.Cheapest.CPU == nil || result.Cheapest.Log != nil || !strings.Contains(stdout, `"log_bytes_per_event": null`) {
		t.Errorf("%s", stdout)
	}
}

func TestBenchClaimWithoutTheRight(t *testing.T) {
	stack := newStack(t, local.Config{})
	if _, err := stack.SQL.FakeView(emulator.FakeView{Name: "sys.dm_exec_query_stats", Denied: true}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"--execute"}, {"--json"}, {"--execute", "--json"}} {
		code, stdout, stderr := outboxctl(t, append([]string{"bench", "claim", "--sql-dsn", stack.SQL.DSN()}, args...)...)
		if code != exitFound || !strings.Contains(stderr, "GRANT VIEW DATABASE STATE TO [dbo];") || scratchTables(t, stack.SQL) > 0 {
			t.Errorf("%v: exit %d, stderr %q", args, code, stderr)
		}
		if asJSON := strings.Contains(fmt.Sprint(args), "--json"); asJSON != strings.Contains(stdout, `"refused": "bench claim beside dbo.outbox_event refused, nothing was changed`) || !asJSON && stdout != "" {
			t.Errorf("%v: stdout %q", args, stdout)
		}
	}
}

func TestBenchClaimUsage(t *testing.T) {
	stack := newStack(t, local.Config{})
	for want, args := range map[string][]string{
		"--rows is 0, it must be 1 or more":                            {"--rows", "0"},
		"--rows is 100, and 4 strategies of 8 rounds":                  {"--rows", "100"},
		"--batch is 3000, must be 1 to 2000":                           {"--batch", "3000", "--rows", "1000000"},
		`--strategies names "merge", may name pipeline, update-output`: {"--strategies", "merge"},
		`--strategies names "pipeline" twice`:                          {"--strategies", "pipeline,pipeline"},
		"--rounds is -1, must be 1 to 1000":                            {"--rounds=-1"},
		"--payload is 0, it must be 1 or more":                         {"--payload", "0"},
	} {
		code, stdout, stderr := outboxctl(t, append([]string{"bench", "claim", "--sql-dsn", stack.SQL.DSN()}, args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
