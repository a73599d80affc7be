package servicebus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

// broker is a Service Bus to test against: a namespace and a queue in it that
// nobody else uses, without sessions.
type broker struct {
	connectionString string
	queue            string
	once             string // a queue with duplicate detection, or empty
}

// TestSuite is the conformance suite of the publisher. It runs on the embedded
// Service Bus always, and with OUTBOX_TEST_SERVICEBUS (a connection string) and
// OUTBOX_TEST_SERVICEBUS_ENTITY (a queue) on that one too: same tests, and
// nothing in them knows which it is. OUTBOX_TEST_SERVICEBUS_DUPLICATES names a
// second queue, with duplicate detection over a minute or more.
func TestSuite(t *testing.T) {
	t.Run("emulator", func(t *testing.T) {
		server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: "orders"}, {Name: "orders-once", DuplicateDetection: true}}})
		runSuite(t, broker{connectionString: server.ConnectionString(), queue: "orders", once: "orders-once"})
	})
	t.Run("external", func(t *testing.T) {
		external := broker{
			connectionString: os.Getenv("OUTBOX_TEST_SERVICEBUS"),
			queue:            os.Getenv("OUTBOX_TEST_SERVICEBUS_ENTITY"),
			once:             os.Getenv("OUTBOX_TEST_SERVICEBUS_DUPLICATES"),
		}
		if external.connectionString == "" || external.queue == "" {
			t.Skip("OUTBOX_TEST_SERVICEBUS and OUTBOX_TEST_SERVICEBUS_ENTITY name no Service Bus to test against")
		}
		runSuite(t, external)
	})
}

func runSuite(t *testing.T, b broker) {
	for name, test := range map[string]func(*testing.T, broker){
		"Mapping":            suiteMapping,
		"Many":               suiteMany,
		"BadHeaders":         suiteBadHeaders,
		"Keys":               suiteKeys,
		"ManyAtOnce":         suiteManyAtOnce,
		"MissingEntity":      suiteMissingEntity,
		"CancelledContext":   suiteCancelledContext,
		"EventWithoutRoute":  suiteEventWithoutRoute,
		"NothingToSend":      suiteNothingToSend,
		"ScheduledAndTTL":    suiteScheduledAndTTL,
		"SmallerBatches":     suiteSmallerBatches,
		"ClosedPublisher":    suiteClosedPublisher,
		"Check":              suiteCheck,
		"SeveralConnections": suiteSeveralConnections,
		"Duplicates":         suiteDuplicates,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// suiteMapping sends one event with everything and one with nothing, and reads
// both with a real receiver.
func suiteMapping(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{})
	events := []worker.Event{
		{
			ID: 1, Type: "OrderPlaced", AggregateType: "Order", AggregateID: "o-1", CreatedAt: createdAt,
			Payload: []byte(`{"total":"12,50 €"}`),
			Headers: []byte(`{"text":"é😀","whole":-9007199254740993,"double":0.5,"yes":true,"no":false,"none":null,` +
				`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","sb-correlation-id":"c-1"}`),
		},
		{ID: 2, Type: "Emptied", AggregateType: "Order", AggregateID: "o-2", CreatedAt: createdAt},
	}
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	received := b.receive(t, source, 2)

	full := received[servicebus.MessageID(source, 1, createdAt)]
	if full == nil {
		t.Fatalf("no message for event 1 among %d", len(received))
	}
	wantProperties := map[string]any{
		"text": "é😀", "whole": int64(-9007199254740993), "double": 0.5, "yes": true, "no": false,
		"traceparent":    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"Diagnostic-Id":  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"event-id":       int64(1),
		"event-type":     "OrderPlaced",
		"aggregate-type": "Order",
		"aggregate-id":   "o-1",
		"created-at":     createdAt,
	}
	if diff := cmp.Diff(wantProperties, full.ApplicationProperties); diff != "" {
		t.Errorf("application properties (-want +got):\n%s", diff)
	}
	if got, want := fmt.Sprint(*full.Subject, *full.ContentType, *full.CorrelationID), "OrderPlacedapplication/jsonc-1"; got != want {
		t.Errorf("subject, content type and correlation id are %q, want %q", got, want)
	}
	if !bytes.Equal(full.Body, events[0].Payload) {
		t.Errorf("body is %q, want %q", full.Body, events[0].Payload)
	}
	if empty := received[servicebus.MessageID(source, 2, createdAt)]; empty == nil || len(empty.Body) != 0 {
		t.Errorf("message of an event without payload: %+v, want one with an empty body", empty)
	}
}

// suiteMany sends what does not fit into one batch of any tier.
func suiteMany(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{})
	events := manyEvents(2000, 600)
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	for id, m := range b.receive(t, source, len(events)) {
		if len(m.Body) != 600 {
			t.Errorf("message %s has %d bytes", id, len(m.Body))
		}
	}
}

