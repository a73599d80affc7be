package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

// diagnoseEngine has an outbox through which 120 events went, by named
// statements only.
func diagnoseEngine(t *testing.T) *emulator.Server {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	engine := newEngine(t, emulator.Config{ServiceObjective: "GP_Gen5_2"})
	db, err := sqlserver.Open(engine.DSN(), sqlserver.Options{AppName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := sqlserver.New(sqlserver.Config{DB: db, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var events []sqlserver.OutboxEvent
	for range 120 {
		events = append(events, sqlserver.OutboxEvent{AggregateType: "order", AggregateID: "7", EventType: "placed", Payload: []byte(`{"total":12.5}`)})
	}
	if err := sqlserver.Enqueue(t.Context(), tx, events...); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		claim, err := store.Claim(t.Context(), worker.ClaimRequest{EventType: "placed", Batch: 60})
		if err != nil || len(claim.Events) != 60 {
			t.Fatalf("claimed %d: %v", len(claim.Events), err)
		}
		if _, err := store.SettleSent(t.Context(), []worker.Receipt{claim.Receipt}); err != nil {
			t.Fatal(err)
		}
	}
	return engine
}

// steady takes out of a report what differs from run to run: times, shares and
// CPU, cut off or not, the widths that they take, and the order of rows that are
// sorted by them.
func steady(text string) string {
	text = regexp.MustCompile(`\d[\d.,]*( [µms]*)?…`).ReplaceAllString(text, "N…")
	text = regexp.MustCompile(`[\d.,]+ (µs|ms|s|%)(\W)`).ReplaceAllString(text, "N $1$2")
	text = regexp.MustCompile(`N (µs|ms|s)\b`).ReplaceAllString(text, "N ms")
	text = regexp.MustCompile(`(\S) +`).ReplaceAllString(text, "$1 ")
	lines := strings.Split(text, "\n")
	row := regexp.MustCompile(`^ {4}[A-Z]\w+ [A-Z]+ \d`)
	for i := 0; i < len(lines); i++ {
		end := i
		for end < len(lines) && row.MatchString(lines[end]) {
			end++
		}
		slices.Sort(lines[i:end])
		i = max(i, end)
	}
	return strings.Join(lines, "\n")
}

func TestDiagnose(t *testing.T) {
	engine := diagnoseEngine(t)
	file := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr := outboxctl(t, "diagnose", "--sql-dsn="+engine.DSN(), "--html="+file)
	if code != exitDone || !strings.HasSuffix(stderr, "the report is in "+file+"\n") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	for line := range strings.SplitSeq(stdout, "\n") {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("colours, where no terminal is")
	}
	golden(t, "diagnose", steady(stdout))
	if html, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(html), "<!doctype html>") || !strings.HasSuffix(string(html), "</html>\n") {
		t.Errorf("the file: %v, %.100s", err, html)
	}
}

func TestDiagnoseJSON(t *testing.T) {
	engine := diagnoseEngine(t)
	code, stdout, stderr := outboxctl(t, "diagnose", "--json", "--top=1", "--sql-dsn="+engine.DSN())
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var report map[string]any
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	report["seconds"] = 0
	for _, s := range report["sections"].([]any) {
		evidence := s.(map[string]any)["evidence"].(map[string]any)
		evidence["tables"] = keysOfTables(evidence["tables"].([]any))
		for _, f := range evidence["figures"].([]any) {
			if f := f.(map[string]any); f["unit"] == "ms" {
				f["value"] = 0
			}
		}
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diagnose-json", regexp.MustCompile(`[\d.,]+ (µs|ms|s)\b`).ReplaceAllString(string(text), "N ms"))
	documented(t, "diagnose", stdout)
}

// keysOfTables are the tables without their rows.
func keysOfTables(tables []any) []any {
	for _, table := range tables {
		table := table.(map[string]any)
		columns, rows := table["columns"].([]any), table["rows"].([]any)
		for _, row := range rows {
			if len(row.([]any)) != len(columns) {
				table["broken"] = true
			}
		}
		delete(table, "rows")
	}
	return tables
}

// documented holds docs/json.md to the keys that a command prints: its section
// names each of them in backquotes.
func documented(t *testing.T, command, text string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## "+command+"\n")
	if !ok {
		t.Fatalf("docs/json.md has no section %q", command)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if !seen[key] && !strings.Contains(section, "`"+key+"`") {
					t.Errorf("docs/json.md, %s: the key %q is not there", command, key)
				}
				seen[key] = true
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(value)
}

func TestDiagnoseExitCodes(t *testing.T) {
	engine := diagnoseEngine(t)
	dsn := "--sql-dsn=" + engine.DSN()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"diagnose"}, exitUsage, "--sql-dsn"},
		{[]string{"diagnose", dsn, "--top=0"}, exitUsage, "--top is 0"},
		{[]string{"diagnose", dsn, "--since=yesterday"}, exitUsage, "neither a duration"},
		{[]string{"diagnose", dsn, "--since=-2h"}, exitUsage, "must be more than 0"},
		{[]string{"diagnose", dsn, "--since=2999-01-01"}, exitUsage, "since is 2999-01-01 00:00:00 UTC"},
		{[]string{"diagnose", dsn, "--table=elsewhere"}, exitFailed, "the table dbo.elsewhere cannot be seen"},
		{[]string{"diagnose", dsn, "--html=/no/such/folder/x.html"}, exitFailed, "write the report"},
		{[]string{"diagnose", dsn, "--since=2026-01-31"}, exitDone, ""},
		{[]string{"diagnose", dsn, "--since=2026-01-31T08:00:00Z"}, exitDone, ""},
	} {
		code, stdout, stderr := outboxctl(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || code != exitDone && stdout != "" {
			t.Errorf("%v: exit %d, stderr %q, stdout %.80q", c.args, code, stderr, stdout)
		}
	}
	// What it finds is a report and no failure: nothing may be read here, and yet.
	for _, view := range []string{"sys.dm_exec_query_stats", "sys.dm_db_wait_stats", "sys.dm_db_resource_stats", "sys.dm_db_partition_stats"} {
		if _, err := engine.FakeView(emulator.FakeView{Name: view, Denied: true}); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, _ := outboxctl(t, "diagnose", dsn)
	if code != exitDone || !strings.Contains(stdout, "GRANT VIEW DATABASE STATE TO [dbo];") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
}
