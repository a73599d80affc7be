package servicebus_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var createdAt = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// manyEvents makes events 1 to n with payloads of the given size.
func manyEvents(n, bytesEach int) []worker.Event {
	payload := bytes.Repeat([]byte("x"), bytesEach)
	events := make([]worker.Event, n)
	for i := range events {
		events[i] = worker.Event{
			ID: int64(i + 1), Type: "OrderPlaced", AggregateType: "Order", AggregateID: "o-1", CreatedAt: createdAt,
			Payload: payload,
		}
	}
	return events
}

func startEmulator(t testing.TB, cfg emulator.Config) *emulator.Server {
	t.Helper()
	server, err := emulator.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

func newPublisher(t testing.TB, cfg servicebus.Config) *servicebus.Publisher {
	t.Helper()
	p, err := servicebus.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func wantAll(t testing.TB, outcomes []worker.Outcome, want worker.Verdict) {
	t.Helper()
	for i, o := range outcomes {
		if o.Verdict != want || (o.Err == nil) != (want == worker.Sent) {
			t.Fatalf("event %d: %s (%v), want %s", i, o.Verdict, o.Err, want)
		}
	}
}

// wantVerdicts compares with one letter an event: s sent, r refused, f failed,
// u unsent.
func wantVerdicts(t testing.TB, outcomes []worker.Outcome, want string) {
	t.Helper()
	var got strings.Builder
	for _, o := range outcomes {
		got.WriteByte(o.Verdict.String()[0])
	}
	if got.String() != want {
		t.Errorf("verdicts are %s, want %s", got.String(), want)
		for i, o := range outcomes {
			if o.Err != nil {
				t.Logf("event %d: %v", i, o.Err)
			}
		}
	}
}

func wantDestinationError(t testing.TB, err error, entity string, kind servicebus.Kind) {
	t.Helper()
	var got *servicebus.DestinationError
	if !errors.As(err, &got) {
		t.Errorf("%v is no *DestinationError", err)
	} else if got.Entity != entity || got.Kind != kind {
		t.Errorf("DestinationError of %q, kind %q (%v), want %q, %q", got.Entity, got.Kind, err, entity, kind)
	}
}

// publishAtOnce publishes from several goroutines, all ids different.
func publishAtOnce(t *testing.T, p *servicebus.Publisher, goroutines, eventsEach int) {
	t.Helper()
	all := manyEvents(goroutines*eventsEach, 100)
	var publishers sync.WaitGroup
	for g := range goroutines {
		publishers.Go(func() {
			for _, o := range p.Publish(t.Context(), all[g*eventsEach:(g+1)*eventsEach]) {
				if o.Verdict != worker.Sent {
					t.Errorf("%s (%v), want sent", o.Verdict, o.Err)
				}
			}
		})
	}
	publishers.Wait()
}
