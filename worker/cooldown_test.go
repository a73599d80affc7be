package worker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestCooldownGrowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCooldown(zap.NewNop())
		busy := errors.New("server busy")
		asleep := func() bool { return !slices.Contains(c.awake([]string{"a", "b"}), "a") }
		var rests []time.Duration
		for range 12 {
			c.failed("a", busy)
			begun := time.Now()
			for asleep() {
				c.failed("a", busy) // another batch of the same failure
				time.Sleep(10 * time.Millisecond)
			}
			rests = append(rests, time.Since(begun))
		}
		if rests[0] > time.Second {
			t.Errorf("the first rest is %s, want at most a second", rests[0])
		}
		last := rests[len(rests)-1]
		if last < longestRest/2 || last > longestRest*3/2 {
			t.Errorf("the last rest is %s, want %s give or take a half", last, longestRest)
		}
		if err := c.err(); err == nil || !strings.Contains(err.Error(), `publishing "a" has been failing`) {
			t.Errorf("err is %v, want one that names the type", err)
		}
		// One batch that passes is no proof yet, and one that began before the
		// failure is none at all.
		c.failed("a", busy)
		before := time.Now()
		time.Sleep(time.Second)
		c.failed("a", busy)
		c.passed("a", before)
		if !asleep() || !c.trying("a") {
			t.Error("a batch from before the failure ended the rest")
		}
		for range 20 {
			time.Sleep(time.Millisecond)
			c.passed("a", time.Now())
		}
		if asleep() || c.trying("a") || c.err() != nil {
			t.Errorf("the type still rests after twenty batches passed: %v", c.err())
		}
		if got := c.awake([]string{"a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("awake are %v", got)
		}
	})
}

// A broker that refuses every second batch is one outage, and is asked ever
// more rarely.
func TestCooldownOfEverySecondBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, seen := observer.New(zap.InfoLevel)
		c := newCooldown(zap.New(logs))
		asked := 0
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if len(c.awake([]string{"a"})) == 0 {
				continue
			}
			began := time.Now()
			time.Sleep(5 * time.Millisecond)
			if asked++; asked%2 == 0 {
				c.passed("a", began)
			} else {
				c.failed("a", errors.New("server busy"))
			}
		}
		if asked > 120 || asked < 20 {
			t.Errorf("asked %d times in ten minutes, want two for each pause of up to half a minute", asked)
		}
		if seen.Len() != 1 {
			t.Errorf("%d log lines for one outage", seen.Len())
		}
	})
}

func TestCooldownForgetsWhatNobodyWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCooldown(zap.NewNop())
		c.failed("a", errors.New("server busy"))
		time.Sleep(time.Minute)
		c.awake(nil)
		if c.err() == nil {
			t.Error("forgotten while a batch could still be in flight")
		}
		time.Sleep(2 * time.Minute)
		c.awake(nil)
		if err := c.err(); err != nil {
			t.Errorf("nothing is pending for minutes, still failing: %v", err)
		}
	})
}
