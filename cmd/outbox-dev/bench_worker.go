package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// benchJob is what a strategy's process is told, on its standard input: the
// addresses hold passwords.
type benchJob struct {
	Strategy     string
	DSN, Bus     string
	Events       int
	PayloadBytes int
	Lanes, Batch int
	Seconds      float64
	Claims       int           // the pipeline ends after so many; 0 is no bound
	IdlePoll     time.Duration // of the worker; 0 is its default
}

// benchDone is what it answers.
type benchDone struct {
	Moved     int64
	Took, CPU time.Duration
	PeakBytes int64
	Mallocs   uint64
	Claim     benchTimes
	Publish   benchTimes
	Settle    benchTimes
}

// benchTimes are in milliseconds; both are 0 where a strategy has no such step.
type benchTimes struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// benchTask is what a strategy works with.
type benchTask struct {
	benchJob
	db   *sql.DB
	took *latencies
	end  time.Time // no claim after it

	claims atomic.Int64
	stop   context.CancelFunc // ends the pipeline after job.Claims

	moved atomic.Int64 // events
	last  atomic.Int64 // when moved grew last, in nanoseconds
}

// over says that the time is up.
func (t *benchTask) over() bool { return time.Now().After(t.end) }

// done notes n more events as moved.
func (t *benchTask) done(n int) {
	t.moved.Add(int64(n))
	t.last.Store(time.Now().UnixNano())
}

// timed runs one step and notes how long it took.
func (t *benchTask) timed(step *[]time.Duration, run func() error) error {
	from := time.Now()
	err := run()
	t.took.add(step, time.Since(from))
	return err
}

// benchStrategies move events until the backlog is empty or the time is over.
var benchStrategies = map[string]func(context.Context, *benchTask) error{
	"baseline":  benchBaseline,
	"optimized": benchOptimized,
	"serial":    benchSerial,
	"output":    benchOutput,
	"pipeline":  benchPipeline,
	claimOnly:   benchClaimOnly,
	publishOnly: benchPublishOnly,
	idleWorker:  benchIdle,
}

const (
	claimOnly   = "claim-only"
	publishOnly = "publish-only"
)

// benchNames is the order of the tables.
var benchNames = []string{"baseline", "optimized", "serial", "output", "pipeline", claimOnly, publishOnly}

// benchWorkerCmd is one strategy as a process, so that what it uses is its own.
type benchWorkerCmd struct{}

// Run reads a benchJob and prints a benchDone.
func (c *benchWorkerCmd) Run(ctx context.Context, s streams) error {
	service.Economize() // every strategy has what outbox-worker has
	var job benchJob
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	// Its input ends when the parent is done with it, or was killed: then the engines
	// are gone too, and a worker would wait for them until its time is over.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stop()
		answerCPU(io.MultiReader(input.Buffered(), os.Stdin), s.out)
	}()
	if job.Strategy == idleWorker {
		defer func() { <-ended }()
	}
	strategy, ok := benchStrategies[job.Strategy]
	if !ok {
		return fmt.Errorf("there is no strategy %q; there are %v", job.Strategy, slices.Sorted(maps.Keys(benchStrategies)))
	}
	db, err := sqlserver.Open(job.DSN, sqlserver.Options{AppName: "outbox-dev bench " + job.Strategy})
	if err != nil {
		return err
	}
	defer db.Close()
	t := &benchTask{benchJob: job, db: db, took: &latencies{}}
	runtime.GC()
	cpu, objects, begun := cpuTime(), mallocs(), time.Now()
	t.end = begun.Add(time.Duration(job.Seconds * float64(time.Second)))
	if err := strategy(ctx, t); err != nil {
		return err
	}
	done := benchDone{
		Moved: t.moved.Load(), Took: time.Unix(0, t.last.Load()).Sub(begun),
		CPU: cpuTime() - cpu, Mallocs: mallocs() - objects, PeakBytes: peakMemory(),
	}
	for step, times := range map[*benchTimes]*[]time.Duration{
		&done.Claim: &t.took.claim, &done.Publish: &t.took.publish, &done.Settle: &t.took.settle,
	} {
		*step = benchTimes{P50: t.took.quantile(times, .5), P99: t.took.quantile(times, .99)}
	}
	return json.NewEncoder(s.out).Encode(done)
}

// answerCPU answers each line with the CPU time of this process, until the input
// ends.
func answerCPU(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if len(lines.Bytes()) > 0 {
			_ = json.NewEncoder(out).Encode(cpuTime())
		}
	}
}

// runBenchWorker runs a strategy to its end.
func runBenchWorker(ctx context.Context, log io.Writer, job benchJob) (done benchDone, err error) {
	p, err := startBenchWorker(ctx, log, job)
	if err != nil {
		return done, err
	}
	answer := p.answer(&done)
	if err := p.close(); err != nil { // it says why there is no answer
		return done, err
	}
	return done, answer
}

// startBenchWorker starts the process of a strategy. It answers once, when the
// strategy ends; that of the idle worker ends with its input.
func startBenchWorker(ctx context.Context, log io.Writer, job benchJob) (*benchProcess, error) {
	p, err := startBenchProcess(ctx, log, nil, "bench-worker")
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(p.in).Encode(job); err != nil {
		return nil, errors.Join(fmt.Errorf("tell a strategy's process its job: %w", err), p.close())
	}
	return p, nil
}

// benchObserver takes the times of the strategies that are a worker.Worker, and
// counts what was sent.
type benchObserver struct {
	*latencies
	task *benchTask
}

// Claimed implements worker.Observer. A worker of one lane makes no claim more
// than the job bounds.
func (o benchObserver) Claimed(c worker.Claim, took time.Duration) {
	o.latencies.Claimed(c, took)
	if n := o.task.claims.Add(1); n == int64(o.task.Claims) {
		o.task.stop()
	}
}

// Published implements worker.Observer.
func (o benchObserver) Published(c worker.Claim, outcomes []worker.Outcome, took time.Duration) {
	o.latencies.Published(c, outcomes, took)
	sent := 0
	for _, outcome := range outcomes {
		if outcome.Verdict == worker.Sent {
			sent++
		}
	}
	o.task.done(sent)
}

// Settled implements worker.Observer.
func (o benchObserver) Settled(receipts []worker.Receipt, lost int, took time.Duration) {
	o.latencies.Settled(receipts, lost, took)
	o.task.done(0)
}

// openSender is for the strategies of the articles, which send by the SDK
// alone.
func (t *benchTask) openSender() (*azservicebus.Sender, func(), error) {
	client, err := azservicebus.NewClientFromConnectionString(t.Bus, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the broker: %w", err)
	}
	closeClient := func() { _ = client.Close(context.Background()) }
	sender, err := client.NewSender(local.Entity, nil)
	if err != nil {
		closeClient()
		return nil, nil, fmt.Errorf("open a sender: %w", err)
	}
	return sender, closeClient, nil
}
