package main

import "testing"

// A batch touches the rows that it moves, twice, and few others, however many
// wait or are done. Counts do not depend on the machine.
func TestBenchGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ten processes")
	}
	t.Parallel()
	report := runBench[growthReport](t, "growth", "--pending", "1000,50000", "--processed", "0,50000", "--batch", "100", "--payload", "100")
	if len(report.Results) != 4 || report.Deviation > 10 {
		t.Errorf("report %+v", report)
	}
	for _, r := range report.Results {
		if r.Claim < 100 || r.Flip < 100 || r.Rows < r.Claim+r.Flip || r.Rows > 220 {
			t.Errorf("%+v, want 100 rows read and 100 flipped a batch, and little else", r)
		}
	}
}

func TestGrowthProof(t *testing.T) {
	report := growthReport{Results: []growthResult{{Rows: 1000}, {Rows: 1099}, {Rows: 901}}}
	report.compare()
	if err := report.proof(); err != nil || report.Deviation != 9.9 {
		t.Errorf("%v, deviation %g", err, report.Deviation)
	}
	report.Results = append(report.Results, growthResult{Rows: 890})
	report.compare()
	if report.proof() == nil {
		t.Error("11 % less passes")
	}
}
