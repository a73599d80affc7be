package sqlserver

import (
	"database/sql"
	"fmt"
	"slices"
	"time"

	"azsqloutbox/worker"
)

// eventReader turns the rows of one claim into events. Payloads and headers
// share one buffer, aggregate names another: a claim of 500 would otherwise
// allocate 2,000 small pieces for the collector to find.
type eventReader struct {
	events []worker.Event
	spans  []spans
	bytes  []byte // payloads and headers
	text   []byte // aggregate types and ids
	// cutPayload and cutHeaders say that the claim reads no more than bytesRead of
	// the column.
	cutPayload, cutHeaders bool

	// What Scan fills. RawBytes hold until the next row only.
	id            int64
	withheld      int64 // bytes of an event above MaxEventBytes, 0 for others
	payload       sql.RawBytes
	headers       sql.RawBytes
	eventType     sql.RawBytes
	aggregateType sql.RawBytes
	aggregateID   sql.RawBytes
	createdAt     time.Time
	retryCount    int64
	dest          []any
}

// spans says where an event's pieces end; each begins where the last one
// ended. The buffers grow, so slices are cut at the end only.
type spans struct {
	payload, headers           int
	aggregateType, aggregateID int
}

// largestGuess bounds what is allocated before the first row is there: one
// large claim says little about the next, of another type perhaps.
const largestGuess = 1 << 20

// newEventReader expects about size bytes of payloads, headers and aggregates.
func newEventReader(t *table, batch int, size int64) *eventReader {
	r := &eventReader{
		events:     make([]worker.Event, 0, batch),
		spans:      make([]spans, 0, batch),
		bytes:      make([]byte, 0, min(size, largestGuess)),
		text:       make([]byte, 0, 32*batch),
		cutPayload: t.columns["payload"].readsCut(),
		cutHeaders: t.columns["headers"].readsCut(),
	}
	// The order of the claim's select list.
	r.dest = []any{
		&r.id, &r.withheld, &r.payload, &r.headers,
		&r.eventType, &r.aggregateType, &r.aggregateID, &r.createdAt, &r.retryCount,
	}
	return r
}

// scan reads the current row. take adds it to the events.
func (r *eventReader) scan(rows *sql.Rows) error {
	if err := rows.Scan(r.dest...); err != nil {
		return err
	}
	// The column was shorter when its statement was made.
	if r.cutPayload && len(r.payload) == bytesRead || r.cutHeaders && len(r.headers) == bytesRead {
		return fmt.Errorf("event %d: payload or headers may be cut at %d bytes: %w", r.id, bytesRead, errColumnChanged)
	}
	return nil
}

// size is what the current row adds to the batch, as UTF-8: NVARCHAR takes two
// bytes for a character that takes three here.
func (r *eventReader) size() int64 {
	return int64(len(r.payload) + len(r.headers) + len(r.aggregateType) + len(r.aggregateID))
}

func (r *eventReader) take(key string) {
	r.bytes = append(r.bytes, r.payload...)
	payload := len(r.bytes)
	r.bytes = append(r.bytes, r.headers...)
	r.text = append(r.text, r.aggregateType...)
	aggregateType := len(r.text)
	r.text = append(r.text, r.aggregateID...)
	r.spans = append(r.spans, spans{payload, len(r.bytes), aggregateType, len(r.text)})
	eventType := key
	if string(r.eventType) != key { // the rare case: a collation calls the two equal
		eventType = string(r.eventType)
	}
	r.events = append(r.events, worker.Event{
		ID:          r.id,
		Type:        eventType,
		RouteKey:    key,
		CreatedAt:   r.createdAt,
		RetryCount:  int(r.retryCount),
		StoredBytes: r.withheld,
		Withheld:    r.withheld > 0,
	})
}

// finish cuts the buffers into the events' fields.
func (r *eventReader) finish() []worker.Event {
	r.events, r.bytes = trim(r.events), trim(r.bytes)
	text := string(r.text)
	var b, t int
	for i := range r.events {
		e, s := &r.events[i], r.spans[i]
		e.Payload = piece(r.bytes, b, s.payload)
		e.Headers = piece(r.bytes, s.payload, s.headers)
		e.AggregateType = text[t:s.aggregateType]
		e.AggregateID = text[s.aggregateType:s.aggregateID]
		b, t = s.headers, s.aggregateID
	}
	return r.events
}

// trim gives back room that was expected and not needed: a claim in flight is
// to hold what it carries and little more.
func trim[T any](s []T) []T {
	if cap(s)-len(s) <= len(s)/4 {
		return s
	}
	return slices.Clone(s)
}

// piece is nil for an empty piece. Its capacity ends where it ends, so that an
// append cannot reach the next event.
func piece(b []byte, from, to int) []byte {
	if from == to {
		return nil
	}
	return b[from:to:to]
}
