package worker

import (
	"context"
	"errors"
	"time"
)

// ErrLeaseLost is returned by Store.Settle when the receipt is not there any
// more: the lease ran out and another worker reaped it. Nothing was changed.
var ErrLeaseLost = errors.New("the lease was lost: the receipt has been reaped")

// ErrPermanent marks an error that no waiting will mend: a missing right, a
// table that is not there, a login that is refused. Whatever is not marked is
// taken to be transient.
var ErrPermanent = errors.New("permanent")

// ErrDeadline is the cause of the context that Publish receives once the
// publish deadline of its claim is over.
var ErrDeadline = errors.New("the publish deadline is over")

// Store is the outbox table as the loop uses it. It is three jobs wide; every
// method may be called at the same time as any other, honours ctx, and returns
// errors that wrap ErrPermanent where waiting cannot help.
type Store interface {
	Claimer
	Settler
	Keeper
}

// Claimer finds and claims pending events.
type Claimer interface {
	// Pending returns which of types have something pending: one request, one
	// seek a type. Locked rows may count as pending.
	Pending(ctx context.Context, types []string) ([]string, error)
	// DiscoverPending returns up to limit distinct event types that have
	// something pending, by a skip scan of the claim index. It begins behind from,
	// or with the first type where that is nil. A nil next says that the scan came
	// to the end.
	DiscoverPending(ctx context.Context, from ScanPosition, limit int) (types []string, next ScanPosition, err error)
	// Claim takes up to req.Batch pending events in id order, skipping what
	// other claims hold, flips them and writes their receipt, in one
	// transaction. When it returns, the transaction is over: either the events
	// in the Claim are owned, or, with an error, nothing is claimed, save where
	// a commit's answer was lost and could not be asked for again; the receipt
	// then runs out and is reaped. Claim.More says whether to ask again above
	// the last id.
	Claim(ctx context.Context, req ClaimRequest) (Claim, error)
}

// ScanPosition is where a scan of event types stopped. Only the Store that gave it
// can read it.
type ScanPosition []byte

// Settler ends claims.
type Settler interface {
	// SettleSent deletes the receipts of claims that went out whole, in one
	// statement, and returns how many of them were not there any more. It may be
	// called again with the same receipts after an error.
	SettleSent(ctx context.Context, receipts []Receipt) (lost int, err error)
	// Settle deletes the receipt and moves the rows that did not go out, in one
	// transaction. ErrLeaseLost means that it changed nothing.
	Settle(ctx context.Context, s Settlement) error
}

// Keeper does what the table needs from time to time.
type Keeper interface {
	// Check proves, in a transaction that is rolled back, that this login may do
	// everything the worker does, and that the table, its indexes and its
	// columns are what the statements need.
	Check(ctx context.Context) error
	// EqualTypes returns the event types that the table's column calls equal to an
	// earlier one of the list, each behind the first of those, under its own collation
	// and type: a claim of one takes the rows of the other. It fails for a type that the column cannot hold.
	EqualTypes(ctx context.Context, eventTypes []string) ([][2]string, error)
	// Reap gives the events of receipts whose lease is over back to PENDING, in
	// small transactions until none is left or ctx ends. The request that looks for
	// them also says whether there is something for RetryDue.
	Reap(ctx context.Context) (Reaped, error)
	// OpenReceipts counts the claims that are not settled, of all workers.
	OpenReceipts(ctx context.Context) (int, error)
	// RetryDue moves FAILED events whose retry_at has come back to PENDING and
	// returns how many.
	RetryDue(ctx context.Context) (int, error)
	// Heartbeat writes this worker's row and returns what people have told all
	// workers of the table.
	Heartbeat(ctx context.Context, h Heartbeat) ([]Control, error)
	// Leave deletes this worker's row: it has stopped, and calls nothing more.
	Leave(ctx context.Context) error
}

// Reaped is what one Reap did.
type Reaped struct {
	Receipts int
	// Returned events are PENDING again, Parked ones had spent their attempts.
	Returned int
	Parked   int
	// Missing ids were named by a receipt, but their rows are gone or belong to
	// another claim by now.
	Missing []int64
	// Unreadable receipts were written by another version and left alone.
	Unreadable int
	// RetryDue says that FAILED events are due.
	RetryDue bool
}

// Heartbeat is what a worker says of itself every few seconds.
type Heartbeat struct {
	Lanes    int
	InFlight int
	// Paused says that it was started paused and waits for a resume.
	Paused bool
	// Trouble is what of its work in the database it cannot do; nil where it can.
	Trouble error
	// Breakers are the destinations that do not take what they are sent.
	Breakers []Breaker
	// Unrouted are event types that have something pending and that no route of
	// this worker names.
	Unrouted []string
	// Rates are the events a second that went out since the last heartbeat, by
	// event type; types of which none did are not there.
	Rates map[string]float64
}

// Backlog is what waits in the table. The loop does not need it; metrics and
// tools do.
type Backlog struct {
	// Total is the row count of the claim index by the catalog: cheap and
	// approximate.
	Total int64
	Types []TypeBacklog
	// Waiting events are FAILED and come back by themselves, Parked ones wait for
	// a person. Each is exact up to BacklogCountCap and stops there.
	Waiting, Parked int64
	// OpenReceipts are the claims of all workers that are not settled,
	// OverdueReceipts those of them whose lease is over.
	OpenReceipts, OverdueReceipts int64
}

// TypeBacklog is what waits of one event type.
type TypeBacklog struct {
	EventType string
	// Pending is exact, or, where Capped, how many there are at least.
	Pending int64
	Capped  bool
	// OldestAge is how long, by the database's clock, the event with the lowest
	// id has been waiting: 292 years, the most a Duration holds, where its
	// created_at is older. Zero when nothing is pending.
	OldestAge time.Duration
}

// BacklogCountCap is where counting the pending events of one type stops, if not
// sooner: a count over millions of rows costs more than it tells.
const BacklogCountCap = 10_000

// Publisher sends events to the broker.
type Publisher interface {
	// Publish sends every event and returns exactly one Outcome for each, in the
	// same order. It returns as soon as all are decided, at the latest soon after
	// ctx ends; what was not confirmed by then is Unsent. It keeps no reference
	// to events, and may be called many times at once.
	Publish(ctx context.Context, events []Event) []Outcome
}
