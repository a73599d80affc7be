package sqlserver

import (
	"errors"
	"fmt"

	"azsqloutbox/worker"
)

// Severity says whether a finding must be mended.
type Severity string

const (
	// Must breaks the worker, its fence or its claims, or loses or repeats
	// events.
	Must Severity = "must"
	// Should costs more than it has to, or bites some day.
	Should Severity = "should"
)

// Finding is something about the tables that is not as the worker and the
// writers need it.
type Finding struct {
	Severity Severity `json:"severity"`
	// Object is what it is about: "column dbo.outbox_event.payload".
	Object string `json:"object"`
	// Problem is a sentence without its full stop.
	Problem string `json:"problem"`
	// SQL mends it; empty where no statement does by itself.
	SQL string `json:"sql,omitempty"`
	// Advice is what to know before, or to do instead.
	Advice string `json:"advice,omitempty"`
	// Adds says that SQL only adds what is missing, so that outboxctl schema
	// apply may send it.
	Adds bool `json:"adds"`
}

// defect is a finding with what it means for a worker.
type defect struct {
	Finding
	// stops says that a worker does not start with it.
	stops bool
	// number is the error that its statements would meet, where that is one of
	// an unusable index.
	number int32
}

// stopping is the first defect that a worker does not start with, as an error.
func stopping(defects []defect) error {
	for _, d := range defects {
		switch {
		case !d.stops:
		case d.number != 0:
			return &Error{Number: d.number, Class: IndexUnusable, Advice: knownErrors[d.number].advice, err: errors.New(d.Problem)}
		default:
			return fmt.Errorf("%s: %w", d.Problem, worker.ErrPermanent)
		}
	}
	return nil
}
