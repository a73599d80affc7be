package worker

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstRetry = 5 * time.Second
	// LongestRetry is the longest time after which an event that failed comes back
	// by itself, if nothing stands in the way then.
	LongestRetry = 10 * time.Minute
)

// settlement turns the outcomes of a claim into what happens to its rows.
// A publisher that breaks its contract loses nothing: an event without a
// verdict counts as unsent.
func settlement(c Claim, outcomes []Outcome, maxAttempts int) Settlement {
	s := Settlement{Receipt: c.Receipt}
	for i, e := range c.Events {
		var o Outcome
		if i < len(outcomes) {
			o = outcomes[i]
		}
		switch o.Verdict {
		case Sent:
		case Refused:
			s.Failed = append(s.Failed, Failure{ID: e.ID, Error: reason(o.Err)})
		case Failed:
			f := Failure{ID: e.ID, Error: reason(o.Err), SpendAttempt: true}
			if e.RetryCount+1 < maxAttempts {
				f.RetryIn = retryDelay(e.RetryCount)
			}
			s.Failed = append(s.Failed, f)
		default:
			s.Returned = append(s.Returned, e.ID)
		}
	}
	return s
}

// retryDelay doubles with every attempt spent and varies by a quarter, so that
// events that failed together do not come back together. People write negative
// counts into a table to grant more attempts.
func retryDelay(spent int) time.Duration {
	d := LongestRetry
	if spent < 16 {
		d = min(firstRetry<<max(spent, 0), LongestRetry)
	}
	return d - time.Duration(rand.Int64N(int64(d/4)))
}

// doubtful says whether an error may be about a message rather than about its
// destination: a send that was not answered, say.
func doubtful(err error) bool {
	var d interface{ Doubtful() bool }
	return errors.As(err, &d) && d.Doubtful()
}

func reason(err error) string {
	if err == nil {
		return "the publisher gave no reason"
	}
	return err.Error()
}

// tally counts outcomes by verdict and keeps the first reason for unsent ones.
type tally struct {
	sent, refused, failed, unsent int
	unsentErr                     error
}

func count(events int, outcomes []Outcome) tally {
	var t tally
	for _, o := range outcomes[:min(events, len(outcomes))] {
		switch o.Verdict {
		case Sent:
			t.sent++
		case Refused:
			t.refused++
		case Failed:
			t.failed++
		default:
			t.unsentErr = firstError(t.unsentErr, o.Err)
		}
	}
	t.unsent = events - t.sent - t.refused - t.failed
	if t.unsent > 0 {
		t.unsentErr = firstError(t.unsentErr, errors.New("the publisher gave no outcome"))
	}
	return t
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
