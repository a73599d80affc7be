//go:build linux

package infra

import (
	"bufio"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/cmd/outbox-dev/local"
)

// image is what infra/check-image.sh built, and a container made from it.
type image struct{ container, root, version, commit string }

func builtImage(t *testing.T) image {
	t.Helper()
	i := image{os.Getenv("OUTBOX_TEST_CONTAINER"), os.Getenv("OUTBOX_TEST_IMAGE_ROOT"), os.Getenv("OUTBOX_TEST_IMAGE_VERSION"), os.Getenv("OUTBOX_TEST_IMAGE_COMMIT")}
	if i.container == "" {
		t.Skip("OUTBOX_TEST_CONTAINER names no container; infra/check-image.sh makes one")
	}
	return i
}

// command is one in the image: its files, its user, no other environment, and
// nothing of this machine's but the network. buildah run is as little of a container,
// and under load it was seen to lose what a short command writes.
func (i image) command(t *testing.T, env []string, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append([]string{"PATH=/usr/local/bin"}, env...)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: i.root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	return command
}

// imageUser is the Dockerfile's USER, which TestTheImagesSettings looks at.
const imageUser = 65532

const maxImageBytes = 40_000_000 // unpacked

func TestTheImageHoldsOneProgramOfTwoNames(t *testing.T) {
	i := builtImage(t)
	var files []string
	var size int64
	err := filepath.WalkDir(i.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		name := strings.TrimPrefix(path, i.root)
		if target, err := os.Readlink(path); err == nil {
			name += " -> " + target
		}
		files = append(files, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/etc/ssl/certs/ca-certificates.crt", "/usr/local/bin/outbox-worker -> outboxctl", "/usr/local/bin/outboxctl"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("the image's files (-want +got):\n%s", diff)
	}
	t.Logf("unpacked: %.1f MB", float64(size)/1e6)
	if size >= maxImageBytes {
		t.Errorf("the image has %d bytes unpacked, want less than %d", size, maxImageBytes)
	}

	certificates, err := os.ReadFile(filepath.Join(i.root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(certificates) {
		t.Errorf("no certificate authorities: %v", err)
	}
	for _, name := range []string{"outbox-worker", "outboxctl"} {
		output, err := i.command(t, nil, "/usr/local/bin/"+name, "--version").CombinedOutput()
		if said := fmt.Sprintf("%s %s (commit %s, go", name, i.version, i.commit); err != nil || !strings.HasPrefix(string(output), said) {
			t.Errorf("%s --version: %v, %q, want %q…", name, err, output, said)
		}
	}
}

func TestTheImagesProgramNeedsNothingElse(t *testing.T) {
	i := builtImage(t)
	program := filepath.Join(i.root, "usr/local/bin/outboxctl")
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the program is not static: it names an interpreter")
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-tags" && s.Value == "timetzdata" }) {
		t.Errorf("the time zones are not built in: %v", info.Settings)
	}
}

// TestTheImageIsReproducible builds the same program a second time, in another folder
// and with another build cache.
func TestTheImageIsReproducible(t *testing.T) {
	i := builtImage(t)
	out := t.TempDir()
	built := 0
	for _, line := range buildStage(t) {
		command, isRun := strings.CutPrefix(line, "RUN ")
		if !isRun || !strings.Contains(command, "go build ") {
			continue
		}
		built++
		build := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "/out/", out+"/"))
		build.Dir = ".."
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "VERSION="+i.version, "COMMIT="+i.commit)
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, output)
		}
	}
	if built != 1 {
		t.Fatalf("%d instructions of the Dockerfile build, want 1", built)
	}
	here, err := os.ReadFile(filepath.Join(out, "usr/local/bin/outboxctl"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.ReadFile(filepath.Join(i.root, "usr/local/bin/outboxctl"))
	if err != nil {
		t.Fatal(err)
	}
	if string(here) != string(there) {
		t.Errorf("two builds of one version differ: %d and %d bytes", len(here), len(there))
	}
}

// buildStage is the Dockerfile's instructions up to the last FROM, one a line.
func buildStage(t *testing.T) []string {
	t.Helper()
	text := source(t, "Dockerfile")
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	first, _, ok := strings.Cut(text, "\nFROM scratch\n")
	if !ok {
		t.Fatal("the Dockerfile's last stage is not FROM scratch")
	}
	return strings.Split(first, "\n")
}

func TestTheImagesSettings(t *testing.T) {
	i := builtImage(t)
	output, err := exec.CommandContext(t.Context(), "buildah", "inspect", i.container).Output()
	if err != nil {
		t.Fatal(err)
	}
	var inspected struct {
		Docker struct {
			Config struct {
				User, StopSignal string
				Entrypoint       []string
				Healthcheck      struct{ Test []string }
				Labels           map[string]string
			}
		}
	}
	if err := json.Unmarshal(output, &inspected); err != nil {
		t.Fatal(err)
	}
	config := inspected.Docker.Config
	if config.User != fmt.Sprintf("%d:%d", imageUser, imageUser) || config.StopSignal != "SIGTERM" {
		t.Errorf("user %q, stop signal %q", config.User, config.StopSignal)
	}
	if diff := cmp.Diff([]string{"/usr/local/bin/outbox-worker"}, config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"CMD", "/usr/local/bin/outbox-worker", "--healthcheck"}, config.Healthcheck.Test); diff != "" {
		t.Error(diff)
	}
	if config.Labels["org.opencontainers.image.version"] != i.version || config.Labels["org.opencontainers.image.revision"] != i.commit {
		t.Errorf("labels %v", config.Labels)
	}
}

