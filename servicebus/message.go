package servicebus

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/worker"
)

// Application properties that every message carries beside its event's headers.
// They win over a header of the same name.
const (
	PropertyEventID       = "event-id"       // the row's id, an AMQP long
	PropertyEventType     = "event-type"     // string
	PropertyAggregateType = "aggregate-type" // string
	PropertyAggregateID   = "aggregate-id"   // string
	PropertyCreatedAt     = "created-at"     // AMQP timestamp, to the millisecond
	// PropertyDiagnosticID repeats a traceparent header under the name by which
	// Azure's SDKs find a message's trace context: azservicebus adds none of its
	// own (azure-sdk-for-go #15678).
	PropertyDiagnosticID = "Diagnostic-Id"
)

// Limits of a message, from azure-docs, service-bus-quotas.md. Characters are
// counted as .NET does, in UTF-16 units, for the service is written in it.
const (
	maxKeyChars      = 128       // message id, session id, partition key
	maxPropertyBytes = 32 * 1024 // one property
	maxHeaderBytes   = 64 * 1024 // all properties, the system's included
)

// maxSourceChars leaves room in the message id for two colons, an id of up to
// 20 characters and milliseconds of up to 15: 90 + 2 + 20 + 15 = 127.
const maxSourceChars = 90

// MessageID is the MessageID of an event: "<source>:<id>:<created_at in ms>",
// at most 128 characters. A source of more than 90 characters is replaced by
// the SHA-256 of it in hex.
//
// The id alone repeats (another table on the same entity, a sequence that was
// restarted, a restored database), and duplicate detection would then drop a
// new event as a duplicate of an old one and report success.
func MessageID(source string, id int64, createdAt time.Time) string {
	return messageID(shortSource(source), id, createdAt)
}

func shortSource(source string) string {
	if chars(source) <= maxSourceChars {
		return source
	}
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}

func messageID(source string, id int64, createdAt time.Time) string {
	return string(appendMessageID(make([]byte, 0, maxKeyChars), source, id, createdAt))
}

func appendMessageID(text []byte, source string, id int64, createdAt time.Time) []byte {
	text = append(text, source...)
	text = append(text, ':')
	text = strconv.AppendInt(text, id, 10)
	text = append(text, ':')
	return strconv.AppendInt(text, createdAt.UnixMilli(), 10)
}

// messageIDs are the MessageIDs of events, as pieces of one text: one allocation
// instead of one an event. source is a shortSource.
func messageIDs(source string, events []worker.Event) []string {
	text := make([]byte, 0, len(events)*(len(source)+len(":1234567890:1767323045678")))
	ends := make([]int, len(events))
	for i := range events {
		text = appendMessageID(text, source, events[i].ID, events[i].CreatedAt)
		ends[i] = len(text)
	}
	ids, all, from := make([]string, len(events)), string(text), 0
	for i, end := range ends {
		ids[i], from = all[from:end], end
	}
	return ids
}

// message is one outgoing message, made to be filled many times: a MessageBatch
// encodes what is added to it at once and keeps nothing of it, except that its
// envelope goes on pointing into the first message. So the first one of a batch
// is left alone, and all others are filled into the same memory. (A Message, in
// contrast to an AMQPAnnotatedMessage, is copied with its map on every add.)
type message struct {
	amqp       azservicebus.AMQPAnnotatedMessage
	header     azservicebus.AMQPAnnotatedMessageHeader
	properties azservicebus.AMQPAnnotatedMessageProperties
	body       [1][]byte
	id         string
	subject    string
	sessionID  string

	// What the properties of every message point to: the encoder takes a pointer
	// for the value behind it (go-amqp, internal/encoding, Marshal), and a value in
	// an interface would be an allocation each. bare says that there are no others,
	// so that the map can stay as it is for another event without headers.
	eventID                    int64
	eventType                  string
	aggregateType, aggregateID string
	createdAt                  time.Time
	bare                       bool
}

// Message annotations of Service Bus, as azservicebus names them in message.go.
const (
	annotationPartitionKey  = "x-opt-partition-key"
	annotationScheduledTime = "x-opt-scheduled-enqueue-time"
)

