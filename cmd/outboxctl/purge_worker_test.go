package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/sqlserver"
)

// A worker publishes, writers write, and a purge deletes in small batches with
// no pause: every event arrives once, every old row goes, and neither the worker
// nor the purge has anything to complain of.
func TestPurgeBesideAWorker(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	stack := newStack(t, local.Config{})
	const old, fresh = 6000, 3000
	// The old rows lie between the ids that the writers get, block by block.
	runSQL(t, stack.SQL, fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
		SELECT g.value * 50 + 49, 'order', '42', 'placed', '{}', 1, t.at, t.at
		FROM (SELECT DATEADD(DAY, -4, SYSUTCDATETIME()) AS at) AS t CROSS JOIN GENERATE_SERIES(1, %d) AS g`, old))

	settings := settingsFor(t, stack)
	settings.Claim.Batch = 50
	core, complaints := observer.New(zapcore.WarnLevel)
	worker, err := service.New(settings, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	working, stopWorker := context.WithCancel(t.Context())
	defer stopWorker()
	group, ctx := errgroup.WithContext(working)
	group.Go(func() error { return worker.Run(working) })

	writers, ctx := errgroup.WithContext(ctx)
	for w := range 2 {
		writers.Go(func() error { return write(ctx, stack.SQL.DSN(), w, fresh/2) })
	}
	code, stdout, stderr := outboxctl(t, "purge", "--sql-dsn", stack.SQL.DSN(), "--execute", "--batch", "100", "--pause", "0s")
	if code != exitDone || !strings.Contains(stdout, "6,000 rows in") || strings.Contains(stderr, "trying again") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
	for patience := time.Now().Add(time.Minute); stack.Bus.Counts(local.Entity).Active < fresh; {
		if time.Now().After(patience) {
			t.Fatalf("%d of %d events arrived", stack.Bus.Counts(local.Entity).Active, fresh)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stopWorker()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for _, entry := range complaints.All() {
		t.Errorf("the worker complains: %s %v", entry.Message, entry.ContextMap())
	}
	if n := stack.Bus.Counts(local.Entity).Active; n != fresh {
		t.Errorf("%d messages arrived, want %d", n, fresh)
	}
	rows := runSQL(t, stack.SQL, `SELECT COUNT(*), SUM(CASE WHEN status = 1 THEN 1 ELSE 0 END) FROM dbo.outbox_event`)
	if rows[0][0].(int64) != fresh || rows[0][1].(int64) != fresh {
		t.Errorf("%v rows are left, PROCESSED of them %v; want %d", rows[0][0], rows[0][1], fresh)
	}
}

// write enqueues n events, ten a transaction.
func write(ctx context.Context, dsn string, writer, n int) error {
	db, err := sqlserver.Open(dsn, sqlserver.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	for at := 0; at < n; at += 10 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		var events []sqlserver.OutboxEvent
		for i := range 10 {
			events = append(events, sqlserver.OutboxEvent{AggregateType: "order", AggregateID: "42", EventType: "placed", Payload: fmt.Appendf(nil, `{"writer":%d,"n":%d}`, writer, at+i)})
		}
		if err := sqlserver.Enqueue(ctx, tx, events...); err != nil {
			_ = tx.Rollback()
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}
