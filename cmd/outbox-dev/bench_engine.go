package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// waits is how long the events from the first on were in the outbox: from
// created_at to the enqueued time, which are of one clock here, in whole
// milliseconds.
func waits(server *busemulator.Server, first string) benchTimes {
	from, _ := strconv.ParseInt(first, 10, 64)
	l := &latencies{}
	for m := range server.Each(local.Entity) {
		id, _ := m.ApplicationProperties[servicebus.PropertyEventID].(int64)
		if created, ok := m.ApplicationProperties[servicebus.PropertyCreatedAt].(time.Time); ok && id >= from {
			l.add(&l.publish, m.EnqueuedAt.Sub(created))
		}
	}
	return benchTimes{P50: l.quantile(&l.publish, .5), P99: l.quantile(&l.publish, .99)}
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
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startBenchEngine returns when the engine listens.
func startBenchEngine(ctx context.Context, log io.Writer, engine string, roundTrip time.Duration, payload int, env ...string) (*benchEngine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "bench-engine", engine, "--round-trip", roundTrip.String(), "--payload", fmt.Sprint(payload))
	cmd.Stderr, cmd.Env = log, append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s engine: %w", engine, err)
	}
	e := &benchEngine{cmd: cmd, in: in, out: bufio.NewReader(out)}
	line, err := e.out.ReadString('\n')
	if err != nil {
		_ = e.close()
		return nil, fmt.Errorf("the %s engine did not start: %w", engine, err)
	}
	e.address = strings.TrimSpace(line)
	return e, nil
}

func (e *benchEngine) ask(question string, reply any) error {
	if _, err := fmt.Fprintln(e.in, question); err != nil {
		return fmt.Errorf("ask an engine's process: %w", err)
	}
	line, err := e.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("an engine's process answers nothing: %w", err)
	}
	return json.Unmarshal(line, reply)
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

// waits is how long the events from first on were in the outbox.
func (e *benchEngine) waits(first int) (t benchTimes, err error) {
	err = e.ask(fmt.Sprint(askWaits, " ", first), &t)
	return t, err
}

// close ends the process and returns when it has ended.
func (e *benchEngine) close() error {
	_ = e.in.Close()
	if err := e.cmd.Wait(); err != nil {
		return fmt.Errorf("an engine's process: %w", err)
	}
	return nil
}
