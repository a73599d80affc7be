package worker

import "time"

// Verdict is what became of one event at the broker.
type Verdict uint8

const (
	_ Verdict = iota // the zero value is a publisher's bug, treated as Unsent
	// Sent means that the broker confirmed the message.
	Sent
	// Refused means that this event can never be taken as it is: too large, a
	// header that is no JSON, a property the broker rejects. It is parked.
	Refused
	// Failed means that this event failed for a reason that may be its own. It
	// spends an attempt and is tried again later.
	Failed
	// Unsent means that the event did not go out, through no fault of its own:
	// throttling, a lost connection, a missing entity, a deadline. It goes back
	// to PENDING and spends nothing. It may have reached the broker all the same
	// when the confirmation was lost; the same MessageID is sent again then.
	Unsent
)

func (v Verdict) String() string {
	switch v {
	case Sent:
		return "sent"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	case Unsent:
		return "unsent"
	default:
		return "unknown"
	}
}

// Outcome is the verdict on one event; Err says why, and is nil only for Sent.
type Outcome struct {
	Verdict Verdict
	Err     error
}

// Settlement is what the outcomes of a claim mean for its rows. Events that
// are in neither list were sent: their rows are PROCESSED already.
type Settlement struct {
	Receipt Receipt
	// Returned go back to PENDING with nothing spent.
	Returned []int64
	// Failed go to FAILED.
	Failed []Failure
}

// AllSent says that nothing is to be done but to delete the receipt.
func (s Settlement) AllSent() bool { return len(s.Returned) == 0 && len(s.Failed) == 0 }

// Failure is one event on its way to FAILED.
type Failure struct {
	ID int64
	// Error is for the person who reads last_error. The store makes it fit the
	// column.
	Error string
	// SpendAttempt adds one to retry_count.
	SpendAttempt bool
	// RetryIn is added to the database's clock to give retry_at. Zero means
	// parked: retry_at stays NULL and the event waits for a person.
	RetryIn time.Duration
}
