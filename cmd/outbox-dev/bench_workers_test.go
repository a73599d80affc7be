package main

import "testing"

// Three workers on one event type wait for no lock and send nothing twice.
func TestBenchWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	report := runBench[workersReport](t, "workers", "--workers", "1,3", "--backlog", "20000", "--batch", "100", "--payload", "100")
	if len(report.Results) != 2 {
		t.Fatalf("results of %d numbers of workers", len(report.Results))
	}
	for _, r := range report.Results {
		if err := r.proof(20_000); err != nil {
			t.Error(err)
		}
		var moved int64
		for _, n := range r.Shares {
			moved += n
		}
		if moved != 20_000 || r.Statements <= 0 || r.CPUMicros <= 0 {
			t.Errorf("%+v, want every event of one worker and every figure measured", r)
		}
	}
}

func TestWorkersProof(t *testing.T) {
	good := workersResult{Workers: 2, Processed: 9, Received: 9}
	if err := good.proof(9); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*workersResult){
		"lost":      func(r *workersResult) { r.Received-- },
		"unmarked":  func(r *workersResult) { r.Processed-- },
		"twice":     func(r *workersResult) { r.Duplicates++ },
		"receipt":   func(r *workersResult) { r.Receipts++ },
		"waited":    func(r *workersResult) { r.LockWaits++ },
		"timed out": func(r *workersResult) { r.LockTimeouts++ },
		"deadlock":  func(r *workersResult) { r.Deadlocks++ },
		"escalated": func(r *workersResult) { r.Escalations++ },
	} {
		r := good
		spoil(&r)
		if r.proof(9) == nil {
			t.Errorf("%s: a bad result passes", name)
		}
	}
}
