package sizing

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"azsqloutbox/internal/quantity"
)

// Workload is what an outbox has to carry, for Size.
type Workload struct {
	// EventsPerSecond is the rate at the peak. It decides about the log, the
	// memory, the broker and the workers.
	EventsPerSecond float64
	// AverageEventsPerSecond is the rate over a whole retention, which decides
	// about storage; 0 takes the peak.
	AverageEventsPerSecond float64
	// PayloadBytes is an average payload in bytes of UTF-8; HeaderBytes the same of
	// the headers column.
	PayloadBytes, HeaderBytes int
	// Retention is how long PROCESSED events stay; 0 takes 72 h, the default of
	// outboxctl purge.
	Retention time.Duration
	// Outage is how long the broker or the workers may be away so that the backlog
	// of that time is still in memory; 0 takes an hour.
	Outage time.Duration
	// Tier of Azure SQL; empty takes General Purpose.
	Tier Tier
	// Unicode: payload and headers are NVARCHAR, two bytes a character in rows,
	// index and log.
	Unicode bool
	// SlimClaimIndex: the claim index does not include the payload.
	SlimClaimIndex bool
	// Subscriptions that each event is delivered to by a topic; 0 is a queue.
	Subscriptions int
}

// Bounds of a workload: beyond them a number is a slip of the finger.
const (
	maxEventsPerSecond = 1_000_000
	minSpan            = time.Minute
	maxSpan            = 10 * 365 * 24 * time.Hour
	maxSubscriptions   = 2000 // of a topic (azure-docs, service-bus-quotas.md)
)

func (w Workload) withDefaults() Workload {
	w.AverageEventsPerSecond = cmp.Or(w.AverageEventsPerSecond, w.EventsPerSecond)
	w.Retention = cmp.Or(w.Retention, 72*time.Hour)
	w.Outage = cmp.Or(w.Outage, time.Hour)
	w.Tier = cmp.Or(w.Tier, GeneralPurpose)
	return w
}

// Validate names the field that cannot be.
func (w Workload) Validate() error {
	w = w.withDefaults()
	rate := func(field string, r float64) error {
		if !(r > 0 && r <= maxEventsPerSecond) { // a NaN is neither
			return fmt.Errorf("field %s is %v, must be above 0 and at most %d a second", field, r, maxEventsPerSecond)
		}
		return nil
	}
	span := func(field string, d time.Duration) error {
		if d < minSpan || d > maxSpan {
			return fmt.Errorf("field %s is %s, must be %s to %s", field, quantity.Span(d), quantity.Span(minSpan), quantity.Span(maxSpan))
		}
		return nil
	}
	if err := cmp.Or(rate("EventsPerSecond", w.EventsPerSecond), rate("AverageEventsPerSecond", w.AverageEventsPerSecond)); err != nil {
		return err
	}
	switch {
	case w.AverageEventsPerSecond > w.EventsPerSecond:
		return fmt.Errorf("field AverageEventsPerSecond is %v, above the %v of the peak", w.AverageEventsPerSecond, w.EventsPerSecond)
	case w.PayloadBytes < 1:
		return fmt.Errorf("field PayloadBytes is %d, must be at least 1", w.PayloadBytes)
	case w.HeaderBytes < 0:
		return fmt.Errorf("field HeaderBytes is %d, must not be negative", w.HeaderBytes)
	case w.PayloadBytes > premiumMessageBytes || w.HeaderBytes > premiumMessageBytes || w.messageBytes() > premiumMessageBytes:
		return fmt.Errorf("fields PayloadBytes and HeaderBytes are %d and %d: with its properties the message is above the %d bytes that a link takes, on Premium too; keep the body elsewhere, and its address in the event", w.PayloadBytes, w.HeaderBytes, premiumMessageBytes)
	case w.Subscriptions < 0 || w.Subscriptions > maxSubscriptions:
		return fmt.Errorf("field Subscriptions is %d, must be 0 to %d", w.Subscriptions, maxSubscriptions)
	case w.Tier != GeneralPurpose && w.Tier != BusinessCritical && w.Tier != Hyperscale:
		return fmt.Errorf("field Tier is %q, must be %q, %q or %q", w.Tier, GeneralPurpose, BusinessCritical, Hyperscale)
	}
	return cmp.Or(span("Retention", w.Retention), span("Outage", w.Outage))
}

