package worker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
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
		if err := c.err(); err == nil || !strings.Contains(err.Error(), `publishing "a" fails`) {
			t.Errorf("err is %v, want one that names the type", err)
		}
		c.failed("a", busy)
		c.passed("a")
		if asleep() || c.err() != nil {
			t.Error("the type still rests after a batch passed")
		}
		if got := c.awake([]string{"a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("awake are %v", got)
		}
	})
}
