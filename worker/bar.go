package worker

import (
	"sync"
	"time"
)

// bar stops claiming while settling is refused for a reason that no waiting
// mends, such as a missing right: every further claim would be published and
// then, its receipt still there, be published again after each lease. It opens
// when a settle succeeds. So that one can, a lane may make a trial claim of a
// single event now and then.
type bar struct {
	mu      sync.Mutex
	shut    bool
	pause   time.Duration
	trialAt time.Time
}

const (
	firstTrial   = 2 * time.Second
	longestTrial = time.Minute
)

// close shuts the bar. The wait for the next trial goes on growing while it
// stays shut.
func (b *bar) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.shut {
		b.shut, b.pause = true, firstTrial
		b.trialAt = time.Now().Add(b.pause)
	}
}

// open ends it: a settle has succeeded.
func (b *bar) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = false
}

func (b *bar) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shut
}

// trial returns true to the one caller that may claim although the bar is shut.
func (b *bar) trial() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.shut && !now.Before(b.trialAt) {
		b.pause = min(2*b.pause, longestTrial)
		b.trialAt = now.Add(b.pause)
		return true
	}
	return false
}
