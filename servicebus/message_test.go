package servicebus

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/worker"
)

var created = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func TestMessageID(t *testing.T) {
	for _, c := range []struct {
		source string
		id     int64
		want   string
	}{
		{"db.dbo.outbox_event", 42, "db.dbo.outbox_event:42:1767323045678"},
		{strings.Repeat("x", 90), math.MinInt64, strings.Repeat("x", 90) + ":-9223372036854775808:1767323045678"},
		{strings.Repeat("é", 90), 1, strings.Repeat("é", 90) + ":1:1767323045678"},
		{strings.Repeat("x", 91), 1, fmt.Sprintf("%x:1:1767323045678", sha256.Sum256([]byte(strings.Repeat("x", 91))))},
	} {
		got := MessageID(c.source, c.id, created)
		if got != c.want {
			t.Errorf("MessageID(%q, %d) = %q, want %q", c.source, c.id, got, c.want)
		}
		if ids := messageIDs(shortSource(c.source), []worker.Event{{ID: 1}, {ID: c.id, CreatedAt: created}}); ids[1] != got {
			t.Errorf("messageIDs has %q, MessageID %q", ids[1], got)
		}
		if chars(got) > maxKeyChars {
			t.Errorf("MessageID(%q, %d) has %d characters", c.source, c.id, chars(got))
		}
	}
}

func TestChars(t *testing.T) {
	for s, want := range map[string]int{
		"":                                0,
		strings.Repeat("a", 200):          200,
		strings.Repeat("é", 100):          100,
		strings.Repeat("😀", 100):          200,
		strings.Repeat("\uffff", 100):     100,
		strings.Repeat("\U00010000", 100): 200,
	} {
		if got := chars(s); got != want {
			t.Errorf("chars(%d bytes) = %d, want %d", len(s), got, want)
		}
	}
}

func plainRoute() *Route { return &Route{Entity: "orders", ContentType: DefaultContentType} }

