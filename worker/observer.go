package worker

import "time"

// Observer is told what the worker does, for metrics. Its methods are called
// from many goroutines at once and must return quickly.
type Observer interface {
	Claimed(eventType string, events int, took time.Duration)
	Published(eventType string, outcomes []Outcome, took time.Duration)
	// Settled is called once a statement or transaction: the receipts it ended
	// and how many of them were lost to the reaper.
	Settled(receipts, lost int, took time.Duration)
	Reaped(r Reaped)
}

// Observers tells each of them, in order. An empty one tells nobody.
type Observers []Observer

// Claimed implements Observer.
func (all Observers) Claimed(eventType string, events int, took time.Duration) {
	for _, o := range all {
		o.Claimed(eventType, events, took)
	}
}

// Published implements Observer.
func (all Observers) Published(eventType string, outcomes []Outcome, took time.Duration) {
	for _, o := range all {
		o.Published(eventType, outcomes, took)
	}
}

// Settled implements Observer.
func (all Observers) Settled(receipts, lost int, took time.Duration) {
	for _, o := range all {
		o.Settled(receipts, lost, took)
	}
}

// Reaped implements Observer.
func (all Observers) Reaped(r Reaped) {
	for _, o := range all {
		o.Reaped(r)
	}
}