// fill makes m the message of e, reusing what m holds. An error says why e can
// never be sent as it is.
func (m *message) fill(id string, route *Route, e *worker.Event) error {
	if e.Withheld {
		return fmt.Errorf("payload and headers of %d bytes in their columns are above the worker's limit for one event, so they were not read", e.StoredBytes)
	}
	m.id = id
	m.subject = cmp.Or(route.Subject, e.Type)
	m.properties = azservicebus.AMQPAnnotatedMessageProperties{
		MessageID:   &m.id,
		Subject:     &m.subject,
		ContentType: &route.ContentType,
	}
	m.header = azservicebus.AMQPAnnotatedMessageHeader{TTL: route.TTL}
	// One section even when it is empty: a NULL payload is an empty body.
	m.body[0] = e.Payload

	m.eventID, m.createdAt = e.ID, e.CreatedAt
	m.eventType, m.aggregateType, m.aggregateID = e.Type, e.AggregateType, e.AggregateID
	clear(m.amqp.MessageAnnotations)
	m.amqp.Properties = &m.properties
	m.amqp.Body.Data = m.body[:]

	if err := m.setProperties(e.Headers); err != nil {
		return err
	}
	m.amqp.Header = nil
	if m.header.TTL > 0 {
		m.amqp.Header = &m.header
	}
	if err := m.setKeys(route, e); err != nil {
		return err
	}
	return m.checkSizes(e)
}

// setProperties makes the application properties.
func (m *message) setProperties(headers []byte) error {
	if m.bare && len(headers) == 0 {
		return nil
	}
	m.bare = false
	if m.amqp.ApplicationProperties == nil {
		m.amqp.ApplicationProperties = make(map[string]any, 12)
	}
	p := m.amqp.ApplicationProperties
	clear(p)
	if err := eachHeader(headers, m.putHeader); err != nil {
		return err
	}
	if trace := p[HeaderTraceparent]; p[PropertyDiagnosticID] == nil {
		if _, ok := trace.(string); ok {
			p[PropertyDiagnosticID] = trace
		}
	}
	p[PropertyEventID] = &m.eventID
	p[PropertyEventType] = &m.eventType
	p[PropertyAggregateType] = &m.aggregateType
	p[PropertyAggregateID] = &m.aggregateID
	p[PropertyCreatedAt] = &m.createdAt
	m.bare = len(headers) == 0
	return nil
}

// putHeader takes one header of the event.
func (m *message) putHeader(name string, value any) error {
	switch name {
	case HeaderCorrelationID:
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("header %q: %v is no string", name, value)
		}
		if n := chars(text); n > maxKeyChars {
			return fmt.Errorf("header %q has %d characters, at most %d are allowed", name, n, maxKeyChars)
		}
		m.properties.CorrelationID = value
	case HeaderTTL:
		ttl, err := headerTTL(value)
		if err != nil {
			return err
		}
		m.header.TTL = ttl
	case HeaderScheduledTime:
		at, err := headerTime(value)
		if err != nil {
			return err
		}
		m.annotate(annotationScheduledTime, at)
	default:
		m.amqp.ApplicationProperties[name] = value
	}
	return nil
}

func (m *message) setKeys(route *Route, e *worker.Event) error {
	if !route.ordered() {
		return nil
	}
	if n := chars(e.AggregateID); n > maxKeyChars {
		return fmt.Errorf("aggregate id has %d characters, a session id or partition key may have %d", n, maxKeyChars)
	}
	if route.SessionIDFromAggregate {
		m.sessionID = e.AggregateID
		m.properties.GroupID = &m.sessionID
	}
	if route.PartitionKeyFromAggregate {
		m.annotate(annotationPartitionKey, e.AggregateID)
	}
	return nil
}

func (m *message) annotate(name string, value any) {
	if m.amqp.MessageAnnotations == nil {
		m.amqp.MessageAnnotations = make(map[any]any, 2)
	}
	m.amqp.MessageAnnotations[name] = value
}

// checkSizes finds up front what would make the broker refuse a whole batch.
func (m *message) checkSizes(e *worker.Event) error {
	// JSON is never shorter than two thirds of what it says ({"a":1,…: six bytes
	// for a name of one and a number of eight), so short texts need no counting.
	if len(e.Headers)+len(e.AggregateType)+len(e.AggregateID)+len(e.Type) < maxPropertyBytes/2 {
		return nil
	}
	total := 0
	for name, value := range m.amqp.ApplicationProperties {
		size := 8 // a number, a time; a boolean is less
		switch text := value.(type) {
		case string:
			size = len(text)
		case *string:
			size = len(*text)
		}
		if size > maxPropertyBytes {
			return fmt.Errorf("header %q has %d bytes, a property may have %d", name, size, maxPropertyBytes)
		}
		total += len(name) + size
	}
	if total > maxHeaderBytes {
		return fmt.Errorf("headers have %d bytes together, a message may carry %d", total, maxHeaderBytes)
	}
	return nil
}

// chars counts UTF-16 units.
func chars(s string) int {
	if len(s) <= maxSourceChars {
		return len(s) // never more units than bytes: exact enough below every limit
	}
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if r > 0xFFFF {
			n++
		}
	}
	return n
}
