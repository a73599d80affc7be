package servicebus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// routesFile is the YAML text that ParseRoutes reads. Every route carries the
// line it stands on only through the decoder's errors.
type routesFile struct {
	Routes  []routeEntry `yaml:"routes"`
	Default *routeEntry  `yaml:"default"`
}

type routeEntry struct {
	EventType                 string  `yaml:"event-type"`
	Entity                    string  `yaml:"entity"`
	SessionIDFromAggregate    bool    `yaml:"session-id-from-aggregate"`
	PartitionKeyFromAggregate bool    `yaml:"partition-key-from-aggregate"`
	Subject                   string  `yaml:"subject"`
	ContentType               string  `yaml:"content-type"`
	TTL                       string  `yaml:"ttl"`
	Rate                      float64 `yaml:"rate"`
}

const (
	fileKeys  = "routes, default"
	entryKeys = "event-type, entity, session-id-from-aggregate, partition-key-from-aggregate, subject, content-type, ttl, rate"
)

// ParseRoutes reads the routes of a YAML text:
//
//	routes:
//	  - event-type: OrderPlaced            # required; an INT column's number works too
//	    entity: orders                     # required: a queue or a topic
//	    session-id-from-aggregate: true    # default false
//	    partition-key-from-aggregate: true # default false
//	    subject: order-placed              # default: the event type
//	    content-type: application/json     # the default
//	    ttl: 24h                           # default: the entity's own
//	    rate: 800                          # messages a second to that entity; default: no bound
//	default:                               # for every other type; optional
//	  entity: events
//
// The default route comes back as the Route without an event type. Unknown
// keys, values of a wrong type and event types that stand there twice are
// errors that name the line. The caller joins the routes with others it has and
// hands all of them to NewRoutes.
func ParseRoutes(text []byte) ([]Route, error) {
	var file routesFile
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))), yaml.Strict())
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, readableYAML(err)
	}
	if err := decoder.Decode(new(routesFile)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file holds more than one document (a line of ---): put all routes into one")
	}
	routes := make([]Route, 0, len(file.Routes)+1)
	seen := make(map[string]int, len(file.Routes))
	for i, entry := range file.Routes {
		if entry.EventType == "" {
			return nil, fmt.Errorf("route %d has no event-type: a route for all other types stands under \"default\"", i+1)
		}
		if first, ok := seen[entry.EventType]; ok {
			return nil, fmt.Errorf("routes %d and %d are both for event type %q: keep one", first, i+1, entry.EventType)
		}
		seen[entry.EventType] = i + 1
		route, err := entry.route()
		if err != nil {
			return nil, fmt.Errorf("route %d (%s): %w", i+1, entry.EventType, err)
		}
		routes = append(routes, route)
	}
	if file.Default != nil {
		if file.Default.EventType != "" {
			return nil, fmt.Errorf("the default route names event type %q: it serves all types, so move it to \"routes\" or leave event-type out", file.Default.EventType)
		}
		route, err := file.Default.route()
		if err != nil {
			return nil, fmt.Errorf("default route: %w", err)
		}
		routes = append(routes, route)
	}
	if len(routes) == 0 {
		return nil, fmt.Errorf("no route: the file may hold %s", fileKeys)
	}
	return routes, nil
}

func (e routeEntry) route() (Route, error) {
	route := Route{
		EventType:                 e.EventType,
		Entity:                    e.Entity,
		SessionIDFromAggregate:    e.SessionIDFromAggregate,
		PartitionKeyFromAggregate: e.PartitionKeyFromAggregate,
		Subject:                   e.Subject,
		ContentType:               e.ContentType,
		Rate:                      e.Rate,
	}
	if e.TTL != "" {
		ttl, err := time.ParseDuration(e.TTL)
		if err != nil {
			return Route{}, fmt.Errorf("ttl %q: write a duration such as 90s, 15m or 24h", e.TTL)
		}
		route.TTL = ttl
	}
	return route, route.validate()
}

// readableYAML turns the decoder's error into one line that names the line of
// the text and what may stand there.
func readableYAML(err error) error {
	var place yaml.Error
	if !errors.As(err, &place) {
		return fmt.Errorf("not readable as YAML: %w", err)
	}
	line := 0
	if token := place.GetToken(); token != nil && token.Position != nil {
		line = token.Position.Line
	}
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		return fmt.Errorf("line %d: %s: at the top may stand %s; in a route %s", line, unknown.GetMessage(), fileKeys, entryKeys)
	}
	return fmt.Errorf("line %d: %s", line, strings.TrimSpace(place.GetMessage()))
}
