package maintenance

import "time"

// SetLockPatience is for tests that run alone.
func SetLockPatience(d time.Duration) (restore func()) {
	was := lockPatience
	lockPatience = d
	return func() { lockPatience = was }
}

// SetOpenPause is for tests that run alone.
func SetOpenPause(d time.Duration) (restore func()) {
	was := openPause
	openPause = d
	return func() { openPause = was }
}

const StopGrace = stopGrace
