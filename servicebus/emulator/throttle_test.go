package emulator

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestCreditsAreOfASecondAndDebtsArePaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all throttle
		if err := all.spend(1 << 20); err != nil {
			t.Errorf("without a limit: %v", err)
		}
		all.set(1000)
		spend := func(credits int) bool { return all.spend(credits) == nil }
		if !spend(999) || !spend(2500) { // 2,499 are owed
			t.Error("refused with credits left")
		}
		if spend(1) {
			t.Error("passed without credits")
		}
		time.Sleep(2 * time.Second)
		if spend(1) {
			t.Error("passed while 499 are owed")
		}
		time.Sleep(time.Second)
		if !spend(501) || spend(1) {
			t.Error("the third second has 501 credits")
		}
		time.Sleep(time.Hour)
		if !spend(1000) || spend(1) {
			t.Error("credits were saved up")
		}
		if all.fired != 4 {
			t.Errorf("%d refusals", all.fired)
		}
	})
}
