package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/maintenance/doctor"
	"azsqloutbox/servicebus"
	busemulator "azsqloutbox/servicebus/emulator"
)

func TestDoctorLooksAtDatabaseAndBroker(t *testing.T) {
	stack := newStack(t, local.Config{Entities: []busemulator.Entity{
		{Name: "orders", DuplicateDetection: true, DuplicateWindow: 15 * time.Minute}, {Name: "sessions", RequiresSession: true},
	}})
	bus := "--servicebus-connection-string=" + stack.Bus.PlainConnectionString()
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := outboxctl(t, append([]string{"doctor", "--sql-dsn=" + stack.SQL.DSN()}, args...)...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	if text := run(exitDone, bus, "--entity=orders"); !strings.Contains(text, "\nGO for dbo.outbox_event") || !strings.Contains(text, `entity "orders": duplicate detection over 15m0s`) {
		t.Errorf("a healthy set-up:\n%s", text)
	}
	r := decode[doctor.Report](t, run(exitFound, bus, "--entity=sessions", "--json"))
	if r.Go || r.NoGo != 1 || !strings.Contains(r.Grants, "GRANT SELECT, UPDATE") {
		t.Errorf("a queue with sessions and a route without: %+v", r)
	}
	run(exitFound, bus, "--entity=missing")
	run(exitFound, bus, "--entity=orders", "--lease=10s", "--publish-deadline=10s")
	run(exitUsage, bus) // where to?
	if text := run(exitDone); !strings.Contains(text, "UNKNOWN service bus: no namespace was named") {
		t.Errorf("without a broker:\n%s", text)
	}
	// Before the schema is there, and with a broker that does not answer, the
	// findings are what a person wants to read.
	if text := run(exitFound, bus, "--entity=orders", "--table=not_there"); !strings.Contains(text, "NO-GO   table dbo.not_there_claim: ") ||
		!strings.Contains(text, `OK      entity "orders": a link for sending`) || !strings.Contains(text, "UNKNOWN namespace: Standard") {
		t.Errorf("without the table:\n%s", text)
	}
	stack.Bus.Close()
	if text := run(exitFound, bus, "--entity=orders", "--servicebus-send-timeout=1s"); !strings.Contains(text, "OK      table and indexes") ||
		!strings.Contains(text, `NO-GO   entity "orders": it cannot be sent to`) {
		t.Errorf("without the broker:\n%s", text)
	}
}

// The script needs no database.
func TestDoctorPrintsTheGrants(t *testing.T) {
	code, text, stderr := outboxctl(t, "doctor", "--grants", "--table=mine")
	if code != exitDone || !strings.HasPrefix(text, "-- What an outbox worker may do") || !strings.Contains(text, "[mine_claim]") {
		t.Errorf("exit %d: %s%s", code, text, stderr)
	}
	code, text, stderr = outboxctl(t, "doctor", "--job-grants", "--table=mine")
	if code != exitDone || !strings.Contains(text, "GRANT SELECT, DELETE, ALTER, VIEW DEFINITION ON [dbo].[mine] TO [mine_jobs_role]") {
		t.Errorf("of the jobs: exit %d: %s%s", code, text, stderr)
	}
	if code, _, _ := outboxctl(t, "doctor", "--grants", "--job-grants"); code != exitUsage {
		t.Errorf("both at once: exit %d", code)
	}
	if code, _, _ := outboxctl(t, "doctor", "--grants", "--table="+strings.Repeat("x", 200)); code != exitUsage {
		t.Errorf("a name that cannot be: exit %d", code)
	}
}

func TestJudgementOfEntities(t *testing.T) {
	route := func(r servicebus.Route) servicebus.Routes {
		r.Entity = "e"
		routes, err := servicebus.NewRoutes(r)
		if err != nil {
			t.Fatal(err)
		}
		return routes
	}
	plain, sessions := servicebus.SubscriptionReport{Name: "plain"}, servicebus.SubscriptionReport{Name: "by-session", RequiresSession: true}
	topic := func(s ...servicebus.SubscriptionReport) func(*servicebus.EntityReport) {
		return func(e *servicebus.EntityReport) { e.Topic, e.Subscriptions = true, s }
	}
	good := servicebus.EntityReport{Entity: "e", Described: true, Status: "Active", DuplicateDetection: true, DuplicateWindow: 15 * time.Minute, MaxSizeBytes: 100, SizeBytes: 10}
	for name, c := range map[string]struct {
		change  func(*servicebus.EntityReport)
		route   servicebus.Route
		verdict doctor.Verdict
		found   string
	}{
		"good":                               {func(*servicebus.EntityReport) {}, servicebus.Route{}, doctor.OK, ""},
		"disabled":                           {func(e *servicebus.EntityReport) { e.Status = "Disabled" }, servicebus.Route{}, doctor.NoGo, "Disabled"},
		"sessions required":                  {func(e *servicebus.EntityReport) { e.RequiresSession = true }, servicebus.Route{}, doctor.NoGo, "requires sessions"},
		"sessions for nothing":               {func(*servicebus.EntityReport) {}, servicebus.Route{SessionIDFromAggregate: true}, doctor.Warn, "means nothing"},
		"topic":                              {topic(plain), servicebus.Route{}, doctor.OK, ""},
		"topic with sessions":                {topic(plain, sessions), servicebus.Route{SessionIDFromAggregate: true}, doctor.OK, ""},
		"a subscription's dead-letter queue": {topic(plain, sessions), servicebus.Route{}, doctor.Warn, `required by its subscription "by-session": events`},
		"two dead-letter queues":             {topic(sessions, plain, sessions), servicebus.Route{}, doctor.Warn, `"by-session" and 1 other: events`},
		"topic's sessions for nothing":       {topic(plain), servicebus.Route{SessionIDFromAggregate: true}, doctor.Warn, "means nothing"},
		"no subscription":                    {topic(), servicebus.Route{}, doctor.Warn, "no subscription"},
		"subscriptions unread":               {func(e *servicebus.EntityReport) { e.Topic, e.SubscriptionsUnread = true, errors.New("away") }, servicebus.Route{}, doctor.Unknown, "away"},
		"no duplicate detection":             {func(e *servicebus.EntityReport) { e.DuplicateDetection = false }, servicebus.Route{}, doctor.Warn, "no duplicate detection"},
		"short window":                       {func(e *servicebus.EntityReport) { e.DuplicateWindow = 10 * time.Minute }, servicebus.Route{}, doctor.Warn, "looks back 10m0s, and a redelivery may come after 12m0s"},
		"partitioned and no key":             {func(e *servicebus.EntityReport) { e.Partitioned = true }, servicebus.Route{}, doctor.NoGo, "partitioned"},
		"partitioned with a key":             {func(e *servicebus.EntityReport) { e.Partitioned = true }, servicebus.Route{PartitionKeyFromAggregate: true}, doctor.OK, ""},
		"nearly full":                        {func(e *servicebus.EntityReport) { e.SizeBytes = 90 }, servicebus.Route{}, doctor.Warn, "are used"},
	} {
		t.Run(name, func(t *testing.T) {
			e := good
			c.change(&e)
			worst := doctor.Finding{Verdict: doctor.OK}
			for _, f := range judgeEntity(e, route(c.route), time.Minute) {
				if f.Verdict != doctor.OK {
					worst = f
				}
			}
			if worst.Verdict != c.verdict || !strings.Contains(worst.Found, c.found) {
				t.Errorf("got %+v, want %s that says %q", worst, c.verdict, c.found)
			}
		})
	}
}

func TestJudgementOfTheNamespace(t *testing.T) {
	for _, c := range []struct {
		sku       string
		perSecond float64 // -1: not known
		verdict   doctor.Verdict
	}{
		{"", 1, doctor.Unknown},
		{"Basic", 1, doctor.Warn},
		{"Standard", 100, doctor.OK},
		{"Standard", 900, doctor.Warn},
		{"Premium", 5000, doctor.OK},
		{"Standard", -1, doctor.Unknown},
		{"Premium", -1, doctor.OK},
	} {
		known := &c.perSecond
		if c.perSecond < 0 {
			known = nil
		}
		if f := judgeNamespace(servicebus.NamespaceReport{SKU: c.sku}, known); f.Verdict != c.verdict {
			t.Errorf("%s at %g/s: %+v", c.sku, c.perSecond, f)
		}
	}
}
