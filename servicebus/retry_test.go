package servicebus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What a message may be to blame for has been sent, in whichever try.
func TestCutOffSaysWhetherSomethingWasSent(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	away := errors.New("away")
	for _, c := range []struct{ before, last, nothing bool }{
		{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false},
	} {
		before := &failure{policy: policy{KindConnection, retry}, err: away, nothingSent: c.before}
		last := &failure{policy: policy{KindTimeout, giveBack}, err: late.Err(), nothingSent: c.last}
		f := cutOff(late, last, before)
		if f.nothingSent != c.nothing || f.kind != KindConnection || f.action != giveBack || !errors.Is(f.err, away) {
			t.Errorf("before %v, last %v: %+v", c.before, c.last, f)
		}
		if f := cutOff(late, last, nil); f.nothingSent != c.last || f.kind != KindTimeout || f.action != giveBack {
			t.Errorf("a first try, %v: %+v", c.last, f)
		}
	}
}

// No time is waited that would not be followed by a try.
func TestSleepEndsAtOnceWhereTheDeadlineIsNearer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for wait, want := range map[time.Duration]time.Duration{time.Minute: 0, 59 * time.Second: 59 * time.Second} {
			if begun := time.Now(); sleep(ctx, wait) != (want > 0) || time.Since(begun) != want {
				t.Errorf("slept %s of %s", time.Since(begun), wait)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
		}
	})
}

func TestPauseGrowsAndIsBounded(t *testing.T) {
	for try := 1; try < 100; try++ {
		for kind, least := range map[Kind]time.Duration{KindConnection: 100 * time.Millisecond, KindThrottled: time.Second} {
			if got := pause(kind, try); got < least || got > 7500*time.Millisecond {
				t.Fatalf("pause(%s, %d) = %s", kind, try, got)
			}
		}
	}
	if got := pause(KindConnection, 6); got < 2500*time.Millisecond {
		t.Errorf("the sixth pause is %s, it should have grown", got)
	}
}
