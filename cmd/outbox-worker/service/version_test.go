package service_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"azsqloutbox/cmd/outbox-worker/service"
)

func TestVersionNamesProgramVersionAndCommit(t *testing.T) {
	version, commit := service.Version, service.Commit
	t.Cleanup(func() { service.Version, service.Commit = version, commit })
	service.Version, service.Commit = "v1.2.3", "0123abc"

	var target struct {
		Version kong.VersionFlag `env:"-"`
	}
	var stdout, stderr bytes.Buffer
	code, ok := service.Parse(&target, "a-program", "", []string{"--version"}, &stdout, &stderr)
	if code != 0 || ok || stderr.Len() != 0 || !strings.HasPrefix(stdout.String(), "a-program v1.2.3 (commit 0123abc, go") {
		t.Errorf("exit code %d, %v, stdout %q, stderr %q", code, ok, stdout.String(), stderr.String())
	}
}