// What an event has beside payload and headers: an aggregate type of 10
// characters, a GUID as its id, an event type of 20.
const (
	aggregateBytes = 10 + 36
	eventTypeBytes = 20
)

// longestRow is the most a row takes on its page; what is longer goes to pages of
// its own (sql-docs, pages-and-extents-architecture-guide.md).
const longestRow = 8060

// pointerBytes stands in the row for a value that is off it.
const pointerBytes = 24

// stored is a row or an index entry: what is on the page, and off it.
type stored struct{ onPage, offPage float64 }

// bytes is what it takes on disk, with the share of the page that stays empty.
func (s stored) bytes() float64 {
	const filled = 8000 // of a page of large values, about
	return PageBytes/float64(rowsPerPage(s.onPage, 100)) + s.offPage*PageBytes/filled
}

func (w Workload) store(r Row, text float64) stored {
	r.VariableBytes += text
	if size := r.Bytes(); size <= longestRow && text <= longestRow {
		return stored{onPage: size}
	}
	r.VariableBytes += 2*pointerBytes - text
	return stored{onPage: r.Bytes(), offPage: text}
}

// text is payload and headers as they are in the table.
func (w Workload) text() float64 {
	text := float64(w.PayloadBytes + w.HeaderBytes)
	if w.Unicode {
		text *= 2
	}
	return text
}

// row is one of scripts/001_outbox.sql: id, status, three times and a count are of
// fixed length, aggregate_type, aggregate_id, event_type, payload, headers and
// last_error are not.
func (w Workload) row() stored {
	return w.store(Row{
		Columns: 12, FixedBytes: 8 + 1 + 3*7 + 4,
		VariableColumns: 6, VariableBytes: aggregateBytes + eventTypeBytes, Versioned: true,
	}, w.text())
}

// entry is one of the claim index: event_type and id, and the columns that the
// covering form includes.
func (w Workload) entry() stored {
	if w.SlimClaimIndex {
		return w.store(Row{Columns: 2, FixedBytes: 8, VariableColumns: 1, VariableBytes: eventTypeBytes, Versioned: true}, 0)
	}
	return w.store(Row{
		Columns: 8, FixedBytes: 8 + 7 + 4,
		VariableColumns: 5, VariableBytes: aggregateBytes + eventTypeBytes, Versioned: true,
	}, w.text())
}

// logPerEvent is what one event writes to the log in its life.
func (w Workload) logPerEvent() float64 {
	row, entry := w.row(), w.entry()
	return LogPerEvent(row.onPage+row.offPage,
		IndexLog{EntryBytes: entry.onPage + entry.offPage, PendingOnly: true},
		IndexLog{FailedOnly: true})
}

// purgeEvery is how often the purge runs in infra/: what it has not come to yet
// is there beside the retention.
const purgeEvery = 24 * time.Hour

// rows are those of the table shortly before a purge.
func (w Workload) rows() float64 {
	return math.Ceil(w.AverageEventsPerSecond * (w.Retention + purgeEvery).Seconds())
}

// backlog is what gathers in an outage at the peak.
func (w Workload) backlog() float64 {
	return math.Ceil(w.EventsPerSecond * w.Outage.Seconds())
}

// tableBytes are the rows', with the upper levels of their index: a page of some
// 20 bytes for each leaf page.
func (w Workload) tableBytes() float64 {
	return w.rows() * w.row().bytes() * (1 + upperLevels)
}

// upperLevels is their share: a key of 8 bytes, a child of 6 and the overhead for
// each page of 8,192.
const upperLevels = 0.003

// indexBytes is the claim index in an outage. Without one it holds seconds.
func (w Workload) indexBytes() float64 { return w.backlog() * w.entry().bytes() }

// hotBytes is what has to be in memory so that claiming, flipping and inserting do
// not go to disk: the rows and the index entries of a backlog, and the upper
// levels of the whole table. What was sent already is read once more, in order, by
// the purge.
func (w Workload) hotBytes() float64 {
	return w.backlog()*w.row().bytes() + w.indexBytes() + w.tableBytes()*upperLevels
}

// storageBytes is what the outbox takes of the database.
func (w Workload) storageBytes() float64 { return w.tableBytes() + w.indexBytes() }
