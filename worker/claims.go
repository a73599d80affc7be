package worker

import (
	"slices"
	"sync"
)

// claims is the outage of claiming. One event type may fail while others do not,
// when its part of the index is slow; it is over when every type that failed has
// passed or is not to be claimed any more.
type claims struct {
	outage *outage

	mu     sync.Mutex
	failed []string
}

func (c *claims) fail(eventType string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.failed, eventType) {
		c.failed = append(c.failed, eventType)
	}
	c.outage.failed(err)
}

func (c *claims) pass(eventType string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = slices.DeleteFunc(c.failed, func(t string) bool { return t == eventType })
	if len(c.failed) == 0 {
		c.outage.passed()
	}
}

// keep forgets the types that are not among those to claim, or a worker that has
// nothing to do would not be ready for the sake of its last claim.
func (c *claims) keep(toClaim []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = slices.DeleteFunc(c.failed, func(t string) bool { return !slices.Contains(toClaim, t) })
	if len(c.failed) == 0 {
		c.outage.over("fails no longer: nothing is to be claimed any more of what failed")
	}
}
