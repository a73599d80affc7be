//go:build unix

package main

import (
	"encoding/json"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
)

// The image has one file under both names.
func TestTheNameChoosesTheProgram(t *testing.T) {
	for name, want := range map[string]string{
		"/usr/local/bin/outbox-worker": "outbox-worker ",
		"outbox-worker":                "outbox-worker ",
		"/usr/local/bin/outboxctl":     "outboxctl ",
		"/outbox-worker/ctl":           "outboxctl ",
	} {
		args, err := json.Marshal([]string{name, "--version"})
		if err != nil {
			t.Fatal(err)
		}
		process := osexec.Command(os.Args[0], "-test.run", "^TestAsProcess$")
		process.Env = append(os.Environ(), asProcess+"="+string(args))
		if output, err := process.CombinedOutput(); err != nil || !strings.HasPrefix(string(output), want) {
			t.Errorf("%s is %q, %v, want %q", name, output, err, want)
		}
	}
}
