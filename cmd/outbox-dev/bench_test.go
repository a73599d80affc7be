package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runBench runs a bench command as a person does and returns its report, the one
// JSON object that it prints.
func runBench[Report any](t *testing.T, args ...string) (report Report) {
	t.Helper()
	dev, _ := buildPrograms(t)
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), dev, append(append([]string{"bench"}, args...), "--json")...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &stderr)
	}
	decoder := json.NewDecoder(&out)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("the result is not the report: %v", err)
	}
	if rest, err := io.ReadAll(io.MultiReader(decoder.Buffered(), &out)); err != nil || len(bytes.TrimSpace(rest)) > 0 {
		t.Fatalf("after the report comes %q, %v", rest, err)
	}
	return report
}

// Every strategy in small, in real processes: what it says it moved is what
// table and broker hold.
func TestBench(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some twenty processes")
	}
	t.Parallel()
	// No multiple of any strategy's batch.
	const events = 1234
	chart := filepath.Join(t.TempDir(), "chart.svg")
	report := runBench[benchReport](t, "--backlog", "1234", "--payload", "100", "--batch", "300", "--seconds", "120", "--lone", "5", "--idle-poll", "50ms", "--chart", chart)
	if svg, err := os.ReadFile(chart); err != nil || !bytes.HasPrefix(svg, []byte("<svg")) {
		t.Errorf("the chart: %v, %.100s", err, svg)
	}
	var names []string
	for _, r := range report.Results {
		names = append(names, r.Strategy)
		if r.Events != events || r.Network != "local" {
			t.Errorf("%s moved %d events on network %q, want %d on local", r.Strategy, r.Events, r.Network, events)
		}
		if err := r.proof(); err != nil {
			t.Error(err)
		}
		if r.EventsPerSecond <= 0 || r.CPUMicros <= 0 || r.PeakMiB <= 0 || r.Allocations <= 0 {
			t.Errorf("%s: %+v, want every figure measured", r.Strategy, r)
		}
		if waits := r.Strategy != claimOnly; (r.Outbox.P50 > 0) != waits || r.Outbox.P99 < r.Outbox.P50 {
			t.Errorf("%s: events were %+v in the outbox", r.Strategy, r.Outbox)
		}
		if idles := r.Strategy == "pipeline"; idles && len(r.Lone) != 1 || !idles && r.Lone != nil {
			t.Errorf("%s: lone events %+v", r.Strategy, r.Lone)
		}
		for _, l := range r.Lone {
			if l.IdlePollMS != 50 || l.Events != 5 || l.Outbox.P99 <= 0 || l.Statements <= 0 || l.CPU <= 0 || l.FirstEvent <= 0 {
				t.Errorf("lone events %+v, want every figure measured", l)
			}
		}
		if len(r.Ratios) != len(benchNames)-1 {
			t.Errorf("%s has ratios to %v", r.Strategy, r.Ratios)
		}
		if claims := r.Strategy != publishOnly; (r.Claim.P50 > 0) != claims || (r.RoundTrips > 0) != claims || r.Claim.P99 < r.Claim.P50 {
			t.Errorf("%s: claims took %+v in %g round trips", r.Strategy, r.Claim, r.RoundTrips)
		}
		if publishes := r.Strategy != claimOnly; (r.Publish.P50 > 0) != publishes || (r.Sends > 0) != publishes || r.Publish.P99 < r.Publish.P50 {
			t.Errorf("%s: sends took %+v, %g for 1,000 events", r.Strategy, r.Publish, r.Sends)
		}
	}
	if diff := cmp.Diff(benchNames, names); diff != "" {
		t.Errorf("strategies (-want +got):\n%s", diff)
	}
}

// A strategy that is out of time stops between two events, and what it moved is
// whole all the same.
func TestBenchStopsInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	report := runBench[benchReport](t, "--strategies", "baseline,serial", "--network", "azure", "--backlog", "20000", "--seconds", "1")
	for _, r := range report.Results {
		if r.Events == 0 || r.Events == 20_000 {
			t.Errorf("%s moved %d of 20000 events in a second", r.Strategy, r.Events)
		}
		if r.Publish.P50 < 8 {
			t.Errorf("%s: a send took %g ms, though the broker is 8 ms away", r.Strategy, r.Publish.P50)
		}
	}
}

