package worker

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// breakers keep events from being claimed for destinations that do not take
// them: each such claim costs the database a flip and its way back, for nothing.
// A destination's breaker opens with the first batch that fails for its sake, for
// a pause that doubles with each failure. After the pause it is half-open: one
// small batch of one of its event types goes out as a probe, of another type each
// time, and of a type from behind the events of the last probe. When that passes,
// the destination is back at full speed, and the pause it would get next shrinks
// by a quarter with every batch that passes, so that a broker which refuses every
// second batch is still given ever more time.
//
// It is also what knows, and says once, that publishing fails.
type breakers struct {
	log         *zap.Logger
	destination func(eventType string) string
	probeLasts  time.Duration // at most

	mu   sync.Mutex
	open map[string]*breaker // by destination; none is there for those that work
}

type breaker struct {
	outage *outage
	pause  time.Duration // the next one
	until  time.Time
	// failedAt and wantedAt are when a batch failed last and when something for
	// the destination was pending last.
	failedAt, wantedAt time.Time
	// tripped: the last batch failed, so the next one is a probe. probing is until
	// when one counts as under way; it is over sooner with its outcome.
	tripped bool
	probing time.Time
	// types are the event types that failed. lastProbe is the one probed last,
	// and after is where the next probe of each begins.
	types     map[string]bool
	lastProbe string
	after     map[string]Cursor
}

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// forgetBreaker is when a destination for which nothing is pending any more
	// stops counting as failing: longer than a batch can be in flight.
	forgetBreaker = 2 * time.Minute
	// probeBatch is small, so that a dead destination costs little, and more than
	// one event, so that the publisher can tell a poisonous event from a
	// destination that is down.
	probeBatch = 10
	// recovered is how long after its last failure an outage is over for the log,
	// if batches pass: one that comes and goes is one outage.
	recovered = time.Minute
)

func newBreakers(log *zap.Logger, destination func(string) string, probeLasts time.Duration) *breakers {
	return &breakers{log: log, destination: destination, probeLasts: probeLasts, open: make(map[string]*breaker)}
}

// failed opens the breaker of the type's destination. While it is open already,
// the pause does not grow: batches that were in flight together are one failure.
func (b *breakers) failed(eventType string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(eventType)
	r := b.open[d]
	if r == nil {
		r = &breaker{
			outage: &outage{subject: fmt.Sprintf("publishing to %q", d), log: b.log},
			pause:  firstPause,
			types:  make(map[string]bool), after: make(map[string]Cursor),
		}
		b.open[d] = r
	}
	r.outage.failed(err)
	now := time.Now()
	r.failedAt, r.wantedAt, r.tripped, r.types[eventType] = now, now, true, true
	r.probing = time.Time{}
	if !now.Before(r.until) {
		r.until = now.Add(r.pause + time.Duration(rand.Int64N(int64(r.pause/2))))
		r.pause = min(2*r.pause, longestPause)
	}
}

// passed says that a batch that began at the given time went out. One that
// began before the last failure proves nothing about what came after it.
func (b *breakers) passed(eventType string, began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(eventType)
	r := b.open[d]
	if r == nil || !began.After(r.failedAt) {
		return
	}
	r.tripped, r.until, r.probing = false, time.Time{}, time.Time{}
	clear(r.after)
	if r.pause = r.pause * 3 / 4; r.pause <= firstPause || time.Since(r.failedAt) > recovered {
		r.outage.passed()
		delete(b.open, d)
	}
}

// undecided says that a probe of eventType came to nothing: no event was left for
// it, or none that says anything of the destination.
func (b *breakers) undecided(eventType string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.open[b.destination(eventType)]; r != nil {
		r.probing = time.Time{}
	}
}

// want notes what is pending, also of types that a person has paused, and
// forgets the failing destinations for which nothing has been for long: someone
// else has sent or discarded those events.
func (b *breakers) want(pending []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		return
	}
	now := time.Now()
	for _, t := range pending {
		if r := b.open[b.destination(t)]; r != nil {
			r.wantedAt = now
		}
	}
	maps.DeleteFunc(b.open, func(_ string, r *breaker) bool {
		gone := now.Sub(r.wantedAt) > forgetBreaker
		if gone {
			r.outage.over("has nothing left to fail on")
		}
		return gone
	})
}