func suiteBadHeaders(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{})
	events := manyEvents(50, 10)
	events[0].Headers = []byte(`tenant=1`)
	events[20].Headers = []byte(`{"a":{"b":1}}`)
	events[49].Headers = []byte(`[1,2]`)
	outcomes := p.Publish(t.Context(), events)
	for i, o := range outcomes {
		want := worker.Sent
		if i == 0 || i == 20 || i == 49 {
			want = worker.Refused
		}
		if o.Verdict != want {
			t.Errorf("event %d: %s (%v), want %s", i, o.Verdict, o.Err, want)
		}
	}
	b.receive(t, source, 47)
}

// suiteKeys sends with session ids and partition keys to an entity that asks for
// neither: both arrive all the same, each with its own.
func suiteKeys(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{
		Routes: mustRoutes(t, servicebus.Route{Entity: b.queue, SessionIDFromAggregate: true, PartitionKeyFromAggregate: true}),
	})
	events := manyEvents(30, 10)
	for i := range events {
		events[i].AggregateID = fmt.Sprintf("aggregate-%d", i%4)
	}
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	for id, m := range b.receive(t, source, len(events)) {
		aggregate := m.ApplicationProperties[servicebus.PropertyAggregateID]
		if m.SessionID == nil || *m.SessionID != aggregate || m.PartitionKey == nil || *m.PartitionKey != aggregate {
			t.Errorf("message %s of %v has session id %v and partition key %v", id, aggregate, m.SessionID, m.PartitionKey)
		}
	}
}

func suiteManyAtOnce(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{})
	publishAtOnce(t, p, 8, 100)
	b.receive(t, source, 800)
}

func suiteSeveralConnections(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{Connections: 3})
	publishAtOnce(t, p, 9, 20)
	b.receive(t, source, 180)
}

// suiteDuplicates sends events again, as a worker does whose settlement was lost:
// the broker drops what it has seen and reports success.
func suiteDuplicates(t *testing.T, b broker) {
	if b.once == "" {
		t.Skip("OUTBOX_TEST_SERVICEBUS_DUPLICATES names no queue with duplicate detection")
	}
	b.queue = b.once
	source, p := b.publisher(t, servicebus.Config{})
	events := manyEvents(51, 10)
	again, last := events[:50], events[50:]
	wantAll(t, p.Publish(t.Context(), again), worker.Sent)
	wantAll(t, p.Publish(t.Context(), again), worker.Sent)
	// Once the last one is here, a duplicate would have been.
	wantAll(t, p.Publish(t.Context(), last), worker.Sent)
	b.receive(t, source, len(events))
}

func suiteMissingEntity(t *testing.T, b broker) {
	_, p := b.publisher(t, servicebus.Config{Routes: mustRoutes(t, servicebus.Route{Entity: b.queue + "-that-is-not-there"})})
	outcomes := p.Publish(t.Context(), manyEvents(3, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, b.queue+"-that-is-not-there", servicebus.KindEntityMissing)
}

func suiteCheck(t *testing.T, b broker) {
	_, p := b.publisher(t, servicebus.Config{})
	if err := p.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	_, p = b.publisher(t, servicebus.Config{Routes: mustRoutes(t,
		servicebus.Route{EventType: "A", Entity: b.queue}, servicebus.Route{Entity: b.queue + "-that-is-not-there"})})
	wantDestinationError(t, p.Check(t.Context()), b.queue+"-that-is-not-there", servicebus.KindEntityMissing)
}

func suiteCancelledContext(t *testing.T, b broker) {
	_, p := b.publisher(t, servicebus.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("told to stop"))
	outcomes := p.Publish(ctx, manyEvents(3, 10))
	wantAll(t, outcomes, worker.Unsent)
	if err := outcomes[0].Err; errors.As(err, new(*servicebus.DestinationError)) {
		t.Errorf("a stop is blamed on the destination: %v", err)
	}
}

func suiteEventWithoutRoute(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{Routes: mustRoutes(t, servicebus.Route{EventType: "Known", Entity: b.queue})})
	events := manyEvents(3, 10)
	events[1].Type = "Known"
	outcomes := p.Publish(t.Context(), events)
	if outcomes[0].Verdict != worker.Unsent || outcomes[1].Verdict != worker.Sent || outcomes[2].Verdict != worker.Unsent {
		t.Errorf("outcomes %v, want unsent, sent, unsent", outcomes)
	}
	b.receive(t, source, 1)
}

