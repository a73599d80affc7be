//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/sqlserver/emulator"
)

// benchProcess starts a benchmark in a process of its own, and returns while one
// of its claims is at the server.
func benchProcess(t *testing.T, engine *emulator.Server) (process *osexec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	args, err := json.Marshal([]string{"outboxctl", "bench", "claim", "--sql-dsn", engine.DSN(), "--execute", "--rows", "400", "--batch", "20", "--rounds", "3"})
	if err != nil {
		t.Fatal(err)
	}
	held := engine.Inject(emulator.Fault{Statement: "BenchUpdateTop", Nth: 2, Delay: time.Hour})
	process = osexec.Command(os.Args[0], "-test.run", "^TestAsProcess$")
	process.Env = append(os.Environ(), asProcess+"="+string(args))
	stderr = new(bytes.Buffer)
	process.Stderr = stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	for patience := time.Now().Add(time.Minute); held.Fired() == 0; {
		if time.Now().After(patience) {
			t.Fatal("it claims nothing")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return process, stderr
}

func TestBenchClaimCleansUpAfterCtrlC(t *testing.T) {
	stack := newStack(t, local.Config{})
	process, stderr := benchProcess(t, stack.SQL)
	if scratchTables(t, stack.SQL) != 2 {
		t.Error("there is no scratch table")
	}
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *osexec.ExitError
	if err := process.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "bench claim beside dbo.outbox_event was stopped") {
		t.Errorf("it ended with %v, stderr %s", err, stderr)
	}
	if n := scratchTables(t, stack.SQL); n > 0 {
		t.Errorf("%d tables are left", n)
	}
}

func TestBenchClaimAfterAKill(t *testing.T) {
	stack := newStack(t, local.Config{})
	process, _ := benchProcess(t, stack.SQL)
	if err := process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	// The server has its locks as long as it has not seen the connections end.
	for patience := time.Now().Add(time.Minute); stack.SQL.Connections() > 0; {
		if time.Now().After(patience) {
			t.Fatal("the connections of the killed process are still there")
		}
		time.Sleep(5 * time.Millisecond)
	}
	code, stdout, _ := outboxctl(t, "bench", "claim", "--sql-dsn", stack.SQL.DSN())
	if code != exitDone || strings.Count(stdout, "is of a run that was killed, or of one that goes on; --execute removes what was killed") != 1 {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	code, stdout, stderr := outboxctl(t, "bench", "claim", "--sql-dsn", stack.SQL.DSN(), "--execute", "--rows", "400", "--batch", "20", "--rounds", "3")
	if code != exitDone || strings.Count(stdout, "was left of a run that was killed, and is removed") != 1 || scratchTables(t, stack.SQL) > 0 {
		t.Errorf("exit %d, stderr %s\n%s", code, stderr, stdout)
	}
}
