package servicebus

import (
	"testing"
	"time"
)

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
