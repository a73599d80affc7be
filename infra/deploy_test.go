package infra

import (
	"cmp"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance/sizing"
	"azsqloutbox/worker"
)

// TestRoleIDs holds the ids of Microsoft's list of built-in roles (azure-docs,
// role-based-access-control/built-in-roles).
func TestRoleIDs(t *testing.T) {
	want := map[string]string{
		"Azure Service Bus Data Sender": "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39",
		"AcrPull":                       "7f951dda-4ed3-4680-a7ca-43fe172d538d",
		"Key Vault Secrets User":        "4633458b-17de-408a-874b-0445c86b69e6",
	}
	got := map[string]string{}
	for _, text := range files(t, "modules/*.bicep") {
		for _, role := range regexp.MustCompile(`// (.+)\nvar \w+RoleId = '([^']+)'`).FindAllStringSubmatch(text, -1) {
			got[role[1]] = role[2]
		}
		if n := len(regexp.MustCompile(`'[0-9a-f]{8}-[0-9a-f-]{27}'`).FindAllString(text, -1)); n > strings.Count(text, "RoleId = '") {
			t.Errorf("%d ids in %.80q have no name", n, text)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("roles %v, want %v", got, want)
	}
}

// TestRightsToSendAreGivenForEntities: a role at the namespace would let the worker
// send to what other programs own.
func TestRightsToSendAreGivenForEntities(t *testing.T) {
	text := source(t, "modules/senders.bicep")
	scopes := regexp.MustCompile(`(?m)^ *scope: (.+)$`).FindAllStringSubmatch(text, -1)
	if len(scopes) != 2 || scopes[0][1] != "queues[i]" || scopes[1][1] != "topics[i]" {
		t.Errorf("scopes %v, want queues[i] and topics[i]", scopes)
	}
	if strings.Count(source(t, "modules/servicebus.bicep"), "requiresDuplicateDetection: true") != 2 {
		t.Error("an entity has no duplicate detection")
	}
}

func TestProbesAskWhatTheWorkerAnswers(t *testing.T) {
	text := source(t, "modules/worker.bicep")
	health := source(t, "../cmd/outbox-worker/service/health.go")
	probes := regexp.MustCompile(`type: '(Liveness|Readiness)'\s+httpGet: \{\s+path: '([^']+)'`).FindAllStringSubmatch(text, -1)
	if len(probes) != 2 {
		t.Fatalf("%d probes, want two", len(probes))
	}
	for _, probe := range probes {
		// A database that is away is no reason to restart a container.
		if want := map[string]string{"Liveness": "/livez", "Readiness": "/readyz"}[probe[1]]; probe[2] != want {
			t.Errorf("%s asks %s, want %s", probe[1], probe[2], want)
		}
		if !strings.Contains(health, `"GET `+probe[2]+`"`) {
			t.Errorf("the worker does not answer %s", probe[2])
		}
	}
}

func TestThePlatformWaitsLongerThanTheWorker(t *testing.T) {
	main := source(t, "main.bicep")
	if want := fmt.Sprintf("param graceSeconds int = %d\n", int(worker.DefaultGrace.Seconds())); !strings.Contains(main, want) {
		t.Errorf("main.bicep has no line %q", want)
	}
	if want := fmt.Sprintf("param leaseSeconds int = %d\n", int(worker.DefaultLease.Seconds())); !strings.Contains(main, want) {
		t.Errorf("main.bicep has no line %q", want)
	}
	text := source(t, "modules/worker.bicep")
	for _, want := range []string{"terminationGracePeriodSeconds: graceSeconds + 15", "value: '${graceSeconds}s'"} {
		if !strings.Contains(text, want) {
			t.Errorf("worker.bicep does not hold %q", want)
		}
	}
}

// TestTheBacklogQuery: a parameter instead of the literal would pass the filtered
// index over.
func TestTheBacklogQuery(t *testing.T) {
	text := source(t, "modules/worker.bicep")
	match := regexp.MustCompile(`var backlogQuery = '(.*)'`).FindStringSubmatch(text)
	if match == nil {
		t.Fatal("there is no backlogQuery")
	}
	query := strings.NewReplacer("${eventsPerReplica * scaleToReplicas}", "1000", "${schema}", "dbo", "${table}", "outbox_event").Replace(match[1])
	if strings.Contains(query, "$") || !strings.Contains(query, "WHERE status = 0)") || !strings.Contains(query, "OPTION (RECOMPILE)") {
		t.Errorf("the query is %s", query)
	}
	if pending := counted(t, query); pending != 0 {
		t.Errorf("%s: %v pending events in an empty table", query, pending)
	}
	// An identity in an mssql rule can freeze all scaling (azure-container-apps #1463).
	rule := text[strings.Index(text, "var scaleRules"):strings.Index(text, "resource worker")]
	if strings.Contains(rule, "identity") {
		t.Error("the mssql rule names an identity")
	}
}

// counted is what KEDA gets with the rights of docs/deploy.md: one number, never NULL,
// which it scans into a float64. Here it is that of an empty table.
func counted(t *testing.T, query string) (n float64) {
	t.Helper()
	stack := embedded(t)
	user := regexp.MustCompile(`CREATE USER \[outbox-scaler\] WITH PASSWORD = '(.+)';\n *GRANT .+;`).FindStringSubmatch(source(t, "../docs/deploy.md"))
	if user == nil {
		t.Fatal("docs/deploy.md has no user for the scaler")
	}
	if _, err := stack.SQL.Exec(t.Context(), user[0]); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlserver", stack.SQL.DSNFor("outbox-scaler", user[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// TestTheRoutesOfTheParameterFiles reads them as the worker does. Their entities are
// among those that are made, and have sessions where, and only where, the messages
// have session ids: an entity with sessions refuses one without.
func TestTheRoutesOfTheParameterFiles(t *testing.T) {
	type route struct {
		Entity   string `yaml:"entity"`
		Sessions bool   `yaml:"session-id-from-aggregate"`
	}
	seen := 0
	for name, f := range bicep(t) {
		if f.using == "" {
			continue
		}
		wants := map[string]bool{}
		for i, e := range f.vars["entities"].items() {
			entity, _ := e.property("name").literal()
			if sessions := e.property("sessions"); sessions != nil && sessions.Text == "true" {
				wants[entity] = true
			}
			if f.vars["routes"] == nil && i == 0 && wants[entity] {
				t.Errorf("%s: %s has sessions, and no route gives its messages any", name, entity)
			}
		}
		if f.vars["routes"] == nil {
			continue
		}
		seen++
		text, _ := f.vars["routes"].literal()
		file := filepath.Join(t.TempDir(), "routes.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
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
		var routes struct {
			Routes  []route `yaml:"routes"`
			Default route   `yaml:"default"`
		}
		if err := yaml.Unmarshal([]byte(text), &routes); err != nil {
			t.Fatal(err)
		}
		for _, r := range append(routes.Routes, routes.Default) {
			made := slices.ContainsFunc(f.vars["entities"].items(), func(e *node) bool {
				entity, _ := e.property("name").literal()
				return entity == r.Entity
			})
			if !made {
				t.Errorf("%s routes to %s, which it does not make", name, r.Entity)
			}
			if r.Sessions != wants[r.Entity] {
				t.Errorf("%s: sessions of %s: %v, of the messages that are sent to it: %v", name, r.Entity, wants[r.Entity], r.Sessions)
			}
		}
	}
	if seen < 2 {
		t.Errorf("%d parameter files have routes", seen)
	}
}

// TestStandardRatesLeaveTheReceiversTheirCredits adds up what the replicas may send
// to each entity at most, and what the receivers then need.
func TestStandardRatesLeaveTheReceiversTheirCredits(t *testing.T) {
	seen := 0
	for name, f := range bicep(t) {
		if f.using == "" || f.values(f.vars["serviceBusSku"])[0] != "Standard" {
			continue
		}
		seen++
		number := func(parameter string) float64 {
			n, err := strconv.ParseFloat(f.vars[parameter].Text, 64)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, parameter, err)
			}
			return n
		}
		rates := map[string]float64{}
		if f.vars["routes"] != nil {
			text, _ := f.vars["routes"].literal()
			var routes struct {
				Routes []struct {
					Entity string
					Rate   float64
				}
			}
			if err := yaml.Unmarshal([]byte(text), &routes); err != nil {
				t.Fatal(err)
			}
			for _, r := range routes.Routes {
				rates[r.Entity] = r.Rate
			}
		}
		credits := 0.0
		for _, e := range f.vars["entities"].items() {
			entity, _ := e.property("name").literal()
			an := 2.0 // in and out
			if subscriptions := e.property("subscriptions"); subscriptions != nil {
				an = 1 + 2*float64(len(subscriptions.items())) // in, and for each its filter and out
			}
			credits += number("replicas") * cmp.Or(rates[entity], number("serviceBusRate")) * an
		}
		if credits > sizing.StandardCredits {
			t.Errorf("%s takes %v credits a second, and a Standard namespace has %d", name, credits, sizing.StandardCredits)
		}
	}
	if seen < 3 {
		t.Errorf("%d parameter files are for the Standard tier", seen)
	}
}

// TestTheNewDatabaseHoldsTheEvents of the rate that its parameter file is for: one that
// is full refuses its writers.
func TestTheNewDatabaseHoldsTheEvents(t *testing.T) {
	f := bicep(t)["parameters/standard-new-database.bicepparam"]
	if f == nil {
		t.Fatal("there is no parameter file with a new database")
	}
	holds, err := strconv.ParseFloat(f.vars["databaseGigabytes"].Text, 64)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := sizing.Size(sizing.Workload{EventsPerSecond: 350, PayloadBytes: 600})
	if err != nil {
		t.Fatal(err)
	}
	if plan.StorageGB > holds {
		t.Errorf("350 events/s take %v GB, and the database holds %v", plan.StorageGB, holds)
	}
}
