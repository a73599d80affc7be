package claimbench

import (
	"testing"
	"time"
)

// ShortenAftermath lets a run give its scratch table up soon, until restore is
// called: a slow machine may need that time to drop one that can be dropped.
func ShortenAftermath(t *testing.T, d time.Duration) (restore func()) {
	old := aftermath
	aftermath = d
	restore = func() { aftermath = old }
	t.Cleanup(restore)
	return restore
}
