package infra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
)

// programs are the two as they ship, and what they are told.
type programs struct {
	folder string
	env    []string // beside this process's
}

// buildPrograms makes them as the image has them, in one file.
func buildPrograms(t *testing.T) programs {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "outboxctl"), "../cmd/outboxctl")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := os.Symlink("outboxctl", filepath.Join(folder, "outbox-worker")); err != nil {
		t.Fatal(err)
	}
	return programs{folder: folder}
}

// run runs a program, logs what it says, and wants one of these exit codes.
func (p programs) run(t *testing.T, want []int, program string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(p.folder, program), args...)
	command.Env = append(os.Environ(), p.env...)
	stdout, stderr, code := exited(t, command)
	said := fmt.Sprintf("%s %s: exit code %d\n%s%s", program, strings.Join(args, " "), code, stdout, stderr)
	if !slices.Contains(want, code) {
		t.Fatal(said)
	}
	t.Log(said)
	return []byte(stdout)
}

// result is what a command of outboxctl says as JSON.
func (p programs) result(t *testing.T, into any, args ...string) {
	t.Helper()
	if output := p.run(t, []int{0}, "outboxctl", append(args, "--json")...); json.Unmarshal(output, into) != nil {
		t.Fatalf("outboxctl %s: no JSON: %s", args[0], output)
	}
}

// exited runs a command to its end, whatever its exit code.
func exited(t *testing.T, command *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// embedded are the two engines in this process, with an outbox that is empty.
func embedded(t *testing.T) *local.Stack {
	t.Helper()
	stack, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stack.Close() })
	return stack
}
