package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance"
)

// statusPatience is for what a heartbeat brings, ten seconds after the last one.
const statusPatience = time.Minute

// runWorker runs a worker until stop, which returns what Run does.
func runWorker(t *testing.T, stack *local.Stack, change func(*service.Settings)) (stop func() error, logs *observer.ObservedLogs) {
	t.Helper()
	settings := settingsFor(t, stack)
	change(&settings)
	core, logs := observer.New(zapcore.InfoLevel)
	w, err := service.New(settings, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	return stop, logs
}

// A worker that was started with --paused, from its start to its end, as
// outboxctl shows it.
func TestStatusOfAPausedWorker(t *testing.T) {
	t.Parallel()
	stack := newStack(t, local.Config{})
	ctl := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := outboxctl(t, append(args, "--sql-dsn="+stack.SQL.DSN())...)
		if code != exitDone {
			t.Fatalf("%v: exit %d: %s%s", args, code, stdout, stderr)
		}
		return stdout
	}
	status := func() maintenance.Status {
		t.Helper()
		return decode[maintenance.Status](t, ctl("status", "--json"))
	}
	until := func(what string, ok func(maintenance.Status) bool) {
		t.Helper()
		for deadline := time.Now().Add(statusPatience); !ok(status()); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not within %s: %s\n%s", statusPatience, what, ctl("status"))
			}
		}
	}
	exec(t, stack, `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'order', '1', 'placed', '{}')`)
	ctl("pause", "--event-type=placed", "--by=ops", "--reason=the consumer moves", "--execute")

	stop, logs := runWorker(t, stack, func(s *service.Settings) { s.Claim.Paused, s.Process.Owner = true, "careful" })
	until("the worker shows", func(s maintenance.Status) bool { return len(s.Workers) == 1 })
	if w := status().Workers[0]; !w.Paused || !w.Live || w.SeenAt.IsZero() || fmt.Sprint(w.Destinations) != "["+local.Entity+"]" {
		t.Errorf("the worker is %+v", w)
	}
	if text := ctl("status"); !strings.Contains(text, "started with --paused and waiting: 1 of 1 living worker;") || !strings.Contains(text, "paused, waits for resume --all\n") {
		t.Errorf("the text does not say that the worker waits:\n%s", text)
	}
	if text := ctl("pause", "--entity="+strings.ToUpper(local.Entity)); strings.Contains(text, "!") {
		t.Errorf("the pause of an entity that has a route warns:\n%s", text)
	}
	if text := ctl("pause", "--entity=other"); !strings.Contains(text, `! no living worker has a route to "other"; there are routes to ["outbox-events"]`) {
		t.Errorf("the pause of an entity that has no route says\n%s", text)
	}

	ctl("resume", "--event-type=placed", "--by=ops2", "--execute")
	ctl("resume", "--all", "--by=ops2", "--execute")
	until("the worker goes on and sends", func(s maintenance.Status) bool {
		return len(s.Workers) == 1 && !s.Workers[0].Paused && len(stack.Bus.Messages(local.Entity)) == 1
	})
	if text := ctl("status"); strings.Contains(text, "--paused") {
		t.Errorf("the text says still that the worker waits:\n%s", text)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s := status(); len(s.Workers) != 0 {
		t.Errorf("a worker that has stopped is left: %+v", s.Workers)
	}
	var said []string
	for _, line := range logs.All() {
		if word, _, _ := strings.Cut(line.Message, ":"); word == "paused" || word == "resumed" {
			said = append(said, fmt.Sprint(word, " ", line.ContextMap()["what"], " ", line.ContextMap()["by"]))
		}
	}
	want := []string{`paused event_type "placed" ops`, "paused <nil> <nil>", "resumed this worker, which was started with --paused ops2", `resumed event_type "placed" ops2`}
	slices.Sort(said) // a heartbeat may have come between the two resumes
	slices.Sort(want)
	if !slices.Equal(said, want) {
		t.Errorf("the worker logs %q, want %q", said, want)
	}
}

// The alert on unrouted events sends people to status, which must name the type.
func TestStatusNamesTypesWithoutARoute(t *testing.T) {
	t.Parallel()
	stack := newStack(t, local.Config{})
	exec(t, stack, `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'order', '1', 'other', '{}')`)
	routes := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(routes, []byte("routes:\n  - {event-type: placed, entity: "+local.Entity+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runWorker(t, stack, func(s *service.Settings) { s.ServiceBus.Entity, s.ServiceBus.Config = "", routes })
	want := `! no living worker has a route for the event type "other"`
	for deadline := time.Now().Add(statusPatience); ; time.Sleep(50 * time.Millisecond) {
		_, text, _ := outboxctl(t, "status", "--sql-dsn="+stack.SQL.DSN())
		if strings.Contains(text, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s in\n%s", statusPatience, want, text)
		}
	}
}
