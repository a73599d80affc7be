package claimbench

import (
	"testing"
	"time"
)

// ShortenAftermath lets a run give its scratch table up soon.
func ShortenAftermath(t *testing.T, d time.Duration) {
	old := aftermath
	aftermath = d
	t.Cleanup(func() { aftermath = old })
}
