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

	"azsqloutbox/cmd/outbox-dev/local"
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

// TestTheBacklogQuery counts with what docs/deploy.md grants, and is an error, not a
// small backlog, where it cannot see the table.
func TestTheBacklogQuery(t *testing.T) {
	text := source(t, "modules/worker.bicep")
	query := backlogQuery(t)
	stack := embedded(t)
	scaler := scalersLogin(t, stack)
	if _, err := count(t, scaler, query); err == nil {
		t.Error("without a right on the table it is a number")
	}
	grant := regexp.MustCompile(`GRANT .+ TO \[outbox-scaler\];`).FindString(source(t, "../docs/deploy.md"))
	for _, batch := range []string{grant, `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status)
		SELECT g.value, 'order', '42', 'placed', '{}', g.value % 3 FROM GENERATE_SERIES(1, 30) AS g`} {
		if _, err := stack.SQL.Exec(t.Context(), batch); err != nil {
			t.Fatalf("%v in %s", err, batch)
		}
	}
	if pending, err := count(t, scaler, query); err != nil || pending != 10 {
		t.Errorf("%s: %v of 10 pending events, %v", query, pending, err)
	}
	if rows, err := count(t, scaler, "SELECT COUNT(*) FROM dbo.outbox_event"); err == nil {
		t.Errorf("the scaler's login reads the %v rows of the table", rows)
	}
	// An identity in an mssql rule can freeze all scaling (azure-container-apps #1463).
	rule := text[strings.Index(text, "var scaleRules"):strings.Index(text, "resource worker")]
	if strings.Contains(rule, "identity") {
		t.Error("the mssql rule names an identity")
	}
}

// backlogQuery is the query of modules/worker.bicep for the default table.
func backlogQuery(t *testing.T) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^var backlogQuery = '(.*)'$`).FindStringSubmatch(source(t, "modules/worker.bicep"))
	if match == nil {
		t.Fatal("modules/worker.bicep has no query")
	}
	query := strings.NewReplacer("${schema}", "dbo", "${table}", "outbox_event", `\'`, "'").Replace(match[1])
	if strings.Contains(query, "$") {
		t.Fatalf("the query is %s", query)
	}
	return query
}

// scalersLogin makes the user of docs/deploy.md, without its right, and opens the
// database as it.
func scalersLogin(t *testing.T, stack *local.Stack) *sql.DB {
	t.Helper()
	user := regexp.MustCompile(`CREATE USER \[outbox-scaler\] WITH PASSWORD = '(.+)';`).FindStringSubmatch(source(t, "../docs/deploy.md"))
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
	t.Cleanup(func() { db.Close() })
	return db
}

// count is what KEDA gets: it scans one value into a float64.
func count(t *testing.T, db *sql.DB, query string) (n float64, err error) {
	t.Helper()
	err = db.QueryRowContext(t.Context(), query).Scan(&n)
	return n, err
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

// TestStandardSmallPromisesWhatOneReplicaSends: the other may be away.
func TestStandardSmallPromisesWhatOneReplicaSends(t *testing.T) {
	f := bicep(t)["parameters/standard-small.bicepparam"]
	promise := "Up to " + f.vars["serviceBusRate"].Text + " events a second"
	if !strings.Contains(source(t, f.name), promise) || !strings.Contains(source(t, "../docs/deploy.md"), "`standard-small` | one queue, u"+promise[1:]) {
		t.Errorf("the file or docs/deploy.md does not say %q", promise)
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
	plan, err := sizing.Size(sizing.Workload{EventsPerSecond: 250, PayloadBytes: 600})
	if err != nil {
		t.Fatal(err)
	}
	if plan.StorageGB > holds {
		t.Errorf("250 events/s take %v GB, and the database holds %v", plan.StorageGB, holds)
	}
}