func suiteNothingToSend(t *testing.T, b broker) {
	_, p := b.publisher(t, servicebus.Config{})
	if outcomes := p.Publish(t.Context(), nil); len(outcomes) != 0 {
		t.Errorf("outcomes of nothing: %v", outcomes)
	}
	// All refused before anything is sent: no empty batch may go out.
	events := manyEvents(2, 10)
	events[0].Withheld, events[1].Withheld = true, true
	wantAll(t, p.Publish(t.Context(), events), worker.Refused)
}

func suiteScheduledAndTTL(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{Routes: mustRoutes(t, servicebus.Route{Entity: b.queue, TTL: 40 * time.Minute})})
	events := manyEvents(3, 10)
	events[1].Headers = []byte(`{"sb-ttl":"30m"}`)
	// In the past, so that the message can be received now.
	events[2].Headers = []byte(`{"sb-scheduled-time":"2020-01-31T08:00:00Z"}`)
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	received := b.receive(t, source, 3)
	for id, want := range map[int64]time.Duration{1: 40 * time.Minute, 2: 30 * time.Minute, 3: 40 * time.Minute} {
		m := received[servicebus.MessageID(source, id, createdAt)]
		if m == nil || m.TimeToLive == nil || *m.TimeToLive != want {
			t.Errorf("message of event %d: %+v, want a time to live of %s", id, m, want)
		}
	}
}

func suiteSmallerBatches(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{MaxBatchBytes: 10_000, MaxBatchMessages: 7})
	events := manyEvents(100, 600)
	events[50].Payload = bytes.Repeat([]byte("x"), 20_000) // above our cap, not the link's
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	b.receive(t, source, 100)
}

func suiteClosedPublisher(t *testing.T, b broker) {
	source, p := b.publisher(t, servicebus.Config{})
	wantAll(t, p.Publish(t.Context(), manyEvents(1, 10)), worker.Sent)
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	outcomes := p.Publish(t.Context(), manyEvents(2, 10))
	wantAll(t, outcomes, worker.Unsent)
	if !errors.Is(outcomes[0].Err, servicebus.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", outcomes[0].Err)
	}
	b.receive(t, source, 1)
}

// publisher makes a Publisher for b whose events are told by their source from
// everyone else's, and closes it in the end.
func (b broker) publisher(t testing.TB, cfg servicebus.Config) (source string, p *servicebus.Publisher) {
	t.Helper()
	source = uuid.NewString()
	cfg.ConnectionString, cfg.Source = b.connectionString, source
	if len(cfg.Routes.Entities()) == 0 {
		cfg.Routes = mustRoutes(t, servicebus.Route{Entity: b.queue})
	}
	return source, newPublisher(t, cfg)
}

// receive takes n messages of source from the queue and fails when one comes
// twice. Messages of other sources are left-overs and are thrown away.
func (b broker) receive(t testing.TB, source string, n int) map[string]*azservicebus.ReceivedMessage {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(b.connectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	receiver, err := client.NewReceiverForQueue(b.queue, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	received := make(map[string]*azservicebus.ReceivedMessage, n)
	for len(received) < n {
		messages, err := receiver.ReceiveMessages(ctx, n, nil)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d are here", err, len(received), n)
		}
		for _, m := range messages {
			if len(m.MessageID) < len(source) || m.MessageID[:len(source)] != source {
				continue
			}
			if received[m.MessageID] != nil {
				t.Errorf("message %s came twice", m.MessageID)
			}
			received[m.MessageID] = m
		}
	}
	return received
}
