package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance/sizing"
)

// sizeRow is a row of the table in docs/deploy.md: the arguments in the first
// cell, what comes of them in the others.
func sizeRow(args string, p sizing.Plan) string {
	vCores := "`" + p.Objective + "`"
	if noSize(p) {
		vCores = "no size"
	}
	broker := fmt.Sprintf("Standard, %.4g credits/s", p.CreditsPerSecond)
	if p.ServiceBusTier == sizing.Premium {
		broker = "Premium, " + quantity.Of(p.MessagingUnits, "unit")
	}
	return fmt.Sprintf("| `%s` | %s | %s | %.4g | %.4g | %s | %d |", args, vCores,
		strings.ReplaceAll(p.LimitingFactor, "_", " "), p.LogMBPerSecond, p.StorageGB, broker, p.Replicas)
}

func deployPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The table that people read is what the command says.
func TestThePageSizesAsTheCommand(t *testing.T) {
	page := deployPage(t)
	rows := regexp.MustCompile("(?m)^\\| `(--events-per-second [^`]+)` \\|.*$").FindAllStringSubmatch(page, -1)
	if len(rows) < 8 {
		t.Fatalf("docs/deploy.md has %d rows of sizes", len(rows))
	}
	for _, row := range rows {
		_, out, errs := runSize(t, append(strings.Fields(row[1]), "--json")...)
		var p sizing.Plan
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Errorf("%s: %v: %s", row[1], err, errs)
			continue
		}
		if want := sizeRow(row[1], p); row[0] != want {
			t.Errorf("docs/deploy.md has\n%s\nand outboxctl size says\n%s", row[0], want)
		}
	}
}

// What the page has people send to their database runs, on the table that it speaks
// of: an old one, whose schema was completed.
func TestTheSQLOfThePageRuns(t *testing.T) {
	stack := newStack(t, local.Config{})
	runSQL(t, stack.SQL, oldOutboxSQL)
	if code, _, errs := outboxctl(t, "schema", "apply", "--execute", "--table=event", "--sql-dsn="+stack.SQL.DSN()); code != exitDone {
		t.Fatalf("schema apply: exit %d: %s", code, errs)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(deployPage(t), -1)
	for _, block := range blocks {
		runSQL(t, stack.SQL, block[1])
	}
	if len(blocks) < 4 {
		t.Errorf("docs/deploy.md has %d blocks of SQL", len(blocks))
	}
}

// Every command of outboxctl that the page names is there, with its flags.
func TestTheCommandsOfThePageExist(t *testing.T) {
	vars := kong.Vars(service.Defaults())
	vars["credentials"], vars["version"] = "", ""
	parser, err := kong.New(&cli{}, vars, kong.DefaultEnvars("OUTBOX"))
	if err != nil {
		t.Fatal(err)
	}
	flags := make(map[string][]string)
	for _, command := range parser.Model.Leaves(true) {
		_, name, _ := strings.Cut(command.FullPath(), " ") // behind the program's
		for _, group := range command.AllFlags(true) {
			for _, flag := range group {
				flags[name] = append(flags[name], "--"+flag.Name)
			}
		}
	}
	// Code spans may be broken over lines, and commands of a shell by a backslash.
	page := strings.ReplaceAll(deployPage(t), "\\\n", " ")
	spans := regexp.MustCompile("`(?:bin/)?outboxctl ([^`]+)`").FindAllStringSubmatch(page, -1)
	spans = append(spans, regexp.MustCompile(`(?m)^\s*(?:\$ )?bin/outboxctl (.+)$`).FindAllStringSubmatch(page, -1)...)
	for _, span := range spans {
		words := strings.Fields(span[1])
		command := words[0]
		if _, ok := flags[command]; !ok && len(words) > 1 {
			command += " " + words[1]
		}
		known, ok := flags[command]
		if !ok {
			t.Errorf("docs/deploy.md has %q, and there is no such command", span[1])
			continue
		}
		for _, word := range words {
			if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(name, "--") && !slices.Contains(known, name) {
				t.Errorf("docs/deploy.md has %q, and %s has no %s", span[1], command, name)
			}
		}
	}
	if len(spans) < 15 {
		t.Errorf("only %d commands were found", len(spans))
	}
}

// The roles that the page has for people are enough, and that for those who look is
// not enough to act.
func TestTheRolesOfThePageSuffice(t *testing.T) {
	stack := newStack(t, local.Config{})
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(deployPage(t), -1) {
		if strings.Contains(block[1], "CREATE ROLE") {
			runSQL(t, stack.SQL, block[1])
		}
	}
	runSQL(t, stack.SQL, `
CREATE USER looks WITH PASSWORD = 'Correct-Horse-1'; ALTER ROLE outbox_readers ADD MEMBER looks;
CREATE USER acts WITH PASSWORD = 'Correct-Horse-1'; ALTER ROLE outbox_operators ADD MEMBER acts;
INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status) VALUES (NEXT VALUE FOR dbo.outbox_event_seq, 'a', '1', 'x', '{}', 2);
INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status) VALUES (2, 'a', '1', 'x', '{}', 2)`)
	as := func(user string, want int, args ...string) {
		t.Helper()
		code, stdout, stderr := outboxctl(t, append(args, "--sql-dsn="+stack.SQL.DSNFor(user, "Correct-Horse-1"))...)
		if code != want {
			t.Errorf("%s: %v: exit %d, want %d: %s%s", user, args, code, want, stdout, stderr)
		}
	}
	for _, user := range []string{"looks", "acts"} {
		as(user, exitDone, "status")
		as(user, exitDone, "failed", "list")
		as(user, exitDone, "failed", "show", "1")
		as(user, exitDone, "schema", "check")
		as(user, exitDone, "purge")
		as(user, exitDone, "rebuild")
		as(user, exitDone, "diagnose")
	}
	as("looks", exitFailed, "failed", "retry", "--id=1", "--execute")
	as("looks", exitFailed, "pause", "--all", "--execute")
	as("acts", exitDone, "failed", "retry", "--id=1", "--execute")
	as("acts", exitDone, "failed", "discard", "--id=2", "--reason=test", "--execute")
	as("acts", exitDone, "pause", "--all", "--execute")
	as("acts", exitDone, "resume", "--all", "--execute")
}
