package main

import "testing"

// That other types get their turn is proved by counts in package sqlserver; this
// is the command.
func TestBenchFairness(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	r := runBench[fairnessReport](t, "fairness", "--backlog", "20000", "--every", "5ms", "--types", "2", "--payload", "100")
	if err := r.proof(); err != nil {
		t.Error(err)
	}
	if r.Events == 0 || r.Seconds <= 0 || r.Outbox.P99 < r.Outbox.P50 || r.Behind.Max < r.Behind.P50 || r.Behind.Max > 20_000+r.Events {
		t.Errorf("%+v, want every figure measured", r)
	}
}
