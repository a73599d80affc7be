package servicebus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

func TestSessionsShareNoBatchAndKeepTheirOrder(t *testing.T) {
	server, p := emulated(t, emulator.Entity{RequiresSession: true, Partitioned: true}, servicebus.Config{
		Routes:           mustRoutes(t, servicebus.Route{Entity: orders, SessionIDFromAggregate: true, PartitionKeyFromAggregate: true}),
		MaxBatchMessages: 10,
	})
	events := manyEvents(120, 10)
	for i := range events {
		events[i].AggregateID = fmt.Sprintf("o-%d", i%3)
	}
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	last := map[string]int64{}
	for _, m := range server.Messages(orders) {
		id := m.ApplicationProperties[servicebus.PropertyEventID].(int64)
		if m.SessionID != fmt.Sprintf("o-%d", (id-1)%3) {
			t.Errorf("event %d is in session %q", id, m.SessionID)
		}
		if id < last[m.SessionID] {
			t.Errorf("event %d of session %q came after %d", id, m.SessionID, last[m.SessionID])
		}
		last[m.SessionID] = id
	}
	if got := server.Stats().Batches; got != 12 {
		t.Errorf("%d batches, want 4 for each of 3 sessions", got)
	}
}

// The envelope of a batch has the time to live and the scheduled time of its
// first message, so others must not travel under it.
func TestBatchesDoNotMixWhatTheEnvelopeSays(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	events := manyEvents(8, 10)
	for i, headers := range []string{``, ``, `{"sb-ttl":60}`, `{"sb-ttl":"1m"}`, `{"sb-scheduled-time":"2020-01-01T00:00:00Z"}`, `{"sb-scheduled-time":"2020-01-01T00:00:00Z"}`, ``, ``} {
		events[i].Headers = []byte(headers)
	}
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	if got := server.Stats().Batches; got != 4 {
		t.Errorf("%d batches, want 4 of two messages each", got)
	}
	wantStored(t, server, 8)
}

// When an entity is in trouble, later events of a session must not overtake.
func TestASessionStopsAtAFailedBatch(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{
		Routes:           mustRoutes(t, servicebus.Route{Entity: orders, SessionIDFromAggregate: true}),
		MaxBatchMessages: 2,
	})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Condition: "amqp:resource-limit-exceeded", Match: eventID(3)})
	wantVerdicts(t, p.Publish(t.Context(), manyEvents(7, 10)), "ssuuuuu")
	wantStored(t, server, 2)
}

// A batch of a session that is not answered is tried in parts, and these keep
// the order too.
func TestASessionKeepsItsOrderInParts(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{RequiresSession: true}, servicebus.Config{
		Routes:      mustRoutes(t, servicebus.Route{Entity: orders, SessionIDFromAggregate: true}),
		SendTimeout: time.Second,
	})
	server.Inject(emulator.Fault{Kind: emulator.Swallow})
	// Three batches, the first of which is swallowed once.
	wantAll(t, p.Publish(t.Context(), manyEvents(200, 3000)), worker.Sent)
	for i, m := range server.Messages(orders) {
		if got := m.ApplicationProperties[servicebus.PropertyEventID]; got != int64(i+1) {
			t.Fatalf("message %d is of event %v", i+1, got)
		}
	}
	wantStored(t, server, 200)
}

// What follows a part that is not answered waits.
func TestASessionStopsAtAPartThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{RequiresSession: true}, servicebus.Config{
		Routes:      mustRoutes(t, servicebus.Route{Entity: orders, SessionIDFromAggregate: true}),
		SendTimeout: time.Second,
	})
	server.Inject(emulator.Fault{Kind: emulator.Swallow, Times: emulator.Forever, Match: eventID(3)})
	wantVerdicts(t, p.Publish(inTime(t, 2500*time.Millisecond), manyEvents(8, 10)), "ssuuuuuu")
	wantStored(t, server, 2)
}

// An entity that demands sessions takes no message of this route: that is the
// route's fault, and no event may pay for it.
func TestAMissingSessionIDBlamesNoMessage(t *testing.T) {
	_, p := emulated(t, emulator.Entity{RequiresSession: true}, servicebus.Config{})
	outcomes := p.Publish(t.Context(), manyEvents(10, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindNotAllowed)
	if !strings.Contains(outcomes[0].Err.Error(), "SessionId was not set") {
		t.Errorf("%v does not say what is wrong", outcomes[0].Err)
	}
}