// Whoever kills bench leaves no worker behind that waits for an engine.
func TestBenchWorkerEndsWithItsInput(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	t.Parallel()
	dev, _ := buildPrograms(t)
	job, err := json.Marshal(benchJob{
		Strategy: "pipeline", Lanes: 1, Batch: 10, Seconds: 3600,
		DSN: "sqlserver://outbox:x@127.0.0.1:1?database=outbox",
		Bus: "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=x;SharedAccessKey=x;UseDevelopmentEmulator=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, dev, "bench-worker")
	cmd.Stdin = bytes.NewReader(job)
	if out, err := cmd.CombinedOutput(); ctx.Err() != nil {
		t.Errorf("it goes on without its parent: %v\n%s", err, out)
	}
}

func TestBenchProof(t *testing.T) {
	good := benchResult{Strategy: "serial", Events: 5, Processed: 5, Received: 5}
	if err := good.proof(); err != nil {
		t.Errorf("a good result: %v", err)
	}
	for name, spoil := range map[string]func(*benchResult){
		"lost":       func(r *benchResult) { r.Received-- },
		"unmarked":   func(r *benchResult) { r.Processed-- },
		"overmarked": func(r *benchResult) { r.Processed++ },
		"twice":      func(r *benchResult) { r.Duplicates++ },
		"altered":    func(r *benchResult) { r.Altered++ },
		"receipt":    func(r *benchResult) { r.Receipts++ },
		"published":  func(r *benchResult) { r.Strategy = claimOnly },
	} {
		r := good
		spoil(&r)
		if r.proof() == nil {
			t.Errorf("%s: a bad result passes", name)
		}
	}
}

func TestBenchReport(t *testing.T) {
	result := func(network, strategy string, moved int64, took time.Duration) benchResult {
		return newBenchResult(strategy, network,
			benchDone{Moved: moved, Took: took, CPU: time.Duration(moved) * 8 * time.Microsecond, PeakBytes: 48 << 20, Mallocs: uint64(12 * moved), Claim: benchTimes{P50: 1.25, P99: 3}},
			benchCounts{RoundTrips: moved / 10, Statements: moved / 20}, benchCounts{Sends: moved / 100})
	}
	report := benchReport{Results: []benchResult{
		result("local", "pipeline", 60_000, 2*time.Second),
		result("local", claimOnly, 60_000, time.Second),
		result("local", publishOnly, 60_000, time.Second),
		result("azure", "pipeline", 60_000, 3*time.Second),
	}}
	report.compare()
	r := report.Results[0]
	if r.EventsPerSecond != 30_000 || r.CPUMicros != 8 || r.PeakMiB != 48 || r.Allocations != 12 || r.RoundTrips != 100 || r.Statements != 50 || r.Sends != 10 {
		t.Errorf("result %+v", r)
	}
	if r.LimitCPUShare != 2 { // each takes 8 µs
		t.Errorf("of the limits by CPU %g", r.LimitCPUShare)
	}
	if r.LimitShare != 1 || r.Ratios[claimOnly] != .5 || len(r.Ratios) != 2 {
		t.Errorf("of the limits %g, ratios %v", r.LimitShare, r.Ratios)
	}
	if r := report.Results[3]; len(r.Ratios) != 0 || r.LimitShare != 0 {
		t.Errorf("a network alone is compared: %+v", r)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"results", "strategy", "network", "events_per_second", "cpu_us_per_event", "rss_mib", "allocations_per_event", "claim_ms"} {
		if !bytes.Contains(text, []byte(`"`+key+`":`)) {
			t.Errorf("no %s in %s", key, text)
		}
	}
	var table strings.Builder
	if err := printReport(&table, false, report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"30000", "1.2/3.0", "local: pipeline reaches 1.00"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
}

func TestBenchWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--strategies", "magic"},
		{"--network", "moon"},
		{"--network", ""},
		{"--backlog", "0"},
		{"--payload", "2001"},
		{"--lanes", "0"},
		{"--batch", "5000"},
		{"--lone=-1"},
		{"--seconds", "0"},
		{"--seconds", "NaN"},
		{"--chart", filepath.Join(t.TempDir(), "no-folder", "chart.svg")},
		{"growth", "--pending", "99999999999"},
		{"growth", "--pending", "6000000", "--processed", "6000000"},
		{"growth", "--pending", "10000", "--processed", "9223372036854775807"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"bench"}, args...), &stdout, &stderr); code != 2 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d and %q, want 2 and one line", args, code, &stderr)
		}
	}
}
