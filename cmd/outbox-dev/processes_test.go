package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// This test is of whole programs: a served stack, three workers, one killed and
// one stopped in the middle of a backlog. Nothing is shared but the sockets.

const processPatience = 60 * time.Second

// programsBuilt is false when no test asked for them.
var programsBuilt bool

// programs is where both programs are, once they are built.
var programs = sync.OnceValues(func() (dir string, err error) {
	programsBuilt = true
	if dir, err = os.MkdirTemp("", "outbox-programs"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "azsqloutbox/cmd/outbox-dev", "azsqloutbox/cmd/outbox-worker").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return dir, err
})

// TestMain makes this binary the program when it is called like it: bench and chaos
// start their processes from os.Executable, and tests that started tests would go
// on for ever.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main() // does not return
	}
	code := m.Run()
	if programsBuilt {
		dir, _ := programs()
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func buildPrograms(t *testing.T) (dev, worker string) {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatalf("build the programs: %v", err)
	}
	return filepath.Join(dir, "outbox-dev"), filepath.Join(dir, "outbox-worker")
}

// process is a started program.
type process struct {
	*exec.Cmd
	stderr *lockedBuffer
	exited chan struct{}
}

// lockedBuffer may be read while a process still writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startProcess runs a program until the test ends.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, stderr: &lockedBuffer{}, exited: make(chan struct{})}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), p.stderr)
		}
	})
	return p
}

// exitCode waits for the end.
func (p *process) exitCode(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("%s did not end within %s", filepath.Base(p.Path), within)
		return -1
	}
}

var exportLine = regexp.MustCompile(`^export ([A-Z_]+)='(.*)'$`)

// serveStack starts outbox-dev serve and reads what it prints.
func serveStack(t *testing.T, dev string, args ...string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), dev, append([]string{"serve", "--sql-addr", "127.0.0.1:0", "--amqp-addr", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	startProcess(t, cmd)
	settings := map[string]string{}
	lines := bufio.NewScanner(out)
	for len(settings) < 3 && lines.Scan() {
		m := exportLine.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("serve printed %q, want an export line", lines.Text())
		}
		settings[m[1]] = m[2]
	}
	if len(settings) < 3 {
		t.Fatalf("serve ended after %v", settings)
	}
	return settings
}

// startWorker starts outbox-worker with a short lease.
func startWorker(t *testing.T, program, name string, settings map[string]string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "--owner", name, "--lease", "5s", "--listen", "off")
	cmd.Env = os.Environ()
	for k, v := range settings {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return startProcess(t, cmd)
}

