package worker

import (
	"time"

	"github.com/google/uuid"
)

// Event is one row of the outbox table, as a claim read it.
//
// Payload and Headers of all events of a claim may share one backing array, so
// they are read-only for everyone.
type Event struct {
	// ID is the row's primary key. It says nothing about commit order.
	ID int64
	// Type is the row's own text; for an INT column it is the decimal number.
	Type string
	// RouteKey is the event type that the row was claimed under, which chooses
	// the route. It differs from Type where the column's collation calls two
	// spellings equal. Empty means Type.
	RouteKey      string
	AggregateType string
	AggregateID   string
	// Payload is what the message body will hold, as UTF-8; nil for a NULL or
	// an empty column, and nil where Withheld says so.
	Payload []byte
	// Headers is a JSON object, or nil for NULL and where Withheld says so.
	Headers []byte
	// CreatedAt is the database's clock in UTC, to the millisecond.
	CreatedAt time.Time
	// RetryCount is how many attempts were spent on this event already.
	RetryCount int
	// Withheld is true when payload and headers are above the configured limit and
	// stayed in the database, so that no single row can break the worker's memory
	// bound. Such an event can only be parked.
	Withheld bool
	// StoredBytes is what payload and headers of a withheld event take in their
	// columns, by DATALENGTH: two bytes a character where a column is NVARCHAR.
	// It is 0 for all others.
	StoredBytes int64
}

// Receipt is the row that stands for one claimed batch until it is settled. As
// long as it is there, its events may not have gone out.
type Receipt struct {
	// ID is made by the worker, so that it can ask for its own claim again when
	// a commit's answer was lost.
	ID        uuid.UUID
	EventType string
	// ClaimedAt is the database's clock in UTC at the flip, to the millisecond.
	// Every claimed row carries it as processed_at: the pair is the fence that
	// keeps a worker whose lease ran out from touching rows claimed again since.
	ClaimedAt time.Time
	// LeaseUntil is when, by the database's clock, any worker may reap this
	// receipt.
	LeaseUntil time.Time
	EventIDs   []int64
}

// Claim is a batch of events that this worker owns until its lease ends. All
// its events have one RouteKey. A claim without events holds no receipt.
type Claim struct {
	Receipt Receipt
	Events  []Event
	// More is true when the claim ended at a limit (its row count or the byte
	// bound of a batch), so that more may be free above the last id.
	More bool
}

// Cursor is the keyset position within one cycle: the claim reads ids above
// it. The zero Cursor reads from the start. It never outlives a cycle: ids are
// taken from the sequence before their transaction commits, so a lower one can
// appear after a higher one was claimed.
type Cursor struct {
	ID  int64
	Set bool
}

// After is the cursor that reads the ids above id.
func After(id int64) Cursor { return Cursor{ID: id, Set: true} }

// ClaimRequest asks for at most Batch pending events of one type.
type ClaimRequest struct {
	EventType string
	After     Cursor
	Batch     int
}
