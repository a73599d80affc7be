package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/scripts"
	sqlemulator "azsqloutbox/sqlserver/emulator"
)

// listener stands for a failover group's: whoever connects reaches the primary of
// that moment.
type listener struct {
	net.Listener
	mu     sync.Mutex
	target string
	open   []net.Conn
	copies sync.WaitGroup
}

func listen(t *testing.T, target string) *listener {
	t.Helper()
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Listener: n, target: target}
	l.copies.Go(l.serve)
	t.Cleanup(func() {
		_ = l.Close()
		l.lead("")
		l.copies.Wait()
	})
	return l
}

func (l *listener) serve() {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = client.Close()
			l.mu.Unlock()
			continue
		}
		l.open = append(l.open, client, server)
		l.mu.Unlock()
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			l.copies.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = client.Close(), server.Close()
			})
		}
	}
}

// lead makes another server the primary, and breaks what led to the one before.
func (l *listener) lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// TestForcedFailover is what docs/deploy.md says of a region that fails: the worker
// finds the new primary by the listener's name. Events whose flip was not replicated
// go out once more, under the MessageID that they had, so that duplicate detection
// drops them; an event whose transaction was not replicated is the database's loss.
func TestForcedFailover(t *testing.T) {
	stack := startStack(t, local.Config{})
	other, err := sqlemulator.Start(sqlemulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := local.ApplySchema(t.Context(), other.DSN(), scripts.Options{}); err != nil {
		t.Fatal(err)
	}
	execute := func(s *sqlemulator.Server, text string) [][]any {
		t.Helper()
		sets, err := s.Exec(t.Context(), "SET QUOTED_IDENTIFIER ON;\n"+text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if len(sets) == 0 {
			return nil
		}
		return sets[len(sets)-1].Rows
	}
	// Twenty events, of which the second region has all, and the flips of ten.
	events := func(flipped int) string {
		var rows []string
		for id := 1; id <= 20; id++ {
			status, processed := 0, "NULL"
			if id <= flipped {
				status, processed = 1, "'2026-01-02T03:05:00'"
			}
			rows = append(rows, fmt.Sprintf("(%d, 'a', '1', 'x', '{\"n\":%d}', %d, '2026-01-02T03:04:05.678', %s)", id, id, status, processed))
		}
		return "INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at) VALUES " + strings.Join(rows, ", ")
	}
	execute(stack.SQL, events(0))
	execute(other, events(10))

	primary := listen(t, stack.SQL.Addr())
	settings := settingsFor(t, stack)
	dsn, err := url.Parse(settings.SQL.DSN)
	if err != nil {
		t.Fatal(err)
	}
	dsn.Host = primary.Addr().String()
	settings.SQL.DSN = dsn.String()
	worker, err := service.New(settings, zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	// Of one moment; with it the worker has nothing to do there.
	await := func(s *sqlemulator.Server) {
		t.Helper()
		for deadline := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) {
			left := execute(s, "SELECT (SELECT COUNT(*) FROM dbo.outbox_event WHERE status <> 1) + (SELECT COUNT(*) FROM dbo.outbox_event_claim) AS open_ends")[0][0].(int64)
			if left == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d rows or receipts are left", left)
			}
		}
	}
	await(stack.SQL)

	// The old primary takes no more writes, save for one transaction that never
	// reaches the other region.
	readOnly := stack.SQL.Inject(sqlemulator.Fault{Statement: "FlipClaim", Times: -1, Error: &sqlemulator.Error{Number: 3906, State: 1, Class: 16, Message: "the database is read-only"}, Doom: true})
	execute(stack.SQL, "INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (99, 'a', '1', 'x', '{\"n\":99}')")
	for deadline := time.Now().Add(2 * patience); readOnly.Fired() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the worker does not claim from the old primary")
		}
	}
	primary.lead(other.Addr())

	// The new one has the rest, and new events come.
	execute(other, "INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (21, 'a', '1', 'x', '{\"n\":21}')")
	await(other)
	if n := execute(stack.SQL, "SELECT COUNT(*) FROM dbo.outbox_event WHERE status = 0")[0][0]; n != int64(1) {
		t.Errorf("%v events are pending on the old primary, want the one that was lost with it", n)
	}
	seen := make(map[string]bool)
	for _, m := range stack.Bus.Messages(local.Entity) {
		seen[string(m.Body)] = true
	}
	for n := 1; n <= 21; n++ {
		if !seen[fmt.Sprintf(`{"n":%d}`, n)] {
			t.Errorf("event %d was lost", n)
		}
	}
	if len(seen) != 21 {
		t.Errorf("%d events arrived, want 21", len(seen))
	}
	if c := stack.Bus.Counts(local.Entity); c.Enqueued != 21 || c.Duplicates < 10 {
		t.Errorf("%d messages were taken and %d dropped as duplicates, want 21, and the ten whose flip was lost at least", c.Enqueued, c.Duplicates)
	}
}
