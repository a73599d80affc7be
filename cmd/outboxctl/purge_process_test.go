//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"syscall"
	"testing"
	"time"

	"azsqloutbox/sqlserver/emulator"
)

// asProcess is the variable that makes the test program the command.
const asProcess = "OUTBOXCTL_TEST_PROCESS"

// TestAsProcess is no test: it is outboxctl, for tests that send it signals.
func TestAsProcess(t *testing.T) {
	args := os.Getenv(asProcess)
	if args == "" {
		t.Skip("runs as a process of other tests only")
	}
	if err := json.Unmarshal([]byte(args), &os.Args); err != nil {
		t.Fatal(err)
	}
	main()
}

// purgeProcess starts a purge in a process of its own and returns while it
// pauses behind its first batch.
func purgeProcess(t *testing.T, engine *emulator.Server) (process *osexec.Cmd, stdout *bytes.Buffer) {
	t.Helper()
	args, err := json.Marshal([]string{"outboxctl", "purge", "--sql-dsn", engine.DSN(), "--execute", "--json", "--batch", "1000", "--pause", "1m"})
	if err != nil {
		t.Fatal(err)
	}
	process = osexec.Command(os.Args[0], "-test.run", "^TestAsProcess$")
	process.Env = append(os.Environ(), asProcess+"="+string(args))
	stdout = new(bytes.Buffer)
	process.Stdout = stdout
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	for patience := time.Now().Add(30 * time.Second); rowsLeft(t, engine) == 6003; {
		if time.Now().After(patience) {
			t.Fatal("nothing was deleted")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return process, stdout
}

func TestPurgeAfterAKill(t *testing.T) {
	engine := purgeEngine(t)
	process, _ := purgeProcess(t, engine)
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	if code, _, stderr := outboxctl(t, "purge", "--sql-dsn", engine.DSN(), "--execute"); code != exitDone || rowsLeft(t, engine) != 1003 {
		t.Errorf("exit %d, %d rows are left, stderr %q", code, rowsLeft(t, engine), stderr)
	}
}

func TestPurgeEndsOnSIGTERM(t *testing.T) {
	engine := purgeEngine(t)
	process, stdout := purgeProcess(t, engine)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *osexec.ExitError
	if err := process.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("it ended with %v", err)
	}
	var result struct {
		Rows    int64
		Stopped string
	}
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || result.Stopped != "interrupted" || result.Rows != 6003-rowsLeft(t, engine) {
		t.Errorf("%v, %+v, %d rows are left", err, result, rowsLeft(t, engine))
	}
}
