package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"azsqloutbox/worker"
)

// Route says where the events of one type go and what their messages look like.
type Route struct {
	// EventType is the event type that this route serves. Empty makes it the
	// default route, which serves every type without a route of its own.
	EventType string
	// Entity is the name of the queue or topic.
	Entity string
	// SessionIDFromAggregate puts the aggregate id into the message's session id.
	SessionIDFromAggregate bool
	// PartitionKeyFromAggregate puts the aggregate id into the message's
	// partition key. With SessionIDFromAggregate both are the same, as Service
	// Bus demands of a message that has both.
	PartitionKeyFromAggregate bool
	// Subject is the message's subject; empty means the event type.
	Subject string
	// ContentType is the message's content type; empty means application/json.
	ContentType string
	// TTL is how long a message may wait in the entity, counted from its
	// arrival there; zero leaves that to the entity. At most MaxTTL.
	TTL time.Duration
	// Rate is how many messages a second the entity may be sent by one worker;
	// zero is no bound. Routes to the same entity share it.
	Rate float64
}

// ordered says whether the order of the route's messages means something at the
// broker: then their batches go out one after the other.
func (r *Route) ordered() bool { return r.SessionIDFromAggregate || r.PartitionKeyFromAggregate }

// DefaultContentType is what a message says of its body unless its route says
// otherwise.
const DefaultContentType = "application/json"

// MaxTTL is the longest time to live that a message header can hold: AMQP's
// header carries milliseconds in 32 bits (AMQP 1.0, part 3, section 3.2.1).
const MaxTTL = (1<<32 - 1) * time.Millisecond

// Routes tells event types to entities. It is immutable and may be used from
// many goroutines at once. The zero value has no route.
type Routes struct {
	byType   map[string]*Route
	fallback *Route
	types    []string
	entities []string
	rates    map[string]float64 // by entity, where it has one
}

// NewRoutes builds Routes. It refuses a second route for an event type, a
// second default route, and names that Service Bus does not allow.
func NewRoutes(routes ...Route) (Routes, error) {
	r := Routes{byType: make(map[string]*Route, len(routes)), rates: make(map[string]float64)}
	var problems []error
	for _, route := range routes {
		if err := route.validate(); err != nil {
			problems = append(problems, err)
			continue
		}
		route.ContentType = cmp.Or(route.ContentType, DefaultContentType)
		// To Service Bus "orders" and "Orders" are one entity; here they would have a
		// rate and a breaker each.
		switch same := slices.IndexFunc(r.entities, func(e string) bool { return strings.EqualFold(e, route.Entity) }); {
		case same < 0:
			r.entities = append(r.entities, route.Entity)
		case r.entities[same] != route.Entity:
			problems = append(problems, fmt.Errorf("entity %q is also written %q: use one spelling", r.entities[same], route.Entity))
		}
		if rate, ok := r.rates[route.Entity]; ok && route.Rate > 0 && rate != route.Rate {
			problems = append(problems, fmt.Errorf("two rates for entity %q, %g and %g: its routes share one", route.Entity, rate, route.Rate))
		}
		if route.Rate > 0 {
			r.rates[route.Entity] = route.Rate
		}
		if route.EventType == "" {
			if r.fallback != nil {
				problems = append(problems, fmt.Errorf("two default routes, to %q and to %q: keep one", r.fallback.Entity, route.Entity))
			}
			r.fallback = &route
			continue
		}
		if earlier, ok := r.byType[route.EventType]; ok {
			problems = append(problems, fmt.Errorf("two routes for event type %q, to %q and to %q: keep one", route.EventType, earlier.Entity, route.Entity))
		}
		r.byType[route.EventType] = &route
		r.types = append(r.types, route.EventType)
	}
	if err := errors.Join(problems...); err != nil {
		return Routes{}, err
	}
	return r, nil
}

// Lookup returns the route of an event type, the default route where it has
// none of its own. The caller must not change it.
func (r Routes) Lookup(eventType string) (*Route, bool) {
	if route, ok := r.byType[eventType]; ok {
		return route, true
	}
	return r.fallback, r.fallback != nil
}

// routeKey is what an event's route is looked up by.
func routeKey(e *worker.Event) string { return cmp.Or(e.RouteKey, e.Type) }

// EventTypes are the types that have a route of their own, in the order they
// were given.
func (r Routes) EventTypes() []string { return slices.Clone(r.types) }

// HasDefault says whether every event type has a route.
func (r Routes) HasDefault() bool { return r.fallback != nil }

// Entities are the queues and topics that some route leads to, each once.
func (r Routes) Entities() []string { return slices.Clone(r.entities) }

// Rate is how many messages a second may go to an entity; 0 is no bound.
func (r Routes) Rate(entity string) float64 { return r.rates[entity] }

func (r Route) validate() error {
	name := fmt.Sprintf("route of event type %q", r.EventType)
	if r.EventType == "" {
		name = "default route"
	}
	if err := validateEntity(r.Entity); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if r.TTL < 0 || r.TTL > MaxTTL || r.TTL%time.Millisecond != 0 {
		return fmt.Errorf("%s: ttl %s: it may be whole milliseconds up to %s, or 0 for the entity's own", name, r.TTL, MaxTTL)
	}
	if !(r.Rate >= 0 && r.Rate <= MaxRate) { // NaN is neither
		return fmt.Errorf("%s: rate %g: it may be a positive number of messages a second up to %d, or 0 for no bound", name, r.Rate, int(MaxRate))
	}
	return nil
}

// MaxRate is far above what a worker can send: more is a slip of the hand.
const MaxRate = 1_000_000

// maxEntityName is the longest queue or topic name, in characters
// (azure-docs, resource-name-rules.md, Microsoft.ServiceBus).
const maxEntityName = 260

func validateEntity(name string) error {
	switch {
	case name == "":
		return errors.New("entity is missing: name a queue or a topic")
	case len(name) > maxEntityName:
		return fmt.Errorf("entity %q has %d characters, Service Bus allows %d", name, len(name), maxEntityName)
	case !isAlphanumeric(name[0]) || !isAlphanumeric(name[len(name)-1]):
		return fmt.Errorf("entity %q must begin and end with a letter or a digit", name)
	}
	for _, c := range []byte(name) {
		// The page lists periods, hyphens, underscores and slashes; topics have
		// been seen with tildes as well (terraform-provider-azurerm #1640).
		if !isAlphanumeric(c) && c != '.' && c != '-' && c != '_' && c != '/' && c != '~' {
			return fmt.Errorf("entity %q holds %q: it may hold letters, digits and . - _ / ~", name, string(c))
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
