package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/sqlserver"
)

// TestAnOldWorkerIsReplaced goes the way of docs/deploy.md, "Moving an existing
// outbox over": writers and an old worker run all the time, the schema is
// completed under them, ours starts beside the old one, the old one ends, and what
// it left FAILED is sent. Nothing is lost. What comes twice depends on whether the
// old worker locks what it reads.
func TestAnOldWorkerIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name string
		// locks: the old worker reads with UPDLOCK and READPAST.
		locks bool
		// rough: its retry job runs on, and connections to the broker break.
		rough bool
	}{{"that locks", true, false}, {"that does not lock, roughly", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			replaceOldWorker(t, c.locks, c.rough)
		})
	}
}

// replacementPatience is for a machine that is busy with other things; each step
// takes a moment.
const replacementPatience = 2 * time.Minute

func replaceOldWorker(t *testing.T, locks, rough bool) {
	stack := newStack(t, local.Config{})
	runSQL(t, stack.SQL, oldOutboxSQL)
	ctl := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := outboxctl(t, append(args, "--table=event", "--sql-dsn="+stack.SQL.DSN())...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	until := func(what string, condition func() bool) {
		t.Helper()
		for deadline := time.Now().Add(replacementPatience); !condition(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not in %s", what, replacementPatience)
			}
		}
	}
	count := func(query string) int64 { t.Helper(); return runSQL(t, stack.SQL, query)[0][0].(int64) }

	db, err := sqlserver.Open(stack.SQL.DSN(), sqlserver.Options{AppName: "old"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	client, err := azservicebus.NewClientFromConnectionString(stack.Bus.ConnectionString(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	sender, err := client.NewSender(local.Entity, nil)
	if err != nil {
		t.Fatal(err)
	}

	// Before: the application writes, the old worker moves.
	app, old := &application{db: db}, &oldWorker{db: db, sender: sender, locks: locks}
	old.retries.Store(true)
	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	oldRuns, stopOld := context.WithCancel(t.Context())
	defer stopOld()
	var writers, olds errgroup.Group
	for range 2 {
		writers.Go(func() error { return app.write(writing) })
	}
	olds.Go(func() error { return old.run(oldRuns) })
	enqueued := func() int64 { return stack.Bus.Counts(local.Entity).Enqueued }
	until("the old worker moves events", func() bool { return enqueued() >= 100 })

	// The schema, under both.
	if out := ctl(exitFound, "schema", "check"); !strings.Contains(out, "the column retry_at is missing") {
		t.Errorf("schema check:\n%s", out)
	}
	// A lock that is not to be had within two seconds is the way to say "again".
	until("schema apply", func() bool {
		code, _, _ := outboxctl(t, "schema", "apply", "--execute", "--table=event", "--sql-dsn="+stack.SQL.DSN())
		return code == exitDone
	})
	ctl(exitDone, "schema", "check")
	after := enqueued()
	until("the old worker moves on", func() bool { return enqueued() >= after+100 })
	old.retries.Store(rough)

	// Ours beside it.
	settings := settingsFor(t, stack)
	settings.SQL.Table, settings.ServiceBus.Source = "event", "ours"
	ours, err := service.New(settings, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	weRun, stopOurs := context.WithCancel(t.Context())
	defer stopOurs()
	ended := make(chan error, 1)
	go func() { ended <- ours.Run(weRun) }()
	byOurs := func() (n int) {
		for m := range stack.Bus.Each(local.Entity) {
			if strings.HasPrefix(m.MessageID, "ours:") {
				n++
			}
		}
		return n
	}
	until("ours moves events beside the old one", func() bool { return byOurs() >= 150 })
	if rough {
		stack.Bus.KillConnections()
		after := byOurs()
		until("ours moves events after the broker was away", func() bool { return byOurs() >= after+150 })
	}

	// The old one ends, then the application for a moment.
	stopOld()
	if err := olds.Wait(); err != nil {
		t.Fatal("the old worker:", err)
	}
	written := app.committed()
	until("the application writes on", func() bool { return app.committed() >= written+100 })
	stopWriting()
	if err := writers.Wait(); err != nil {
		t.Fatal("the application:", err)
	}
	// One statement, so that all of it is of one moment; only ours is left to
	// change it, and with this it has nothing to do.
	idle := func() bool {
		return count(`SELECT (SELECT COUNT(*) FROM dbo.event WHERE status = 0 OR status = 2 AND retry_at IS NOT NULL) + (SELECT COUNT(*) FROM dbo.event_claim) AS open_ends`) == 0
	}
	until("ours empties the table", idle)

	// What the old worker left FAILED is parked here, and waits for a person.
	parked := count(`SELECT COUNT(*) FROM dbo.event WHERE status = 2`)
	if parked < 3 {
		t.Errorf("%d events are parked, want the three old ones at least", parked)
	}
	ctl(exitDone, "failed", "retry", "--parked", "--execute", "--per-second=1000")
	until("what was parked is sent", func() bool {
		return idle() && count(`SELECT COUNT(*) FROM dbo.event WHERE status <> 1`) == 0
	})
	stopOurs()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// Both wrote processed_at in UTC, so the purge finds nothing against it.
	if out := ctl(exitDone, "purge"); !strings.Contains(out, "Nothing was deleted") {
		t.Errorf("purge:\n%s", out)
	}

	seen := make(map[int]int)
	for _, m := range stack.Bus.Messages(local.Entity) {
		var body struct{ N int }
		if err := json.Unmarshal(m.Body, &body); err != nil {
			t.Fatalf("message %q: %v", m.Body, err)
		}
		seen[body.N]++
	}
	twice, want := 0, map[int]bool{-3: true, -4: true, -5: true}
	for n := range app.committed() {
		want[n] = true
	}
	for n := range want {
		if seen[n] == 0 {
			t.Errorf("event %d was lost", n)
		}
		twice += max(0, seen[n]-1)
	}
	if len(seen) != len(want) {
		t.Errorf("%d events arrived, %d were committed", len(seen), len(want))
	}
	// A send that the old worker was told nothing of is FAILED there, and goes out
	// again under another MessageID.
	if locks && old.unsure == 0 && twice > 0 {
		t.Errorf("%d events came twice, want none: both lock what they read", twice)
	}
	t.Logf("%d events, %d by ours; %d came twice; the old worker failed to send %d and was unsure of %d batches; %d were parked",
		len(want), byOurs(), twice, old.failed, old.unsure, parked)
}
