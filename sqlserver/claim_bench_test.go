//go:build unix

package sqlserver_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

// engineProcess set makes the test binary an embedded engine and nothing else;
// engineProfile names a file for the CPU profile of its life.
const (
	engineProcess = "OUTBOX_BENCH_ENGINE"
	engineProfile = "OUTBOX_BENCH_ENGINE_PROFILE"
)

func TestMain(m *testing.M) {
	if os.Getenv(engineProcess) == "" {
		os.Exit(m.Run())
	}
	if err := runEngine(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runEngine prints its DSN, then for each line it reads the CPU time it has
// used, in nanoseconds, before and after a collection.
func runEngine(in io.Reader, out io.Writer) error {
	if path := os.Getenv(engineProfile); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s, err := emulator.Start(emulator.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintln(out, s.DSN())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		used := cpuNanos()
		runtime.GC()
		fmt.Fprintln(out, used, cpuNanos())
	}
	return nil
}

// cpuNanos is the CPU time of this process, user and system.
func cpuNanos() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// engine is an embedded engine in a process of its own.
type engine struct {
	b       testing.TB
	dsn     string
	in      io.Writer
	out     *bufio.Reader
	started int64
}

func startEngine(b *testing.B) *engine {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), engineProcess+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	e := &engine{b: b, in: in, out: bufio.NewReader(out)}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the engine's process: %v", err)
		}
	})
	e.dsn = strings.TrimSpace(e.line())
	return e
}

func (e *engine) line() string {
	e.b.Helper()
	text, err := e.out.ReadString('\n')
	if err != nil {
		e.b.Fatal(err)
	}
	return text
}

// lap returns the engine's CPU time since the last lap, without the collection
// that ends each.
func (e *engine) lap() int64 {
	e.b.Helper()
	fmt.Fprintln(e.in)
	var used, next int64
	if _, err := fmt.Sscan(e.line(), &used, &next); err != nil {
		e.b.Fatal(err)
	}
	used, e.started = used-e.started, next
	return used
}

// BenchmarkClaim is what the embedded engine sustains, so that it is not what
// other measurements measure: two connections claim 500 rows of 600 bytes at a
// time, by the store's own statements, from an engine in another process, until
// a backlog of 50,000 is empty. It reports claimed rows a second, and the CPU
// time a row of the engine and of this side, which say more on a busy machine.
func BenchmarkClaim(b *testing.B) {
	for _, encrypt := range []string{"disable", "true"} {
		b.Run("encrypt="+encrypt, func(b *testing.B) { benchmarkClaim(b, encrypt) })
	}
}

func benchmarkClaim(b *testing.B, encrypt string) {
	const (
		lanes   = 2
		batch   = 500
		backlog = 50_000
	)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what the worker's heap floor comes to
	e := startEngine(b)
	o := newOutboxOn(b, strings.Replace(e.dsn, "encrypt=true", "encrypt="+encrypt, 1), scripts.Options{})
	s := o.store(func(c *sqlserver.Config) { c.Logger = nil })
	o.addBacklog(backlog)

	drain := func() {
		var claimed atomic.Int64
		var group errgroup.Group
		for range lanes {
			group.Go(func() error {
				for {
					c, err := s.Claim(b.Context(), worker.ClaimRequest{EventType: "a", Batch: batch})
					if err != nil || len(c.Events) == 0 {
						return err
					}
					claimed.Add(int64(len(c.Events)))
				}
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		if n := claimed.Load(); n != backlog {
			b.Fatalf("claimed %d events", n)
		}
	}
	refill := func() {
		o.exec("UPDATE {events} SET status = 0, processed_at = NULL")
		o.exec("DELETE FROM {receipts}")
	}
	drain() // plans, connections, buffers
	refill()

	var engineCPU, ownCPU int64
	var before, after runtime.MemStats
	var mallocs uint64
	for b.Loop() {
		b.StopTimer()
		e.lap()
		runtime.GC()
		runtime.ReadMemStats(&before)
		own := cpuNanos()
		b.StartTimer()
		drain()
		b.StopTimer()
		ownCPU += cpuNanos() - own
		engineCPU += e.lap()
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		refill()
		b.StartTimer()
	}
	rows := float64(b.N) * backlog
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(engineCPU)/rows, "engine-cpu-ns/row")
	b.ReportMetric(float64(ownCPU)/rows, "client-cpu-ns/row")
	b.ReportMetric(float64(mallocs)/rows, "client-allocs/row")
}

// addBacklog inserts n pending events of type a, each with a payload of its own.
func (b *outbox) addBacklog(n int) {
	b.t.Helper()
	const step = 2000
	for from := 0; from < n; from += step {
		b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers)
SELECT @from + CAST(j.[key] AS BIGINT), 'order', 'customer-4711', 'a', CONCAT(@payload, 1000000 + @from + CAST(j.[key] AS BIGINT)), '{"tenant":"north"}'
FROM OPENJSON(N'[' + REPLICATE(CAST(N'1,' AS NVARCHAR(MAX)), @n - 1) + N'1]') AS j`,
			sql.Named("from", from), sql.Named("n", min(step, n-from)), sql.Named("payload", strings.Repeat("0123456789", 60)[7:]))
	}
}
