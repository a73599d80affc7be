package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRatesOfAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rates
		if got := r.take(); got != nil {
			t.Errorf("before anything was measured: %v", got)
		}
		r.add("a", 100)
		r.add("a", 50)
		r.add("b", 10)
		r.add("c", 0)
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff(map[string]float64{"a": 15, "b": 1}, r.take()); diff != "" {
			t.Errorf("rates (-want +got):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		if got := r.take(); len(got) != 0 {
			t.Errorf("after ten quiet seconds: %v", got)
		}
	})
}
