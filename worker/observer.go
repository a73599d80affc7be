package worker

import "time"

// Observer is told what the worker does, for metrics and traces. Its methods are
// called from many goroutines at once, must return quickly and keep nothing of
// the events that they are shown.
type Observer interface {
	// Claimed is called for every claim that brought events, before they are
	// published; took is the claim's transaction.
	Claimed(c Claim, took time.Duration)
	Published(c Claim, outcomes []Outcome, took time.Duration)
	// Settled is called once a statement or transaction: the receipts it ended
	// and how many of them were lost to the reaper. took is zero for a claim that
	// was given up.
	Settled(receipts []Receipt, lost int, took time.Duration)
	Reaped(r Reaped)
}

// Observers tells each of them, in order. An empty one tells nobody.
type Observers []Observer

// Claimed implements Observer.
func (all Observers) Claimed(c Claim, took time.Duration) {
	for _, o := range all {
		o.Claimed(c, took)
	}
}

// Published implements Observer.
func (all Observers) Published(c Claim, outcomes []Outcome, took time.Duration) {
	for _, o := range all {
		o.Published(c, outcomes, took)
	}
}

// Settled implements Observer.
func (all Observers) Settled(receipts []Receipt, lost int, took time.Duration) {
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
