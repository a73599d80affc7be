package worker

import (
	"cmp"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// Config is what a Worker needs. Zero fields take the defaults named.
type Config struct {
	Store     Store
	Publisher Publisher
	// Observer is told what happens; nil for none.
	Observer Observer
	// Logger is nil for none.
	Logger *zap.Logger

	// EventTypes are the types to claim. Discover looks for others too, which
	// is right when there is a route for any type.
	EventTypes []string
	Discover   bool

	// Destination names the queue or topic of an event type. Types with the same
	// one share a breaker, a rate and a pause. Default: each type its own.
	Destination func(eventType string) string
	// Rate is how many events a second may be claimed for a destination; 0 is no
	// bound, and so is a nil Rate.
	Rate func(destination string) float64

	// Lanes claim at the same time, each on a database connection of its own.
	// Default 2: more made it slower on two cores, and claims are short.
	Lanes int
	// Batch is how many events a claim takes at most. Default 500, at most
	// MaxBatch.
	Batch int
	// MaxRounds is how many claims one event type gets before the others have
	// had theirs. Default 20.
	MaxRounds int
	// MaxInFlight is how many claimed batches may be under way to the broker.
	// Default twice the lanes.
	MaxInFlight int

	// Lease is what the Store gives each claim, to be the same there; the worker
	// needs it to know when settling has become pointless. A claim whose receipt
	// has less is published and settled within that. Default 60 s.
	Lease time.Duration
	// PublishDeadline is how long after the claim was asked for its events may
	// still be sent. It must be below the lease, or events would be sent by two
	// workers at once. Default 20 s, or half the lease where that is less.
	PublishDeadline time.Duration
	// Grace is how long Run may take to end after its context did. Default 25 s:
	// Container Apps kills after 30.
	Grace time.Duration
	// IdlePoll is the pause between two looks for pending events, on average an
	// eighth more. Default 250 ms.
	IdlePoll time.Duration
	// ReapEvery is the pause between two looks for leases that are over and for
	// failed events that are due.
	// Default 5 s.
	ReapEvery time.Duration
	// HeartbeatEvery is the pause between two heartbeats. Default 10 s.
	HeartbeatEvery time.Duration
	// MaxAttempts parks an event that failed so many times. Default 10. The Store
	// has such a number of its own, for events whose leases run out again and again
	// and are never settled: one count in the table, so the two should be the same,
	// and an event is parked by whichever it meets first.
	MaxAttempts int

	// Paused connects and says so, but claims, reaps and retries nothing until a
	// Control says resume.
	Paused bool
	// Drain makes Run return once nothing is pending and nothing in flight.
	Drain bool
}

// The defaults, exported for help texts.
const (
	DefaultLanes           = 2
	DefaultBatch           = 500
	DefaultMaxRounds       = 20
	DefaultLease           = 60 * time.Second
	DefaultPublishDeadline = 20 * time.Second
	DefaultGrace           = 25 * time.Second
	DefaultIdlePoll        = 250 * time.Millisecond
	DefaultReapEvery       = 5 * time.Second
	DefaultHeartbeatEvery  = 10 * time.Second
	DefaultMaxAttempts     = 10

	// MaxBatch keeps the locks of a claim below escalation: SQL Server tries for
	// the whole table from 5,000 locks of one statement on, and with rows of a
	// few KB there is an intent lock on a page for almost every lock on a row
	// (sql-docs, sql-server-transaction-locking-and-row-versioning-guide.md).
	MaxBatch = 2000
	// MaxLanes and MaxMaxInFlight keep a slip of the hand from opening hundreds of
	// connections or holding gigabytes.
	MaxLanes       = 64
	MaxMaxInFlight = 1024
)

// LongestPublishDeadline leaves a tenth of the lease, and at least half a
// second, to settle what was sent at the last moment.
func LongestPublishDeadline(lease time.Duration) time.Duration {
	return lease - max(lease/10, 500*time.Millisecond)
}

func (c Config) withDefaults() Config {
	c.Lanes = cmp.Or(c.Lanes, DefaultLanes)
	c.Batch = cmp.Or(c.Batch, DefaultBatch)
	c.MaxRounds = cmp.Or(c.MaxRounds, DefaultMaxRounds)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 2*c.Lanes)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.PublishDeadline = cmp.Or(c.PublishDeadline, min(DefaultPublishDeadline, c.Lease/2))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.IdlePoll = cmp.Or(c.IdlePoll, DefaultIdlePoll)
	c.ReapEvery = cmp.Or(c.ReapEvery, DefaultReapEvery)
	c.HeartbeatEvery = cmp.Or(c.HeartbeatEvery, DefaultHeartbeatEvery)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, DefaultMaxAttempts)
	if c.Destination == nil {
		c.Destination = func(eventType string) string { return eventType }
	}
	if c.Observer == nil {
		c.Observer = Observers{}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate says what is wrong with a configuration, naming the field and what it
// may be. Zero fields have their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Store == nil:
		return fmt.Errorf("worker: Store is missing")
	case c.Publisher == nil:
		return fmt.Errorf("worker: Publisher is missing")
	case len(c.EventTypes) == 0 && !c.Discover:
		return fmt.Errorf("worker: EventTypes is empty and Discover is off: there is nothing to claim")
	case c.Lanes < 1 || c.Lanes > MaxLanes:
		return fmt.Errorf("worker: Lanes is %d, it may be 1 to %d", c.Lanes, MaxLanes)
	case c.Batch < 1 || c.Batch > MaxBatch:
		return fmt.Errorf("worker: Batch is %d, it may be 1 to %d (above that a claim's locks could escalate)", c.Batch, MaxBatch)
	case c.MaxRounds < 1:
		return fmt.Errorf("worker: MaxRounds is %d, it may be 1 or more", c.MaxRounds)
	case c.MaxInFlight < 1 || c.MaxInFlight > MaxMaxInFlight:
		return fmt.Errorf("worker: MaxInFlight is %d, it may be 1 to %d", c.MaxInFlight, MaxMaxInFlight)
	case c.MaxAttempts < 1:
		return fmt.Errorf("worker: MaxAttempts is %d, it may be 1 or more", c.MaxAttempts)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Lease", c.Lease},
		{"PublishDeadline", c.PublishDeadline},
		{"Grace", c.Grace},
		{"IdlePoll", c.IdlePoll},
		{"ReapEvery", c.ReapEvery},
		{"HeartbeatEvery", c.HeartbeatEvery},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("worker: %s is %s, it may be 1ms or more", d.name, d.value)
		}
	}
	if c.PublishDeadline > LongestPublishDeadline(c.Lease) {
		return fmt.Errorf("worker: PublishDeadline (%s) must be at most %s under a Lease of %s: after the lease another worker sends the same events, and settling needs time before it",
			c.PublishDeadline, LongestPublishDeadline(c.Lease), c.Lease)
	}
	if c.Paused && c.Drain {
		return fmt.Errorf("worker: Paused and Drain exclude each other: a paused worker empties nothing")
	}
	return nil
}
