package worker

import (
	"sync"
	"time"
)

// rates counts what went out between two heartbeats, so that a tool can say how
// fast the table is emptied without asking the table.
type rates struct {
	mu    sync.Mutex
	since time.Time
	sent  map[string]int
}

func (r *rates) add(eventType string, sent int) {
	if sent == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = make(map[string]int)
	}
	r.sent[eventType] += sent
}

// take returns the rates since the last call and begins anew.
func (r *rates) take() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	took := now.Sub(r.since).Seconds()
	if r.since.IsZero() || took <= 0 {
		r.since = now
		return nil
	}
	out := make(map[string]float64, len(r.sent))
	for eventType, n := range r.sent {
		out[eventType] = float64(n) / took
	}
	r.since, r.sent = now, nil
	return out
}
