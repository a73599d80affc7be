package service_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-worker/service"
)

func TestVersionNamesProgramVersionAndCommit(t *testing.T) {
	version, commit := service.Version, service.Commit
	t.Cleanup(func() { service.Version, service.Commit = version, commit })
	service.Version, service.Commit = "v1.2.3", "0123abc"

	var target struct {
		Version service.VersionFlag `env:"-"`
	}
	var stdout, stderr bytes.Buffer
	code, ok := service.Parse(&target, "a-program", "", []string{"--version"}, &stdout, &stderr)
	if code != 0 || ok || stderr.Len() != 0 || !strings.HasPrefix(stdout.String(), "a-program v1.2.3 (commit 0123abc, go") {
		t.Errorf("exit code %d, %v, stdout %q, stderr %q", code, ok, stdout.String(), stderr.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A script that keeps the version in a file must see that the file is empty.
func TestWhatCannotBePrintedFails(t *testing.T) {
	for _, flag := range []string{"--version", "--help"} {
		var target struct {
			Version service.VersionFlag `env:"-"`
		}
		var stderr bytes.Buffer
		code, ok := service.Parse(&target, "a-program", "", []string{flag}, fullDisk{}, &stderr)
		if want := "a-program: print what was asked for: no space left on device\n"; code != 1 || ok || stderr.String() != want {
			t.Errorf("%s: exit code %d, %v, stderr %q, want 1 and %q", flag, code, ok, &stderr, want)
		}
	}
}

// The column of the heartbeats is 50 bytes wide, and an image may be named after a
// long branch.
func TestALongVersionStarts(t *testing.T) {
	version := service.Version
	t.Cleanup(func() { service.Version = version })
	service.Version = "v1.2.3-" + strings.Repeat("feature-", 10)
	settings, err := service.DefaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	settings.SQL.DSN = "sqlserver://u:p@localhost?database=d"
	settings.ServiceBus.ConnectionString = "Endpoint=sb://localhost;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true"
	settings.ServiceBus.Entity = "q"
	if _, err := service.New(settings, zap.NewNop()); err != nil {
		t.Error(err)
	}
}