// awake returns those of the pending types that may be claimed: all types of
// destinations that work, and one of each that is half-open and has no probe
// under way.
func (b *breakers) awake(pending []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		return pending
	}
	now := time.Now()
	out := make([]string, 0, len(pending))
	halfOpen := make(map[*breaker][]string)
	for _, t := range pending {
		r := b.open[b.destination(t)]
		if r == nil {
			out = append(out, t)
			continue
		}
		switch {
		case now.Before(r.until), now.Before(r.probing):
		case r.tripped:
			halfOpen[r] = append(halfOpen[r], t)
		default:
			out = append(out, t)
		}
	}
	for r, types := range halfOpen {
		r.lastProbe = following(types, r.lastProbe)
		r.probing = now.Add(b.probeLasts)
		out = append(out, r.lastProbe)
	}
	return out
}

// following is the first of names behind last in their order, round and round.
func following(names []string, last string) string {
	slices.Sort(names)
	i, found := slices.BinarySearch(names, last)
	if found {
		i++
	}
	return names[i%len(names)]
}

// probe says whether the next claim of eventType is a probe, and where it
// begins.
func (b *breakers) probe(eventType string) (from Cursor, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.open[b.destination(eventType)]
	if r == nil || !r.tripped {
		return Cursor{}, false
	}
	return r.after[eventType], true
}

// probed says what a probe claimed. The next one of that type begins behind it,
// or from the start again when nothing is left there.
func (b *breakers) probed(eventType string, events []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.open[b.destination(eventType)]
	switch {
	case r == nil:
	case len(events) == 0:
		delete(r.after, eventType)
		r.probing = time.Time{}
	default:
		r.after[eventType] = After(events[len(events)-1].ID)
	}
}

// err says what cannot be published at the moment; nil when all can, or could
// the last time.
func (b *breakers) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, d := range slices.Sorted(maps.Keys(b.open)) {
		if r := b.open[d]; r.tripped {
			errs = append(errs, r.outage.err())
		}
	}
	return errors.Join(errs...)
}

// BreakerState is what a breaker is at.
type BreakerState string

const (
	// BreakerOpen: nothing is claimed for the destination.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen: one small batch is let through.
	BreakerHalfOpen BreakerState = "half-open"
	// BreakerRecovering: everything is claimed again, but the outage is so near
	// that the next failure would pause for long.
	BreakerRecovering BreakerState = "recovering"
)

// Breaker is a destination that does not take what it is sent. Those that work
// have none.
type Breaker struct {
	Destination string       `json:"destination"`
	State       BreakerState `json:"state"`
	// Since is when the outage began, by this process's clock, in UTC.
	Since time.Time `json:"since"`
	// Failures counts the batches that failed since then; Error is the last one.
	Failures int    `json:"failures"`
	Error    string `json:"error"`
	// EventTypes are those that failed, in order.
	EventTypes []string `json:"event_types"`
}

// Age is how long the outage has lasted, on this process's clock.
func (b Breaker) Age() time.Duration { return time.Since(b.Since) }

// list is a snapshot, in order of the destinations.
func (b *breakers) list() []Breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Breaker, 0, len(b.open))
	now := time.Now()
	for _, d := range slices.Sorted(maps.Keys(b.open)) {
		r := b.open[d]
		state := BreakerRecovering
		switch {
		case now.Before(r.until):
			state = BreakerOpen
		case r.tripped:
			state = BreakerHalfOpen
		}
		since, failures, last := r.outage.facts()
		out = append(out, Breaker{
			Destination: d, State: state, Since: since.UTC(), Failures: failures, Error: reason(last),
			EventTypes: slices.Sorted(maps.Keys(r.types)),
		})
	}
	return out
}
