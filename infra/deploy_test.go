package infra

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/worker"
)

func files(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		all[filepath.Base(name)] = source(t, name)
	}
	return all
}

// variables are the OUTBOX_… names of the worker's flags and of those of outboxctl.
func variables(t *testing.T) []string {
	t.Helper()
	var settings service.Settings
	vars := kong.Vars(service.Defaults())
	vars["credentials"] = "any"
	model, err := kong.New(&settings, kong.DefaultEnvars("OUTBOX"), vars)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, flag := range model.Model.Flags {
		names = append(names, flag.Envs...)
	}
	if !slices.Contains(names, "OUTBOX_SQL_DSN") {
		t.Fatalf("the worker's flags were not read: %v", names)
	}
	// The commands of outboxctl are in its main package, so their tags are read.
	for _, source := range files(t, "../cmd/outboxctl/*.go") {
		for _, tag := range regexp.MustCompile(`env:"(OUTBOX_\w+)"`).FindAllStringSubmatch(source, -1) {
			names = append(names, tag[1])
		}
	}
	return names
}

func TestEverySettingIsAFlagOfThePrograms(t *testing.T) {
	known := variables(t)
	seen := 0
	for _, pattern := range []string{"*.bicep", "modules/*.bicep", "Dockerfile"} {
		for file, source := range files(t, pattern) {
			for _, name := range regexp.MustCompile(`\bOUTBOX_[A-Z_]+`).FindAllString(source, -1) {
				seen++
				if !slices.Contains(known, name) {
					t.Errorf("%s: no program has the setting %s", file, name)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d settings were found", seen)
	}
}

// TestJobsRunCommandsThatExist compares the arguments of the jobs with the tags of
// outboxctl's commands.
func TestJobsRunCommandsThatExist(t *testing.T) {
	jobs := files(t, "modules/jobs.bicep")["jobs.bicep"]
	for _, args := range regexp.MustCompile(`args: \['(\w+)', ([^\]]+)\]`).FindAllStringSubmatch(jobs, -1) {
		source, err := os.ReadFile("../cmd/outboxctl/" + args[1] + ".go")
		if err != nil {
			t.Errorf("outboxctl has no command %s: %v", args[1], err)
		}
		if !strings.Contains(args[2], "'--execute'") {
			t.Errorf("%s only shows its plan: %s", args[1], args[2])
		}
		for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(args[2], -1) {
			field := ""
			for word := range strings.SplitSeq(flag[1], "-") {
				field += strings.ToUpper(word[:1]) + word[1:]
			}
			if flag[1] != "json" && !regexp.MustCompile(`(?m)^\t`+field+`\s`).Match(source) {
				t.Errorf("outboxctl %s has no --%s", args[1], flag[1])
			}
		}
	}
	if n := strings.Count(jobs, "'--execute'"); n != 2 {
		t.Errorf("%d jobs execute, want purge and rebuild", n)
	}
}

// TestRoleIDs holds the ids of Microsoft's list of built-in roles (azure-docs,
// role-based-access-control/built-in-roles).
func TestRoleIDs(t *testing.T) {
	want := map[string]string{
		"Azure Service Bus Data Sender": "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39",
		"AcrPull":                       "7f951dda-4ed3-4680-a7ca-43fe172d538d",
		"Key Vault Secrets User":        "4633458b-17de-408a-874b-0445c86b69e6",
	}
	got := map[string]string{}
	for _, source := range files(t, "modules/*.bicep") {
		for _, role := range regexp.MustCompile(`// (.+)\nvar \w+RoleId = '([^']+)'`).FindAllStringSubmatch(source, -1) {
			got[role[1]] = role[2]
		}
		if n := len(regexp.MustCompile(`'[0-9a-f]{8}-[0-9a-f-]{27}'`).FindAllString(source, -1)); n > strings.Count(source, "RoleId = '") {
			t.Errorf("%d ids in %.80q have no name", n, source)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("roles %v, want %v", got, want)
	}
}

// TestRightsToSendAreGivenForEntities: a role at the namespace would let the worker
// send to what other programs own.
func TestRightsToSendAreGivenForEntities(t *testing.T) {
	source := files(t, "modules/servicebus.bicep")["servicebus.bicep"]
	scopes := regexp.MustCompile(`(?m)^ *scope: (.+)$`).FindAllStringSubmatch(source, -1)
	if len(scopes) != 2 || scopes[0][1] != "queues[i]" || scopes[1][1] != "topics[i]" {
		t.Errorf("scopes %v, want queues[i] and topics[i]", scopes)
	}
	if strings.Count(source, "requiresDuplicateDetection: true") != 2 {
		t.Error("an entity has no duplicate detection")
	}
}

func TestProbesAskWhatTheWorkerAnswers(t *testing.T) {
	source := files(t, "modules/worker.bicep")["worker.bicep"]
	health, err := os.ReadFile("../cmd/outbox-worker/service/health.go")
	if err != nil {
		t.Fatal(err)
	}
	probes := regexp.MustCompile(`type: '(Liveness|Readiness)'\s+httpGet: \{\s+path: '([^']+)'`).FindAllStringSubmatch(source, -1)
	if len(probes) != 2 {
		t.Fatalf("%d probes, want two", len(probes))
	}
	for _, probe := range probes {
		// A database that is away is no reason to restart a container.
		if want := map[string]string{"Liveness": "/livez", "Readiness": "/readyz"}[probe[1]]; probe[2] != want {
			t.Errorf("%s asks %s, want %s", probe[1], probe[2], want)
		}
		if !strings.Contains(string(health), `"GET `+probe[2]+`"`) {
			t.Errorf("the worker does not answer %s", probe[2])
		}
	}
}

func TestThePlatformWaitsLongerThanTheWorker(t *testing.T) {
	main := files(t, "main.bicep")["main.bicep"]
	if want := fmt.Sprintf("param graceSeconds int = %d\n", int(worker.DefaultGrace.Seconds())); !strings.Contains(main, want) {
		t.Errorf("main.bicep has no line %q", want)
	}
	source := files(t, "modules/worker.bicep")["worker.bicep"]
	for _, want := range []string{"terminationGracePeriodSeconds: graceSeconds + 15", "value: '${graceSeconds}s'"} {
		if !strings.Contains(source, want) {
			t.Errorf("worker.bicep does not hold %q", want)
		}
	}
}

// TestTheBacklogQuery: a parameter instead of the literal would pass the filtered
// index over.
func TestTheBacklogQuery(t *testing.T) {
	source := files(t, "modules/worker.bicep")["worker.bicep"]
	match := regexp.MustCompile(`var backlogQuery = '(.*)'`).FindStringSubmatch(source)
	if match == nil {
		t.Fatal("there is no backlogQuery")
	}
	query := strings.NewReplacer("${eventsPerReplica * scaleToReplicas}", "1000", "${schema}", "dbo", "${table}", "outbox_event").Replace(match[1])
	if strings.Contains(query, "$") || !strings.Contains(query, "WHERE status = 0)") || !strings.Contains(query, "OPTION (RECOMPILE)") {
		t.Errorf("the query is %s", query)
	}
	stack, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stack.Close() })
	db, err := sql.Open("sqlserver", stack.SQL.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	// KEDA wants one number that is never NULL, of an empty table as well.
	var pending int
	if err := db.QueryRowContext(t.Context(), query).Scan(&pending); err != nil || pending != 0 {
		t.Errorf("%s: %d pending events in an empty table, %v", query, pending, err)
	}
	// An identity in an mssql rule can freeze all scaling (azure-container-apps #1463).
	rule := source[strings.Index(source, "var scaleRules"):strings.Index(source, "resource worker")]
	if strings.Contains(rule, "identity") {
		t.Error("the mssql rule names an identity")
	}
}

// TestTheDSNIsOneThatTheProgramsTake fills in what only Azure knows.
func TestTheDSNIsOneThatTheProgramsTake(t *testing.T) {
	main := files(t, "main.bicep")["main.bicep"]
	match := regexp.MustCompile(`var dsnEnd = '(.*)'`).FindStringSubmatch(main)
	if match == nil {
		t.Fatal("there is no dsnEnd")
	}
	end := strings.NewReplacer("${sqlHost}", "contoso.database.windows.net", "${uriComponent(databaseName)}", "outbox").Replace(match[1])
	settings := service.DatabaseSettings{
		DSN:    "sqlserver://00000000-0000-0000-0000-000000000001" + end,
		Schema: "dbo", Table: "outbox_event", ClaimIndex: "IX_outbox_claim", RetryIndex: "IX_outbox_retry",
	}
	if err := settings.Check(); err != nil {
		t.Error(err)
	}
}

// TestTheRoutesOfTheParameterFiles reads them as the worker does, and looks for their
// entities among those that are made.
func TestTheRoutesOfTheParameterFiles(t *testing.T) {
	seen := 0
	for name, source := range files(t, "parameters/*.bicepparam") {
		match := regexp.MustCompile(`(?s)param routes = \'\'\'\n(.*?)\'\'\'`).FindStringSubmatch(source)
		if match == nil {
			continue
		}
		seen++
		file := filepath.Join(t.TempDir(), "routes.yaml")
		if err := os.WriteFile(file, []byte(match[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		settings := service.ServiceBusSettings{Namespace: "contoso.servicebus.windows.net", Credential: "managed-identity", Config: file, Connections: 1, SendTimeout: 10 * time.Second}
		publisher, _, err := settings.Publisher(zap.NewNop())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := publisher.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, entity := range regexp.MustCompile(`entity: (\S+)`).FindAllStringSubmatch(match[1], -1) {
			if !strings.Contains(source, "{ name: '"+entity[1]+"', kind: ") {
				t.Errorf("%s routes to %s, which it does not make", name, entity[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no parameter file has routes")
	}
}
