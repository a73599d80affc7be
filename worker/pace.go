package worker

import (
	"sync"
	"time"
)

// paces bound how many events a second are claimed for a destination, as
// Service Bus Standard wants it (its message credits). Claims are what is paced,
// not sends: a batch that waited for its turn would wait with its lease running.
type paces struct {
	rate        func(destination string) float64 // events/s; 0 is no bound
	destination func(eventType string) string

	mu      sync.Mutex
	buckets map[string]*bucket
}

// bucket fills at the destination's rate, to at most one second's worth.
type bucket struct {
	tokens float64
	filled time.Time
}

// quantum is the least worth claiming at once: a claim for every single event
// that the rate lets through would cost a transaction each.
const quantum = 250 * time.Millisecond

func newPaces(rate func(string) float64, destination func(string) string) *paces {
	return &paces{rate: rate, destination: destination, buckets: make(map[string]*bucket)}
}

// take returns how many of want events may be claimed now, and counts them. It
// returns 0 until a quantum is there.
func (p *paces) take(eventType string, want int) int {
	if p.rate == nil {
		return want
	}
	d := p.destination(eventType)
	rate := p.rate(d)
	if rate <= 0 {
		return want
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	full := max(rate, 1) // one second's worth, and one event at least
	b := p.buckets[d]
	if b == nil {
		b = &bucket{tokens: full, filled: now}
		p.buckets[d] = b
	}
	b.tokens = min(full, b.tokens+rate*now.Sub(b.filled).Seconds())
	b.filled = now
	if b.tokens < min(float64(want), max(1, rate*quantum.Seconds())) {
		return 0
	}
	n := int(min(float64(want), b.tokens)) // a rate may be more than an int holds
	b.tokens -= float64(n)
	return n
}

// give back what was taken and not claimed.
func (p *paces) give(eventType string, n int) {
	if n <= 0 || p.rate == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.buckets[p.destination(eventType)]; b != nil {
		b.tokens += float64(n)
	}
}