// TestTheImageDoesTheMainJob runs the worker of the container against engines of this
// process: what was committed arrives, the health check and outboxctl see it, and the
// worker stops when it is told to.
func TestTheImageDoesTheMainJob(t *testing.T) {
	i := builtImage(t)
	stack := embedded(t)
	const events = 25
	for id := 1; id <= events; id++ {
		if _, err := stack.SQL.Exec(t.Context(), fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (%d, 'order', '%d', 'order-placed', '{}')`, id, id)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"OUTBOX_SQL_DSN=" + stack.SQL.DSN(), "OUTBOX_SERVICEBUS_CONNECTION_STRING=" + stack.Bus.ConnectionString(), "OUTBOX_ENTITY=" + local.Entity}

	worker := i.command(t, append(env, "OUTBOX_LISTEN=127.0.0.1:0"), "/usr/local/bin/outbox-worker")
	log, err := worker.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	address := ""
	for address == "" && lines.Scan() {
		var line struct{ Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			address = line.Address
		}
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		t.Fatalf("the worker says no address: %v", lines.Err())
	}
	rest := make(chan string, 1)
	go func() {
		text := strings.Builder{}
		for lines.Scan() {
			text.WriteString(lines.Text() + "\n")
		}
		rest <- text.String()
	}()

	for patience := time.Now().Add(time.Minute); len(stack.Bus.Messages(local.Entity)) < events; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(patience) {
			t.Fatalf("%d messages arrived, want %d", len(stack.Bus.Messages(local.Entity)), events)
		}
	}
	// By its exit code, as a container's runtime does.
	check := exec.CommandContext(t.Context(), "buildah", "run", "--isolation", "chroot", "--env", "OUTBOX_LISTEN="+address, i.container, "--", "/usr/local/bin/outbox-worker", "--healthcheck")
	if output, err := check.CombinedOutput(); err != nil {
		t.Errorf("the health check: %v, %q", err, output)
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said := <-rest
	if err := worker.Wait(); err != nil || !strings.Contains(said, `"msg":"stopped"`) {
		t.Errorf("the worker ended with %v and said\n%s", err, said)
	}

	// The other program sees what the worker did.
	output, err := i.command(t, env[:1], "/usr/local/bin/outboxctl", "status", "--json").Output()
	var status struct {
		Pending, Parked *int
	}
	if err != nil || json.Unmarshal(output, &status) != nil || status.Pending == nil || *status.Pending != 0 || status.Parked == nil || *status.Parked != 0 {
		t.Errorf("outboxctl status: %v\n%s", err, output)
	}
	if got := len(stack.Bus.Messages(local.Entity)); got != events {
		t.Errorf("%d messages arrived, want %d", got, events)
	}
}
