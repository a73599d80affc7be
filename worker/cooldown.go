package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// cooldown keeps event types whose batches could not go out from being claimed
// again at once: each such claim costs the database a flip and its way back,
// for nothing. The pause doubles with each failure. After it, a small trial
// batch goes out alone; when that passes, the type is back at full speed, and
// the pause it would get next shrinks by a quarter with every batch that passes,
// so that a broker which refuses every second batch is still given ever more
// time.
//
// It is also what knows, and says once, that publishing fails.
type cooldown struct {
	log *zap.Logger

	mu    sync.Mutex
	types map[string]*rest
}

type rest struct {
	outage *outage
	pause  time.Duration // the next one
	until  time.Time
	// failedAt and wantedAt are when a batch failed last and when something of
	// the type was pending last.
	failedAt, wantedAt time.Time
	// trying: the last batch failed, so the next one is a trial.
	trying bool
}

const (
	firstRest   = 500 * time.Millisecond
	longestRest = 30 * time.Second
	// forgetRest is when a type of which nothing is pending any more stops
	// counting as failing: longer than a batch can be in flight.
	forgetRest = 2 * time.Minute
	// trialBatch is small, so that a dead destination costs little, and more than
	// one event, so that the publisher can tell a poisonous event from a
	// destination that is down.
	trialBatch = 10
)

func newCooldown(log *zap.Logger) *cooldown {
	return &cooldown{log: log, types: make(map[string]*rest)}
}

// failed lets eventType rest. While it rests already, the pause does not grow:
// batches that were in flight together are one failure.
func (c *cooldown) failed(eventType string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.types[eventType]
	if r == nil {
		r = &rest{
			outage: &outage{subject: fmt.Sprintf("publishing %q", eventType), log: c.log},
			pause:  firstRest,
		}
		c.types[eventType] = r
	}
	r.outage.failed(err)
	now := time.Now()
	r.failedAt, r.wantedAt, r.trying = now, now, true
	if !now.Before(r.until) {
		r.until = now.Add(r.pause + time.Duration(rand.Int64N(int64(r.pause/2))))
		r.pause = min(2*r.pause, longestRest)
	}
}

// passed says that a batch that began at the given time went out. One that
// began before the last failure proves nothing about what came after it.
func (c *cooldown) passed(eventType string, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.types[eventType]
	if r == nil || !began.After(r.failedAt) {
		return
	}
	r.trying, r.until = false, time.Time{}
	if r.pause = r.pause * 3 / 4; r.pause <= firstRest {
		r.outage.passed()
		delete(c.types, eventType)
	}
}

// awake returns those of the pending types that do not rest, and forgets the
// failing ones of which nothing has been pending for long: someone else has
// sent or discarded those events.
func (c *cooldown) awake(pending []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.types) == 0 {
		return pending
	}
	now := time.Now()
	out := make([]string, 0, len(pending))
	for _, t := range pending {
		r := c.types[t]
		if r != nil {
			r.wantedAt = now
		}
		if r == nil || !now.Before(r.until) {
			out = append(out, t)
		}
	}
	maps.DeleteFunc(c.types, func(_ string, r *rest) bool {
		gone := now.Sub(r.wantedAt) > forgetRest && now.Sub(r.until) > forgetRest
		if gone {
			r.outage.over("has nothing left to fail on")
		}
		return gone
	})
	return out
}

// trying says whether the next claim of eventType is a trial.
func (c *cooldown) trying(eventType string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.types[eventType]
	return r != nil && r.trying
}

// err says what cannot be published at the moment; nil when all can.
func (c *cooldown) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, t := range slices.Sorted(maps.Keys(c.types)) {
		errs = append(errs, c.types[t].outage.err())
	}
	return errors.Join(errs...)
}

// state is for the heartbeat: a JSON object of the failing event types and
// since when they fail; nil when there are none.
func (c *cooldown) state() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.types) == 0 {
		return nil
	}
	failing := make(map[string]string, len(c.types))
	for t, r := range c.types {
		failing[t] = r.outage.begun().UTC().Format(time.RFC3339)
	}
	text, err := json.Marshal(failing)
	if err != nil {
		return nil // a map of strings cannot fail
	}
	return text
}