func TestFill(t *testing.T) {
	event := worker.Event{
		ID: 7, Type: "OrderPlaced", AggregateType: "Order", AggregateID: "o-1", CreatedAt: created,
		Payload: []byte(`{"total":1}`),
		Headers: []byte(`{"tenant":"t1","n":3,"f":1.5,"b":true,"gone":null,"traceparent":"00-x-y-01","event-type":"forged",
			"sb-correlation-id":"c-1","sb-ttl":"90s","sb-scheduled-time":"2030-01-31T08:00:00Z"}`),
	}
	var m message
	route := &Route{Entity: "orders", ContentType: "text/plain", TTL: time.Hour, SessionIDFromAggregate: true, PartitionKeyFromAggregate: true}
	if err := m.fill("src:7:1767323045678", route, &event); err != nil {
		t.Fatal(err)
	}
	wantProperties := map[string]any{
		"tenant": "t1", "n": int64(3), "f": 1.5, "b": true, "traceparent": "00-x-y-01", "Diagnostic-Id": "00-x-y-01",
		"event-id": &event.ID, "event-type": &event.Type, "aggregate-type": &event.AggregateType,
		"aggregate-id": &event.AggregateID, "created-at": &event.CreatedAt,
	}
	if diff := cmp.Diff(wantProperties, m.amqp.ApplicationProperties); diff != "" {
		t.Errorf("application properties (-want +got):\n%s", diff)
	}
	p := m.amqp.Properties
	got := fmt.Sprint(*p.MessageID.(*string), " ", *p.Subject, " ", *p.ContentType, " ", p.CorrelationID, " ", *p.GroupID, " ", m.amqp.Header.TTL)
	if want := "src:7:1767323045678 OrderPlaced text/plain c-1 o-1 1m30s"; got != want {
		t.Errorf("properties are %q, want %q", got, want)
	}
	wantAnnotations := map[any]any{"x-opt-partition-key": "o-1", "x-opt-scheduled-enqueue-time": time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(wantAnnotations, m.amqp.MessageAnnotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	// The same memory, filled with a plainer event, keeps nothing of the first.
	if err := m.fill("src:8:1", plainRoute(), &worker.Event{ID: 8, Type: "B", CreatedAt: created}); err != nil {
		t.Fatal(err)
	}
	if len(m.amqp.ApplicationProperties) != 5 || len(m.amqp.MessageAnnotations) != 0 || m.amqp.Header != nil ||
		m.amqp.Properties.CorrelationID != nil || m.amqp.Properties.GroupID != nil {
		t.Errorf("something of an earlier event stayed: %+v", m.amqp)
	}
	if len(m.amqp.Body.Data) != 1 || len(m.amqp.Body.Data[0]) != 0 {
		t.Errorf("body of an event without payload: %v, want one empty section", m.amqp.Body.Data)
	}

	// Nor does one plain event of another, nor one of headers that are refused.
	if err := m.fill("src:9:1", plainRoute(), &worker.Event{ID: 9, Headers: []byte(`{"tenant":"t1","bad":{}}`)}); err == nil {
		t.Error("a nested header was filled in")
	}
	for id := int64(10); id < 12; id++ {
		event := worker.Event{ID: id, Type: "C", AggregateType: "D", AggregateID: fmt.Sprint(id), CreatedAt: created.Add(time.Duration(id))}
		if err := m.fill(fmt.Sprint("src:", id), plainRoute(), &event); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"event-id": &event.ID, "event-type": &event.Type, "aggregate-type": &event.AggregateType,
			"aggregate-id": &event.AggregateID, "created-at": &event.CreatedAt,
		}
		if diff := cmp.Diff(want, m.amqp.ApplicationProperties); diff != "" {
			t.Errorf("application properties of event %d (-want +got):\n%s", id, diff)
		}
	}
}

// What is just within the limits goes out.
func TestFillTakesWhatTheLimitsAllow(t *testing.T) {
	most := strings.Repeat("x", maxKeyChars)
	names := len("a") + len("b") + len("event-id") + len("event-type") + len("aggregate-type") + len("aggregate-id") + len("created-at")
	rest := strings.Repeat("x", maxHeaderBytes-maxPropertyBytes-names-8-8-len(most))
	headers := `{"sb-correlation-id":"` + most + `","a":"` + strings.Repeat("x", maxPropertyBytes) + `","b":"` + rest + `"}`
	route := &Route{SessionIDFromAggregate: true, PartitionKeyFromAggregate: true}
	e := worker.Event{AggregateID: most, Headers: []byte(headers)}
	if err := new(message).fill("src:0:0", route, &e); err != nil {
		t.Error(err)
	}
	e.Type = "x" // one byte more
	if err := new(message).fill("src:0:0", route, &e); err == nil || !strings.Contains(err.Error(), "headers have 65537 bytes together") {
		t.Errorf("a byte above the limit: %v", err)
	}
}

func TestFillKeepsADiagnosticID(t *testing.T) {
	var m message
	e := worker.Event{Headers: []byte(`{"traceparent":"00-x-y-01","Diagnostic-Id":"00-own-01"}`)}
	if err := m.fill("src:0:0", plainRoute(), &e); err != nil {
		t.Fatal(err)
	}
	if got := m.amqp.ApplicationProperties[PropertyDiagnosticID]; got != "00-own-01" {
		t.Errorf("Diagnostic-Id is %v, want the event's own", got)
	}
}

func TestFillRefuses(t *testing.T) {
	header := func(text string) worker.Event { return worker.Event{Headers: []byte(text)} }
	for name, c := range map[string]struct {
		event worker.Event
		route *Route
		want  string
	}{
		"withheld":        {worker.Event{Withheld: true, StoredBytes: 5_000_000}, nil, "payload and headers of 5000000 bytes in their columns are above the worker's limit"},
		"no JSON":         {header(`tenant=1`), nil, "headers are not valid JSON"},
		"nested":          {header(`{"a":{"b":1}}`), nil, `header "a": is nested`},
		"correlation id":  {header(`{"sb-correlation-id":1}`), nil, `header "sb-correlation-id": 1 is no string`},
		"long correlated": {header(`{"sb-correlation-id":"` + strings.Repeat("x", 129) + `"}`), nil, "has 129 characters, at most 128"},
		"ttl":             {header(`{"sb-ttl":"soon"}`), nil, `header "sb-ttl": soon is no time to live`},
		"scheduled":       {header(`{"sb-scheduled-time":"soon"}`), nil, `header "sb-scheduled-time": soon is no time in RFC 3339`},
		"one property":    {header(`{"big":"` + strings.Repeat("x", 32*1024+1) + `"}`), nil, `header "big" has 32769 bytes, a property may have 32768`},
		"all properties":  {header(`{"a":"` + strings.Repeat("x", 32*1024) + `","b":"` + strings.Repeat("x", 32*1024) + `"}`), nil, "bytes together, a message may carry 65536"},
		"aggregate type":  {worker.Event{AggregateType: strings.Repeat("x", 32*1024+1)}, nil, `header "aggregate-type" has 32769 bytes`},
		"session id":      {worker.Event{AggregateID: strings.Repeat("x", 129)}, &Route{SessionIDFromAggregate: true}, "aggregate id has 129 characters"},
		"partition key":   {worker.Event{AggregateID: strings.Repeat("x", 129)}, &Route{PartitionKeyFromAggregate: true}, "aggregate id has 129 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			route := c.route
			if route == nil {
				route = plainRoute()
			}
			var m message
			if err := m.fill("src:0:0", route, &c.event); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("fill: %v, want an error with %q", err, c.want)
			}
		})
	}
}
