package main

import (
	"slices"
	"sync"
	"time"

	"azsqloutbox/worker"
)

// latencies keeps how long each claim, publish and settle took. It is a
// worker.Observer.
type latencies struct {
	mu                     sync.Mutex
	claim, publish, settle []time.Duration
}

// Claimed implements worker.Observer.
func (l *latencies) Claimed(_ worker.Claim, took time.Duration) { l.add(&l.claim, took) }

// Published implements worker.Observer.
func (l *latencies) Published(_ worker.Claim, _ []worker.Outcome, took time.Duration) {
	l.add(&l.publish, took)
}

// Settled implements worker.Observer.
func (l *latencies) Settled(_ []worker.Receipt, _ int, took time.Duration) { l.add(&l.settle, took) }

// Reaped implements worker.Observer.
func (l *latencies) Reaped(worker.Reaped) {}

func (l *latencies) add(to *[]time.Duration, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*to = append(*to, took)
}

// quantile is the value below which a share of q lies, in milliseconds; 0 for
// none.
func (l *latencies) quantile(of *[]time.Duration, q float64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(*of) == 0 {
		return 0
	}
	slices.Sort(*of)
	at := min(int(q*float64(len(*of))), len(*of)-1)
	return milliseconds((*of)[at])
}

// milliseconds with three digits.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond).Microseconds()) / 1000
}
