package servicebus_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/servicebus"
)

func TestRoutesLookup(t *testing.T) {
	routes := mustRoutes(t,
		servicebus.Route{EventType: "OrderPlaced", Entity: "orders", TTL: time.Hour},
		servicebus.Route{EventType: "42", Entity: "numbers", ContentType: "text/plain"},
		servicebus.Route{Entity: "orders"},
	)
	for eventType, want := range map[string]servicebus.Route{
		"OrderPlaced": {EventType: "OrderPlaced", Entity: "orders", TTL: time.Hour, ContentType: "application/json"},
		"42":          {EventType: "42", Entity: "numbers", ContentType: "text/plain"},
		"orderplaced": {Entity: "orders", ContentType: "application/json"},
	} {
		got, ok := routes.Lookup(eventType)
		if !ok {
			t.Fatalf("Lookup(%q): no route", eventType)
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("Lookup(%q) (-want +got):\n%s", eventType, diff)
		}
	}
	if diff := cmp.Diff([]string{"OrderPlaced", "42"}, routes.EventTypes()); diff != "" {
		t.Errorf("EventTypes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"orders", "numbers"}, routes.Entities()); diff != "" {
		t.Errorf("Entities (-want +got):\n%s", diff)
	}
	if !routes.HasDefault() {
		t.Error("HasDefault is false")
	}
}

func TestRoutesWithoutDefault(t *testing.T) {
	routes := mustRoutes(t, servicebus.Route{EventType: "A", Entity: "a"})
	if route, ok := routes.Lookup("B"); ok {
		t.Errorf("Lookup of a type without a route found %+v", route)
	}
	if routes.HasDefault() {
		t.Error("HasDefault is true")
	}
}

func TestNewRoutesRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		routes []servicebus.Route
		want   string
	}{
		"two of a type":    {[]servicebus.Route{{EventType: "A", Entity: "a"}, {EventType: "A", Entity: "b"}}, `two routes for event type "A", to "a" and to "b"`},
		"two defaults":     {[]servicebus.Route{{Entity: "a"}, {Entity: "b"}}, `two default routes, to "a" and to "b"`},
		"no entity":        {[]servicebus.Route{{EventType: "A"}}, `route of event type "A": entity is missing`},
		"long entity":      {[]servicebus.Route{{Entity: strings.Repeat("x", 261)}}, "has 261 characters, Service Bus allows 260"},
		"space in entity":  {[]servicebus.Route{{Entity: "my queue"}}, `holds " "`},
		"slash at end":     {[]servicebus.Route{{Entity: "queue/"}}, "must begin and end with a letter or a digit"},
		"negative ttl":     {[]servicebus.Route{{Entity: "a", TTL: -time.Second}}, "default route: ttl -1s"},
		"ttl of 60 days":   {[]servicebus.Route{{Entity: "a", TTL: 60 * 24 * time.Hour}}, "whole milliseconds up to 1193h2m47.295s"},
		"negative rate":    {[]servicebus.Route{{Entity: "a", Rate: -1}}, "default route: rate -1"},
		"rate of nothing":  {[]servicebus.Route{{Entity: "a", Rate: math.NaN()}}, "rate NaN"},
		"rate too high":    {[]servicebus.Route{{Entity: "a", Rate: 1e300}}, "rate 1e+300: it may be a positive number of messages a second up to 1000000"},
		"rate without end": {[]servicebus.Route{{Entity: "a", Rate: math.Inf(1)}}, "rate +Inf"},
		"two spellings":    {[]servicebus.Route{{Entity: "orders"}, {EventType: "x", Entity: "Orders"}}, `entity "orders" is also written "Orders"`},
		"two rates":        {[]servicebus.Route{{Entity: "a", Rate: 1}, {EventType: "x", Entity: "a", Rate: 2}}, `two rates for entity "a", 1 and 2`},
		"ttl below 1 ms":   {[]servicebus.Route{{Entity: "a", TTL: time.Microsecond}}, "ttl 1µs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := servicebus.NewRoutes(c.routes...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("NewRoutes: %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestNewRoutesTakesWhatServiceBusAllows(t *testing.T) {
	routes := mustRoutes(t,
		servicebus.Route{EventType: "A", Entity: "A" + strings.Repeat("x", 258) + "Z", TTL: servicebus.MaxTTL},
		servicebus.Route{EventType: "B", Entity: "a/b-c_d.e~f", Rate: 5},
		servicebus.Route{EventType: "C", Entity: "a/b-c_d.e~f"}, // shares the rate
	)
	if got := len(routes.Entities()); got != 2 {
		t.Errorf("%d entities, want 2", got)
	}
}

func TestParseRoutes(t *testing.T) {
	got, err := servicebus.ParseRoutes([]byte(`
routes:
  - event-type: OrderPlaced
    entity: orders
    session-id-from-aggregate: true
    partition-key-from-aggregate: true
    subject: order-placed
    content-type: application/cloudevents+json
    ttl: 24h
  - event-type: 42 # an INT column
    entity: numbers
    rate: 12.5
default:
  entity: everything/else
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []servicebus.Route{
		{
			EventType: "OrderPlaced", Entity: "orders", SessionIDFromAggregate: true, PartitionKeyFromAggregate: true,
			Subject: "order-placed", ContentType: "application/cloudevents+json", TTL: 24 * time.Hour,
		},
		{EventType: "42", Entity: "numbers", Rate: 12.5},
		{Entity: "everything/else"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ParseRoutes (-want +got):\n%s", diff)
	}
}

func TestParseRoutesTakesAByteOrderMark(t *testing.T) {
	if got, err := servicebus.ParseRoutes([]byte("\ufeffdefault: {entity: a}\n")); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestParseRoutesRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key in a route": {
			"routes:\n  - event-type: A\n    entity: a\n    queue: b\n",
			`line 4: unknown field "queue": at the top may stand routes, default; in a route event-type, entity,`,
		},
		"unknown key at the top": {"route:\n  - entity: a\n", `line 1: unknown field "route"`},
		"duplicate key":          {"routes:\n  - event-type: A\n    entity: a\n    entity: b\n", "line 4: "},
		"duplicate event type":   {"routes:\n  - {event-type: A, entity: a}\n  - {event-type: A, entity: b}\n", `routes 1 and 2 are both for event type "A"`},
		"no event type":          {"routes:\n  - entity: a\n", `route 1 has no event-type`},
		"default with a type":    {"default: {event-type: A, entity: a}\n", `the default route names event type "A"`},
		"bad rate":               {"default: {entity: a, rate: fast}\n", "line 1"},
		"bad ttl":                {"default: {entity: a, ttl: tomorrow}\n", `default route: ttl "tomorrow": write a duration`},
		"wrong type":             {"routes:\n  - event-type: A\n    entity: a\n    session-id-from-aggregate: sometimes\n", "line 4: "},
		"broken text":            {"routes: [\n", "line "},
		"empty":                  {"", "no route"},
		"two documents":          {"default: {entity: a}\n---\ndefault: {entity: b}\n", "more than one document"},
		"entity not allowed":     {"default: {entity: \"a b\"}\n", `entity "a b" holds " "`},
	} {
		t.Run(name, func(t *testing.T) {
			routes, err := servicebus.ParseRoutes([]byte(c.text))
			if err == nil {
				t.Fatalf("ParseRoutes took it: %+v", routes)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("ParseRoutes: %q, want one line with %q", err, c.want)
			}
		})
	}
}

// The rate is the entity's: a route that names it speaks for all others.
func TestRoutesShareTheRateOfTheirEntity(t *testing.T) {
	routes := mustRoutes(t,
		servicebus.Route{EventType: "a", Entity: "orders"}, servicebus.Route{EventType: "b", Entity: "orders", Rate: 50}, servicebus.Route{Entity: "rest"})
	if routes.Rate("orders") != 50 || routes.Rate("rest") != 0 {
		t.Errorf("rates are %g and %g, want 50 and none", routes.Rate("orders"), routes.Rate("rest"))
	}
}
