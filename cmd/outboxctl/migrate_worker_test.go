package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

const migrationPatience = 60 * time.Second

// traffic writes events until it is stopped, and remembers what was committed.
type traffic struct {
	stack *local.Stack

	mu        sync.Mutex
	next      int
	committed map[int]bool
}

// payloadOf has what code page 1252 holds beyond ASCII, and trailing spaces.
func payloadOf(n int) string {
	return fmt.Sprintf(`{"n":%d,"text":"naïve façade €%d"}   `, n, n%7)
}

func (w *traffic) take(k int) (first int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = w.next
	w.next += k
	return first
}

func (w *traffic) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.committed)
}

// write is one writer. What is not committed for sure is written again under
// other numbers.
func (w *traffic) write(ctx context.Context) error {
	db, err := sqlserver.Open(w.stack.SQL.DSN(), sqlserver.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	for k := 1; ctx.Err() == nil; k = k%20 + 1 {
		first := w.take(k)
		events := make([]sqlserver.OutboxEvent, k)
		for i := range events {
			events[i] = sqlserver.OutboxEvent{AggregateType: "order", AggregateID: "1", EventType: "order-placed", Payload: []byte(payloadOf(first + i))}
		}
		// A transaction that has begun is not stopped: its end would be unknown.
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		if err != nil {
			return err
		}
		if err := sqlserver.Enqueue(context.WithoutCancel(ctx), tx, events...); err != nil {
			if sqlserver.ClassOf(err) == sqlserver.Contention {
				continue
			}
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		w.mu.Lock()
		for i := range events {
			w.committed[first+i] = true
		}
		w.mu.Unlock()
	}
	return nil
}

// tripwire is a writer that calls fn, once, when it is written a text.
type tripwire struct {
	bytes.Buffer
	text string
	fn   func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	if w.fn != nil && strings.Contains(string(p), w.text) {
		w.fn()
		w.fn = nil
	}
	return w.Buffer.Write(p)
}

// TestMigrateUnderARunningWorker: writers write and a worker publishes all the
// time. Nothing is lost, nothing altered, and what would be lost is refused.
func TestMigrateUnderARunningWorker(t *testing.T) {
	for _, c := range []struct{ guard, collation string }{
		{"trigger", "Latin1_General_100_BIN2_UTF8"},
		{"trigger", "SQL_Latin1_General_CP1_CI_AS"},
		{"lock", "SQL_Latin1_General_CP1_CI_AS"},
	} {
		t.Run(c.guard+"/"+c.collation, func(t *testing.T) {
			t.Parallel()
			stack := newStack(t, local.Config{Schema: scripts.Options{Payload: "NVARCHAR(2000)", Collation: "SQL_Latin1_General_CP1_CI_AS"}})
			worker, err := service.New(settingsFor(t, stack), zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			working, stopWorker := context.WithCancel(t.Context())
			worked := make(chan error, 1)
			go func() { worked <- worker.Run(working) }()

			w := &traffic{stack: stack, committed: make(map[int]bool)}
			writing, stopWriters := context.WithCancel(t.Context())
			var writers errgroup.Group
			for range 2 {
				writers.Go(func() error { return w.write(writing) })
			}
			arrived := func(atLeast int) {
				t.Helper()
				for deadline := time.Now().Add(migrationPatience); len(stack.Bus.Messages(local.Entity)) < atLeast; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%d of %d events arrived", len(stack.Bus.Messages(local.Entity)), atLeast)
					}
				}
			}
			arrived(500)

			// The guard is there from before the check, the lock only after it.
			out, errOut := &bytes.Buffer{}, &tripwire{text: "check: ", fn: func() {
				if c.guard != "trigger" {
					return
				}
				_, err := stack.SQL.Exec(t.Context(), `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (-1, 'a', '1', 'order-placed', REPLICATE(N'ā', 1500))`)
				if err == nil || !strings.Contains(err.Error(), "migrate-varchar is at work") {
					t.Errorf("text that would be lost or cut: %v", err)
				}
			}}
			before := w.count()
			code := run(t.Context(), []string{"migrate-varchar", "--execute", "--json", "--guard", c.guard, "--collation", c.collation, "--sql-dsn", stack.SQL.DSN()}, out, errOut)
			during := w.count() - before
			if code != exitDone {
				t.Fatalf("exit %d: %s%s", code, out, &errOut.Buffer)
			}
			if errOut.fn != nil {
				t.Fatal("the check was never shown, so nothing was tried under the guard")
			}
			var report struct{ State, To string }
			if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.State != "migrated" {
				t.Fatalf("%v: %s", err, out)
			}
			// The worker goes on with what is written afterwards.
			arrived(w.count() + 500)
			stopWriters()
			if err := writers.Wait(); err != nil {
				t.Fatal(err)
			}
			// Not by the number of messages: one of them may have arrived twice.
			for deadline := time.Now().Add(migrationPatience); runSQL(t, stack.SQL, "SELECT COUNT(*) FROM dbo.outbox_event WHERE status <> 1")[0][0].(int64) > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("not every event is PROCESSED")
				}
			}
			stopWorker()
			if err := <-worked; err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}

			seen := make(map[int]bool)
			for _, m := range stack.Bus.Messages(local.Entity) {
				var body struct{ N int }
				if err := json.Unmarshal(m.Body, &body); err != nil || string(m.Body) != payloadOf(body.N) {
					t.Fatalf("message %q was altered (%v)", m.Body, err)
				}
				seen[body.N] = true
			}
			for n := range w.committed {
				if !seen[n] {
					t.Errorf("event %d was lost", n)
				}
			}
			if len(seen) != len(w.committed) {
				t.Errorf("%d events arrived, %d were committed", len(seen), len(w.committed))
			}
			t.Logf("%d events committed, %d of them during the migration", len(w.committed), during)
		})
	}
}
