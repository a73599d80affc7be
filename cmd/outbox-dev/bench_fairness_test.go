package main

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// That other types get their turn is proved by counts in package sqlserver; this
// is the command.
func TestBenchFairness(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	dev, _ := buildPrograms(t)
	cmd := exec.CommandContext(t.Context(), dev, "bench", "fairness", "--backlog", "20000", "--every", "5ms", "--types", "2", "--payload", "100", "--json")
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	var r fairnessReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if err := r.proof(); err != nil {
		t.Error(err)
	}
	if r.Events == 0 || r.Seconds <= 0 || r.Outbox.P99 < r.Outbox.P50 || r.Behind.Max < r.Behind.P50 || r.Behind.Max > 20_000+r.Events {
		t.Errorf("%+v, want every figure measured", r)
	}
}
