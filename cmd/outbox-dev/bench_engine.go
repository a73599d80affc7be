package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/scripts"
	"azsqloutbox/servicebus"
	busemulator "azsqloutbox/servicebus/emulator"
	sqlemulator "azsqloutbox/sqlserver/emulator"
)

// benchEngineCmd is one embedded engine as a process. It prints its address,
// then answers each line that it reads with one line of JSON, until its input
// ends: so it does not outlive its parent.
type benchEngineCmd struct {
	Engine    string        `arg:"" enum:"sql,broker" help:"sql or broker."`
	RoundTrip time.Duration `default:"0s" help:"Delay of its answers."`
	Payload   int           `default:"600" help:"Bytes of each payload, to check what arrived."`
}

// What can be asked.
const (
	askCounts  = "counts"
	askAltered = "altered"
	askWaits   = "waits since" // the number of an event follows
)

// benchCounts is what an engine has done and used since it was started.
type benchCounts struct {
	CPU time.Duration
	// Of the database: requests of any kind, which each are a round trip, and
	// those that were not the beginning or the end of a transaction.
	RoundTrips, Statements int64
	// Of its locks: errors 1222 and 1205, table locks that replaced row locks, and
	// rows that READPAST passed by.
	LockTimeouts, Deadlocks, Escalations, Skipped int64
	// Of the broker: what it was sent, in one message or one batch of them, and
	// the messages, different ones and others.
	Sends, Received, Duplicates int64
}

func (c benchCounts) since(before benchCounts) benchCounts {
	return benchCounts{
		CPU:        c.CPU - before.CPU,
		RoundTrips: c.RoundTrips - before.RoundTrips, Statements: c.Statements - before.Statements,
		LockTimeouts: c.LockTimeouts - before.LockTimeouts, Deadlocks: c.Deadlocks - before.Deadlocks,
		Escalations: c.Escalations - before.Escalations, Skipped: c.Skipped - before.Skipped,
		Sends: c.Sends - before.Sends, Received: c.Received - before.Received, Duplicates: c.Duplicates - before.Duplicates,
	}
}

// Run serves until its input ends.
func (c *benchEngineCmd) Run(ctx context.Context, s streams) error {
	if c.Engine == "sql" {
		return c.database(ctx, s)
	}
	return c.broker(s)
}

func (c *benchEngineCmd) database(ctx context.Context, s streams) error {
	server, err := sqlemulator.Start(sqlemulator.Config{RoundTrip: c.RoundTrip})
	if err != nil {
		return err
	}
	defer server.Close()
	if err := local.ApplySchema(ctx, server.DSN(), scripts.Options{}); err != nil {
		return err
	}
	// A fault that does nothing, for ever, counts what it meets.
	count := func(statement string) *sqlemulator.Injected {
		return server.Inject(sqlemulator.Fault{Statement: statement, Times: -1})
	}
	all := count("")
	edges := []*sqlemulator.Injected{count(sqlemulator.Begin), count(sqlemulator.Commit), count(sqlemulator.Rollback)}
	return answer(s.out, server.DSN(), func(string) any {
		locks := server.Counters()
		n := benchCounts{
			CPU: cpuTime(), RoundTrips: int64(all.Fired()),
			LockTimeouts: locks.LockTimeouts, Deadlocks: locks.Deadlocks, Escalations: locks.Escalations, Skipped: locks.Skipped,
		}
		n.Statements = n.RoundTrips
		for _, edge := range edges {
			n.Statements -= int64(edge.Fired())
		}
		return n
	})
}

func (c *benchEngineCmd) broker(s streams) error {
	server, err := busemulator.Start(busemulator.Config{
		RoundTrip: c.RoundTrip,
		Entities:  []busemulator.Entity{{Name: local.Entity, DuplicateDetection: true, MaxSizeBytes: 80 << 30}},
	})
	if err != nil {
		return err
	}
	defer server.Close()
	return answer(s.out, server.PlainConnectionString(), func(question string) any {
		if question == askAltered {
			altered := 0
			for m := range server.Each(local.Entity) {
				if !goodBenchBody(m.Body, c.Payload) {
					altered++
				}
			}
			return altered
		}
		if first, ok := strings.CutPrefix(question, askWaits); ok {
			return waits(server, strings.TrimSpace(first))
		}
		stats, queue := server.Stats(), server.Counts(local.Entity)
		sends := stats.Batches
		if sends == 0 { // a strategy sends either batches or single messages
			sends = stats.MessagesReceived
		}
		return benchCounts{CPU: cpuTime(), Sends: sends, Received: queue.Enqueued, Duplicates: queue.Duplicates}
	})
}

