package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/sqlserver"
)

// An outbox as the Azure SQL article had it before: a Unicode payload, an enum's
// ordinal as event_type, an index that begins with status, a sequence for
// pooled-lo blocks of 50, and nothing of what a worker needs beside the rows.
// Some were sent long ago, and three failed for good.
const oldOutboxSQL = `
CREATE SEQUENCE dbo.event_seq AS BIGINT START WITH 10000001 INCREMENT BY 50 CACHE 100;
CREATE TABLE dbo.event (
    id BIGINT NOT NULL PRIMARY KEY,
    aggregate_type VARCHAR(100) NOT NULL,
    aggregate_id VARCHAR(100) NOT NULL,
    event_type INT NOT NULL,
    payload NVARCHAR(2000) NOT NULL,
    status TINYINT NOT NULL,
    created_at DATETIME2(7) NOT NULL,
    processed_at DATETIME2(7) NULL,
    retry_count INT NOT NULL);
CREATE NONCLUSTERED INDEX IX_Outbox_Status_Event_Type_Covering ON dbo.event (status, event_type, id)
    INCLUDE (aggregate_id, aggregate_type, payload, created_at, processed_at, retry_count);
DECLARE @old DATETIME2(7) = DATEADD(DAY, -5, SYSUTCDATETIME());
INSERT INTO dbo.event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at, retry_count) VALUES
(1, 'order', '1', 0, N'{"n":-1}', 1, @old, @old, 0),
(2, 'order', '1', 0, N'{"n":-2}', 1, @old, @old, 0),
(3, 'order', '1', 0, N'{"n":-3}', 2, @old, @old, 3),
(4, 'order', '1', 1, N'{"n":-4}', 2, @old, @old, 3),
(5, 'order', '1', 1, N'{"n":-5}', 2, @old, @old, 3);`

// oldWorker flips rows itself and publishes afterwards: the article's, or with
// locks off one that was only ever meant to run alone.
type oldWorker struct {
	db     *sql.DB
	sender *azservicebus.Sender
	locks  bool
	// retries: what failed goes back to PENDING, three times.
	retries atomic.Bool

	cycles, failed int
	// unsure are sends whose outcome it was not told.
	unsure int
}

// again says that the transaction was a deadlock's victim or waited for too long.
func again(err error) bool {
	return sqlserver.ClassOf(sqlserver.Classify("old", err)) == sqlserver.Contention
}

func (o *oldWorker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		moved := 0
		for eventType := range 2 {
			n, err := o.cycle(context.WithoutCancel(ctx), eventType)
			if err != nil {
				return err
			}
			moved += n
		}
		if moved == 0 {
			time.Sleep(10 * time.Millisecond) // its poll
		}
	}
	return nil
}

func (o *oldWorker) cycle(ctx context.Context, eventType int) (int, error) {
	if o.retries.Load() {
		if _, err := o.db.ExecContext(ctx, `UPDATE dbo.event SET status = 0, retry_count = retry_count + 1 WHERE status = 2 AND retry_count < 3`); err != nil && !again(err) {
			return 0, err
		}
	}
	batch, ids, err := o.claim(ctx, eventType)
	if err != nil || len(ids) == 0 {
		if again(err) {
			return 0, nil // its transaction was rolled back: nothing is claimed
		}
		return 0, err
	}
	o.cycles++
	sendErr := errors.New("as the test says")
	if o.cycles%5 != 0 {
		if sendErr = o.sender.SendMessageBatch(ctx, batch, nil); sendErr != nil {
			o.unsure++
		}
	}
	if sendErr == nil {
		return len(ids), nil
	}
	o.failed += len(ids)
	for { // its markFailed
		_, err := o.db.ExecContext(ctx, `UPDATE dbo.event SET status = 2 WHERE id IN (`+strings.Join(ids, ", ")+`)`)
		if !again(err) {
			return len(ids), err
		}
	}
}

// claim is its first transaction.
func (o *oldWorker) claim(ctx context.Context, eventType int) (*azservicebus.MessageBatch, []string, error) {
	batch, err := o.sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	hints := ""
	if o.locks {
		hints = "WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)"
	}
	tx, err := o.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(ctx, `SELECT TOP (100) id, payload FROM dbo.event `+hints+` WHERE event_type = @type AND status = 0 ORDER BY id`, sql.Named("type", eventType))
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for rows.Next() {
		var id int64
		var payload string
		if err := rows.Scan(&id, &payload); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
		text := strconv.FormatInt(id, 10)
		ids = append(ids, text)
		if err := batch.AddMessage(&azservicebus.Message{MessageID: &text, Body: []byte(payload)}, nil); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, nil, err
	}
	for _, id := range ids { // as an ORM does it, by primary key and without a look at status
		if _, err := tx.ExecContext(ctx, `UPDATE dbo.event SET status = 1, processed_at = SYSUTCDATETIME() WHERE id = @id`, sql.Named("id", id)); err != nil {
			return nil, nil, err
		}
	}
	return batch, ids, tx.Commit()
}

// application writes events as an ORM with pooled-lo blocks does.
type application struct {
	db   *sql.DB
	mu   sync.Mutex
	next int
}

func (a *application) write(ctx context.Context) error {
	var id, left int64
	for ctx.Err() == nil {
		// A transaction that has begun is not stopped: its end would be unknown.
		ctx := context.WithoutCancel(ctx)
		if left < 10 {
			if err := a.db.QueryRowContext(ctx, `SELECT NEXT VALUE FOR dbo.event_seq AS id`).Scan(&id); err != nil {
				return err
			}
			left = 50
		}
		a.mu.Lock()
		first := a.next
		a.next += 10
		a.mu.Unlock()
		if err := a.insert(ctx, id, first); err != nil {
			return err
		}
		id, left = id+10, left-10
		time.Sleep(2 * time.Millisecond) // its rate
	}
	return nil
}

// insert writes ten events in a transaction, until it is committed.
func (a *application) insert(ctx context.Context, id int64, first int) error {
	for {
		err := func() error {
			tx, err := a.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			for k := range 10 {
				if _, err := tx.ExecContext(ctx, `INSERT INTO dbo.event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, retry_count)
VALUES (@id, 'order', '1', @type, @payload, 0, SYSUTCDATETIME(), 0)`,
					sql.Named("id", id+int64(k)), sql.Named("type", k%2), sql.Named("payload", fmt.Sprintf(`{"n":%d}`, first+k))); err != nil {
					return err
				}
			}
			return tx.Commit()
		}()
		if !again(err) {
			return err
		}
	}
}

func (a *application) committed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next // write ends with whole transactions, so this is exact once it has ended
}

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
	stack, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
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
	settings, err := service.DefaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	settings.SQL.DSN, settings.SQL.Table = stack.SQL.DSN(), "event"
	settings.ServiceBus.ConnectionString, settings.ServiceBus.Entity = stack.Bus.ConnectionString(), local.Entity
	settings.ServiceBus.Source, settings.Process.Listen = "ours", "off"
	settings.Claim.IdlePoll = 10 * time.Millisecond
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
