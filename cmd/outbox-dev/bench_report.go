package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"text/tabwriter"
	"time"
)

// benchReport is what bench prints.
type benchReport struct {
	Machine      benchMachine  `json:"machine"`
	Backlog      int           `json:"backlog"`
	PayloadBytes int           `json:"payload_bytes"`
	Lanes        int           `json:"lanes"`
	Batch        int           `json:"batch"`
	Results      []benchResult `json:"results"`
}

// benchMachine is where it ran; its load is not known.
type benchMachine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

func thisMachine() benchMachine {
	return benchMachine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
}

// benchResult is one strategy on one network. CPU, memory and allocations are
// those of the strategy's own process, but for the two engines' CPU.
type benchResult struct {
	Strategy        string  `json:"strategy"`
	Network         string  `json:"network"`
	Events          int64   `json:"events"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	CPUMicros       float64 `json:"cpu_us_per_event"`
	DatabaseCPU     float64 `json:"database_cpu_us_per_event"`
	BrokerCPU       float64 `json:"broker_cpu_us_per_event"`
	PeakMiB         float64 `json:"rss_mib"`
	Allocations     float64 `json:"allocations_per_event"`

	Claim   benchTimes `json:"claim_ms"`
	Publish benchTimes `json:"publish_ms"`
	Settle  benchTimes `json:"settle_ms"`
	// Outbox is how long the events of the backlog were in it, from their insert
	// until the broker had them: mostly the time to empty it.
	Outbox benchTimes `json:"outbox_ms"`
	// Lone, of pipeline alone, is the same for single events on an idle worker, for
	// each --idle-poll.
	Lone []benchLone `json:"lone,omitempty"`

	// Requests to the database; those of them that carry statements; messages or
	// batches sent to the broker.
	RoundTrips float64 `json:"round_trips_per_1000_events"`
	Statements float64 `json:"statements_per_1000_events"`
	Sends      float64 `json:"sends_per_1000_events"`

	// What can be counted afterwards, in the table and at the broker.
	Processed  int64 `json:"processed"`
	Receipts   int64 `json:"receipts_left"`
	Received   int64 `json:"received"`
	Duplicates int64 `json:"duplicates"`
	Altered    int   `json:"altered"`

	// Ratios are the events a second of this strategy over those of each other
	// one on the same network.
	Ratios map[string]float64 `json:"ratios"`
	// LimitShare, of pipeline alone, is its rate over what claim-only and
	// publish-only allow where they share the processors: 1 / (1/c + 1/p).
	LimitShare float64 `json:"limit_share,omitempty"`
	// LimitCPUShare is the same by CPU time, that of all three processes: what
	// the two take for an event together over what pipeline takes. It does not
	// depend on how busy the machine was during each.
	LimitCPUShare float64 `json:"limit_cpu_share,omitempty"`
}

func newBenchResult(strategy, network string, d benchDone, database, broker benchCounts) benchResult {
	events := max(float64(d.Moved), 1)
	each := func(t time.Duration) float64 { return rounded(float64(t) / events / 1000) }
	return benchResult{
		Strategy: strategy, Network: network,
		Events: d.Moved, Seconds: rounded(d.Took.Seconds()),
		EventsPerSecond: rounded(float64(d.Moved) / max(d.Took.Seconds(), 1e-9)),
		CPUMicros:       each(d.CPU), DatabaseCPU: each(database.CPU), BrokerCPU: each(broker.CPU),
		PeakMiB:     rounded(float64(d.PeakBytes) / (1 << 20)),
		Allocations: rounded(float64(d.Mallocs) / events),
		Claim:       d.Claim, Publish: d.Publish, Settle: d.Settle,
		RoundTrips: rounded(1000 * float64(database.RoundTrips) / events),
		Statements: rounded(1000 * float64(database.Statements) / events),
		Sends:      rounded(1000 * float64(broker.Sends) / events),
		Received:   broker.Received, Duplicates: broker.Duplicates,
	}
}

// rounded leaves three digits behind the point.
func rounded(f float64) float64 { return math.Round(f*1000) / 1000 }

// proof compares what the strategy says with what table and broker hold.
func (r benchResult) proof() error {
	processed, received := r.Events, r.Events
	switch r.Strategy {
	case claimOnly:
		received = 0
	case publishOnly:
		processed = 0
	}
	if r.Processed == processed && r.Received == received && r.Duplicates == 0 && r.Altered == 0 && r.Receipts == 0 {
		return nil
	}
	return fmt.Errorf("%s, %s moved %d events, but %d are PROCESSED and %d were received, %d twice and %d altered; %d receipts are left",
		r.Network, r.Strategy, r.Events, r.Processed, r.Received, r.Duplicates, r.Altered, r.Receipts)
}

// compare fills in what results say of one another.
func (b *benchReport) compare() {
	rates, cpu := map[[2]string]float64{}, map[[2]string]float64{}
	for _, r := range b.Results {
		key := [2]string{r.Network, r.Strategy}
		rates[key], cpu[key] = r.EventsPerSecond, r.CPUMicros+r.DatabaseCPU+r.BrokerCPU
	}
	for i := range b.Results {
		r := &b.Results[i]
		r.Ratios = map[string]float64{}
		for key, rate := range rates {
			if key[0] == r.Network && key[1] != r.Strategy && rate > 0 {
				r.Ratios[key[1]] = rounded(r.EventsPerSecond / rate)
			}
		}
		claim, publish := rates[[2]string{r.Network, claimOnly}], rates[[2]string{r.Network, publishOnly}]
		if r.Strategy == "pipeline" && claim > 0 && publish > 0 {
			r.LimitShare = rounded(r.EventsPerSecond * (1/claim + 1/publish))
			r.LimitCPUShare = rounded((cpu[[2]string{r.Network, claimOnly}] + cpu[[2]string{r.Network, publishOnly}]) / cpu[[2]string{r.Network, r.Strategy}])
		}
	}
}

func (b benchReport) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "network\tstrategy\tevents\tevents/s\tof pipeline\tclaim ms\tpublish ms\tsettle ms\toutbox ms\tCPU µs\tMiB\tallocs\ttrips\tstatements\tsends\t")
	for _, r := range b.Results {
		share := "-"
		if ratio := r.Ratios["pipeline"]; ratio > 0 {
			share = fmt.Sprintf("%.2f", ratio)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t\n",
			r.Network, r.Strategy, r.Events, r.EventsPerSecond, share, r.Claim, r.Publish, r.Settle, r.Outbox,
			r.CPUMicros, r.PeakMiB, r.Allocations, r.RoundTrips, r.Statements, r.Sends)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, `
Milliseconds are p50/p99. CPU, peak memory and allocations are those of the
strategy's own process, CPU and allocations an event; round trips and statements
to the database and sends to the broker are for 1,000 events. %d events of %d
bytes waited; pipeline, claim-only and publish-only: %d lanes, batches of %d.
%s/%s, %d CPUs, %s. Rates, times and their ratios
depend on what else the machine does; counts do not.
`, b.Backlog, b.PayloadBytes, b.Lanes, b.Batch, b.Machine.OS, b.Machine.Arch, b.Machine.CPUs, b.Machine.Go)
	for _, r := range b.Results {
		if r.LimitShare > 0 {
			fmt.Fprintf(w, "%s: pipeline reaches %.2f of what claim-only and publish-only allow together, 1 / (1/c + 1/p); by CPU time, which the load of the machine changes less, %.2f.\n", r.Network, r.LimitShare, r.LimitCPUShare)
		}
		for _, l := range r.Lone {
			fmt.Fprintf(w, "%s, --idle-poll %.0fms: a lone event is %s ms in the outbox of an idle pipeline, which sends %.1f statements a second and uses %.2f %% of a core; the first event was out %.0f ms after the start of the process.\n",
				r.Network, l.IdlePollMS, l.Outbox, l.Statements, l.CPU, l.FirstEvent)
		}
	}
	return nil
}

// String is how the table shows them.
func (t benchTimes) String() string {
	if cmp.Or(t.P50, t.P99) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f/%.1f", t.P50, t.P99)
}
