package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
)

// cooldown keeps event types whose batches could not go out from being claimed
// again at once: each such claim costs the database a flip and its way back,
// for nothing. The pause grows while it goes on and ends with the first batch
// that passes. It is also what knows, and says once, that publishing fails.
type cooldown struct {
	log *zap.Logger

	mu    sync.Mutex
	types map[string]*rest
}

type rest struct {
	outage *outage
	pause  *backoff.ExponentialBackOff
	until  time.Time
}

const (
	firstRest   = 500 * time.Millisecond
	longestRest = 30 * time.Second
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
			pause:  newPause(firstRest, longestRest),
		}
		c.types[eventType] = r
	}
	r.outage.failed(err)
	if now := time.Now(); !now.Before(r.until) {
		r.until = now.Add(r.pause.NextBackOff())
	}
}

// passed ends the rest of eventType.
func (c *cooldown) passed(eventType string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.types[eventType]; r != nil {
		r.outage.passed()
		delete(c.types, eventType)
	}
}

// awake returns the types that do not rest.
func (c *cooldown) awake(types []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.types) == 0 {
		return types
	}
	now := time.Now()
	out := make([]string, 0, len(types))
	for _, t := range types {
		if r := c.types[t]; r == nil || !now.Before(r.until) {
			out = append(out, t)
		}
	}
	return out
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
