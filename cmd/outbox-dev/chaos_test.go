package main

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The short form of the proof: real processes, half a minute of faults.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("injects faults for half a minute")
	}
	dev, _ := buildPrograms(t)
	cmd := exec.CommandContext(t.Context(), dev, "chaos", "--minutes", "0.4", "--seed", "7", "--rate", "200", "--json")
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	var r chaosResult
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if r.Events < 1000 || r.Received != r.Events || r.Lost+r.Altered+r.LeftBehind+r.UnexplainedDuplicates+r.BadExits > 0 {
		t.Errorf("the proof says %+v", r)
	}
	if r.RolledBack == 0 || r.Poison == 0 || len(r.Faults) < 15 {
		t.Errorf("too little happened: %d events rolled back, %d poison, faults %v", r.RolledBack, r.Poison, r.Faults)
	}
}

func TestChaosPlan(t *testing.T) {
	const length = 3 * time.Minute
	plan := planChaos(1, length, 3)
	if diff := cmp.Diff(plan, planChaos(1, length, 3), cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("the same seed gives other faults (-first +second):\n%s", diff)
	}
	if cmp.Equal(plan, planChaos(2, length, 3), cmp.AllowUnexported(step{})) {
		t.Error("another seed gives the same faults")
	}
	kinds := make(map[string]int)
	for i, s := range plan {
		kinds[s.kind]++
		if s.at > length-chaosCalmEnd || i > 0 && s.at < plan[i-1].at {
			t.Errorf("step %d at %s", i, s.at)
		}
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, chaosKinds()) {
		t.Errorf("kinds in the plan: %v", got)
	}
}
