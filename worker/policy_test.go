package worker

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSettlementPolicy(t *testing.T) {
	broken := errors.New("the header is no JSON")
	tests := []struct {
		name     string
		spent    int
		outcomes []Outcome
		want     Settlement
	}{
		{"sent needs nothing", 0, []Outcome{{Verdict: Sent}}, Settlement{}},
		{
			"unsent goes back and spends nothing", 3,
			[]Outcome{{Verdict: Unsent, Err: broken}},
			Settlement{Returned: []int64{7}},
		},
		{
			"refused is parked", 0,
			[]Outcome{{Verdict: Refused, Err: broken}},
			Settlement{Failed: []Failure{{ID: 7, Error: "the header is no JSON"}}},
		},
		{
			"failed is parked with its last attempt", 9,
			[]Outcome{{Verdict: Failed, Err: broken}},
			Settlement{Failed: []Failure{{ID: 7, Error: "the header is no JSON", SpendAttempt: true}}},
		},
		{"a missing outcome counts as unsent", 0, nil, Settlement{Returned: []int64{7}}},
		{"so does the zero outcome", 0, []Outcome{{}}, Settlement{Returned: []int64{7}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Claim{Events: []Event{{ID: 7, RetryCount: tt.spent}}}
			got := settlement(c, tt.outcomes, 10)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedIsTriedAgainLaterAndLater(t *testing.T) {
	for at, longest := range []time.Duration{5, 5, 5, 10, 20, 40, 80, 160, 320, 600, 600} {
		longest *= time.Second
		spent := at - 2 // fewer than none is what people write to grant more
		c := Claim{Events: []Event{{ID: 7, RetryCount: spent}}}
		for range 100 {
			s := settlement(c, []Outcome{{Verdict: Failed}}, 100)
			if got := s.Failed[0].RetryIn; got > longest || got < longest*3/4 {
				t.Fatalf("after %d attempts it is tried again in %s, want %s to %s", spent, got, longest*3/4, longest)
			}
		}
	}
}

// However many attempts an event had, its pause is one.
func TestManyAttemptsDoNotOverflow(t *testing.T) {
	for spent := range 200 {
		if d := retryDelay(spent); d < firstRetry/2 || d > LongestRetry {
			t.Fatalf("after %d attempts it is tried again in %s", spent, d)
		}
	}
}

// The first reason is the one that a person reads: those behind it may follow from it.
func TestTheFirstReasonIsTold(t *testing.T) {
	first := errors.New("entity disabled")
	got := count(3, []Outcome{{Verdict: Sent}, {Verdict: Unsent, Err: first}, {Verdict: Unsent, Err: errAway}})
	if got.sent != 1 || got.unsent != 2 || got.unsentErr != first {
		t.Errorf("the tally is %+v", got)
	}
}

func TestIdlePauseShrinksAsBatchesFill(t *testing.T) {
	const poll = 250 * time.Millisecond
	for _, tt := range []struct {
		claimed   int
		low, high time.Duration
	}{
		{0, poll * 107 / 100, poll * 118 / 100},
		{250, poll / 2, poll * 59 / 100},
		{500, 0, 0},
		{9000, 0, 0},
	} {
		for range 100 {
			if got := idlePause(poll, tt.claimed, 500); got < tt.low || got > tt.high {
				t.Fatalf("after %d events of a batch of 500 the pause is %s, want %s to %s", tt.claimed, got, tt.low, tt.high)
			}
		}
	}
}