func count(t *testing.T, db *sql.DB, text string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), text, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// killHoldingReceipts stops the process where it stands again and again until
// it is seen to own a receipt, and kills it there. A statement that was on the
// wire when it was stopped may still run, so the receipts are counted until two
// counts agree.
func killHoldingReceipts(t *testing.T, db *sql.DB, p *process, owner string) (receipts int) {
	t.Helper()
	owned := func() int {
		return count(t, db, "SELECT COUNT(*) FROM dbo.outbox_event_claim WHERE owner = @owner", sql.Named("owner", owner))
	}
	for deadline := time.Now().Add(processPatience); time.Now().Before(deadline); {
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		n := owned()
		for last := 0; n > 0 && n != last; n = owned() {
			last = n
			time.Sleep(100 * time.Millisecond)
		}
		if n > 0 {
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-p.exited
			return n
		}
		if err := p.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s was never seen to own a receipt", owner)
	return 0
}

func TestThreeWorkersOneKilledOneStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs four processes for some ten seconds")
	}
	const events = 50_000
	dev, program := buildPrograms(t)
	// A slow broker keeps batches in flight, so that a kill finds some.
	settings := serveStack(t, dev, "--amqp-round-trip", "200ms")
	db, err := sqlserver.Open(settings["OUTBOX_SQL_DSN"], sqlserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	made := samples{payloadBytes: 600}
	if err := write(t.Context(), settings["OUTBOX_SQL_DSN"], made, events, func(int) {}); err != nil {
		t.Fatal(err)
	}

	in := newInspector(made, events, func(int) {})
	in.source = "outbox.dbo.outbox_event"
	receiving, stopReceiving := context.WithCancel(t.Context())
	received := make(chan error, 1)
	go func() { received <- in.receive(receiving, settings["OUTBOX_SERVICEBUS_CONNECTION_STRING"]) }()
	defer func() {
		stopReceiving()
		if err := <-received; err != nil {
			t.Errorf("receive: %v", err)
		}
	}()

	killed := startWorker(t, program, "killed", settings)
	stopped := startWorker(t, program, "stopped", settings)
	startWorker(t, program, "survivor", settings)

	left := killHoldingReceipts(t, db, killed, "killed")
	if err := stopped.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := stopped.exitCode(t, worker.DefaultGrace); code != 0 {
		t.Errorf("the stopped worker exits %d, want 0 within the grace period", code)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM dbo.outbox_event_claim WHERE owner = 'stopped'"); n != 0 {
		t.Errorf("the stopped worker left %d receipts", n)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM dbo.outbox_event_worker WHERE owner = 'stopped'"); n != 0 {
		t.Error("the stopped worker left its heartbeat, as if it had been killed")
	}
	if n := count(t, db, "SELECT COUNT(*) FROM dbo.outbox_event_worker WHERE owner = 'killed'"); n != 1 {
		t.Error("the heartbeat of the killed worker is gone, as if it had stopped")
	}

	select {
	case <-in.complete:
	case <-time.After(processPatience):
		in.mu.Lock()
		arrived := in.received
		in.mu.Unlock()
		t.Fatalf("%d of %d events arrived", arrived, events)
	}
	// What the killed worker had sent arrived long ago, but its events go back to
	// PENDING once more when its leases end, and for a moment nobody holds a receipt.
	deadline := time.Now().Add(processPatience)
	for count(t, db, `SELECT (SELECT COUNT(*) FROM dbo.outbox_event WHERE status <> 1)
		+ (SELECT COUNT(*) FROM dbo.outbox_event_claim)`) > 0 {
		if time.Now().After(deadline) {
			t.Fatal("events that are not PROCESSED, or receipts, are left after everything arrived")
		}
		time.Sleep(50 * time.Millisecond)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.altered > 0 {
		t.Errorf("%d messages were altered: %v", in.altered, in.problem)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM dbo.outbox_event WHERE status = 1"); n != events {
		t.Errorf("%d of %d events are PROCESSED", n, events)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM dbo.outbox_event WHERE retry_count > 0"); n == 0 {
		t.Error("no event of the killed worker was reaped, though it left receipts")
	}
	t.Logf("%d receipts of the killed worker, %d duplicates received", left, in.duplicates)
}

func TestServeStopsOnInterrupt(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a process")
	}
	dev, _ := buildPrograms(t)
	cmd := exec.CommandContext(t.Context(), dev, "serve", "--sql-addr", "127.0.0.1:0", "--amqp-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, cmd)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.exitCode(t, 10*time.Second); code != 0 {
		t.Errorf("serve exits %d after Ctrl-C, want 0", code)
	}
}

func TestTheTestBinaryIsTheProgramToo(t *testing.T) {
	const child = "OUTBOX_DEV_TEST_CHILD"
	if os.Getenv(child) != "" {
		t.Skip("this is the suite where the program should be")
	}
	var log lockedBuffer
	engine, err := startBenchEngine(t.Context(), &log, "broker", 0, 1, child+"=1")
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if _, err := engine.counts(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if err := engine.close(); err != nil {
		t.Error(err)
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a b;c":    `'a b;c'`,
		"it's":     `'it'\''s'`,
		"$(reboot": `'$(reboot'`,
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) is %s, want %s", in, got, want)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("printf %%s %s", shellQuote(in))).Output()
		if err != nil || string(out) != in {
			t.Errorf("a shell makes %q of it (%v), want %q", out, err, in)
		}
	}
}