// benchWaits are how some events fared between table and broker.
type benchWaits struct {
	// Outbox is from created_at to the enqueued time, which are of one clock here,
	// in whole milliseconds.
	Outbox benchTimes
	// Behind is how many other messages were enqueued meanwhile.
	Behind benchRanks
	// First is when the first of them was enqueued.
	First time.Time
}

// benchRanks are numbers of events.
type benchRanks struct {
	P50 int `json:"p50"`
	P99 int `json:"p99"`
	Max int `json:"max"`
}

// waits is how the events from the first on fared, among all messages.
func waits(server *busemulator.Server, first string) (w benchWaits) {
	from, _ := strconv.ParseInt(first, 10, 64)
	l := &latencies{}
	var arrivals []time.Time // of all messages, in their order
	type lone struct {
		created time.Time
		at      int // in arrivals
	}
	var asked []lone
	for m := range server.Each(local.Entity) {
		id, _ := m.ApplicationProperties[servicebus.PropertyEventID].(int64)
		if created, ok := m.ApplicationProperties[servicebus.PropertyCreatedAt].(time.Time); ok && id >= from {
			if len(asked) == 0 || m.EnqueuedAt.Before(w.First) {
				w.First = m.EnqueuedAt
			}
			asked = append(asked, lone{created, len(arrivals)})
			l.add(&l.publish, m.EnqueuedAt.Sub(created))
		}
		arrivals = append(arrivals, m.EnqueuedAt)
	}
	var behind []int
	for _, e := range asked {
		there, _ := slices.BinarySearchFunc(arrivals, e.created, time.Time.Compare)
		behind = append(behind, max(0, e.at-there))
	}
	if n := len(behind); n > 0 {
		slices.Sort(behind)
		w.Behind = benchRanks{behind[n/2], behind[min(n*99/100, n-1)], behind[n-1]}
	}
	w.Outbox = benchTimes{P50: l.quantile(&l.publish, .5), P99: l.quantile(&l.publish, .99)}
	return w
}

func answer(out io.Writer, address string, reply func(question string) any) error {
	fmt.Fprintln(out, address)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := json.NewEncoder(out).Encode(reply(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// benchEngine is the parent's view of an engine's process.
type benchEngine struct {
	*benchProcess
	address string
}

// startBenchEngine returns when the engine listens.
func startBenchEngine(ctx context.Context, log io.Writer, engine string, roundTrip time.Duration, payload int, env ...string) (*benchEngine, error) {
	p, err := startBenchProcess(ctx, log, env, "bench-engine", engine, "--round-trip", roundTrip.String(), "--payload", fmt.Sprint(payload))
	if err != nil {
		return nil, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.close()
		return nil, fmt.Errorf("the %s engine did not start: %w", engine, err)
	}
	return &benchEngine{p, strings.TrimSpace(line)}, nil
}

func (e *benchEngine) counts() (n benchCounts, err error) {
	err = e.ask(askCounts, &n)
	return n, err
}

// altered is how many of the messages that arrived are none of the events.
func (e *benchEngine) altered() (n int, err error) {
	err = e.ask(askAltered, &n)
	return n, err
}

// waits is how the events from first on fared.
func (e *benchEngine) waits(first int) (w benchWaits, err error) {
	err = e.ask(fmt.Sprint(askWaits, " ", first), &w)
	return w, err
}

// awaitReceived returns when so many messages have arrived.
func (e *benchEngine) awaitReceived(ctx context.Context, want int64, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; wait(ctx, 20*time.Millisecond) {
		now, err := e.counts()
		if err != nil {
			return err
		}
		if now.Received >= want {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d messages arrived within %s", now.Received, want, patience)
		}
	}
}
