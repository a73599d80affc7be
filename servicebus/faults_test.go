package servicebus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

const orders = "orders"

// emulated starts an emulator with one queue and a Publisher for it.
func emulated(t *testing.T, queue emulator.Entity, cfg servicebus.Config) (*emulator.Server, *servicebus.Publisher) {
	t.Helper()
	queue.Name = orders
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{queue}})
	_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(t, cfg)
	servicebus.Hurry(p)
	return server, p
}

// eventID says whether a message is that of an event.
func eventID(id int64) func(emulator.Message) bool {
	return func(m emulator.Message) bool { return m.ApplicationProperties[servicebus.PropertyEventID] == id }
}

func wantStored(t *testing.T, server *emulator.Server, want int64) {
	t.Helper()
	if got := server.Counts(orders).Active; got != want {
		t.Errorf("the queue holds %d messages, want %d", got, want)
	}
}

// inTime bounds a Publish that the broker never lets succeed.
func inTime(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, worker.ErrDeadline)
	t.Cleanup(cancel)
	return ctx
}

func TestPoisonMessageIsFoundByBisection(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Times: emulator.Forever, Condition: "contoso:bad-message", Description: "the colour is wrong", Match: eventID(14)})
	outcomes := p.Publish(t.Context(), manyEvents(20, 10))
	wantVerdicts(t, outcomes, strings.Repeat("s", 13)+"f"+strings.Repeat("s", 6))
	if got, want := fmt.Sprint(outcomes[13].Err), `"orders" does not take this message, sent alone: the colour is wrong (contoso:bad-message)`; got != want {
		t.Errorf("error of the guilty one is %q, want %q", got, want)
	}
	wantStored(t, server, 19)
}

// A message that breaks every connection it travels on must not keep the others
// from going out. Nobody names it: only that others pass gives it away.
func TestPoisonMessageThatBreaksTheConnectionIsFound(t *testing.T) {
	server, p := emulated(t, emulator.Entity{DuplicateDetection: true}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Times: emulator.Forever, Match: eventID(3)})
	wantVerdicts(t, p.Publish(inTime(t, time.Minute), manyEvents(4, 10)), "ssfs")
	wantStored(t, server, 3)
}

func TestABrokerThatBreaksEveryConnectionBlamesNoMessage(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Times: emulator.Forever})
	outcomes := p.Publish(inTime(t, time.Minute), manyEvents(16, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[15].Err, orders, servicebus.KindConnection)
}

// A condition that nobody knows and that meets every message costs a few of
// them an attempt, not all.
func TestBisectionGivesUpWhenNothingPasses(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	fault := server.Inject(emulator.Fault{Kind: emulator.Reject, Times: emulator.Forever, Condition: "contoso:down"})
	outcomes := p.Publish(inTime(t, time.Minute), manyEvents(64, 10))
	wantVerdicts(t, outcomes, "fff"+strings.Repeat("u", 61))
	wantDestinationError(t, outcomes[63].Err, orders, servicebus.KindUnknown)
	// Two tries each by azservicebus: the batch, its halves down to one, and
	// three messages; far from the 127 sends of a whole bisection.
	if fired := fault.Fired(); fired > 30 {
		t.Errorf("the broker was asked %d times", fired)
	}
}

// TestConditionsOfTheBroker holds every line of the table against a broker that
// sends the condition, through all that azservicebus does to it.
func TestConditionsOfTheBroker(t *testing.T) {
	for condition, want := range map[string]servicebus.Kind{
		"com.microsoft:server-busy":         servicebus.KindThrottled,
		"com.microsoft:timeout":             servicebus.KindTimeout,
		"com.microsoft:operation-cancelled": servicebus.KindBroker,
		"amqp:internal-error":               servicebus.KindBroker,
		"amqp:connection:forced":            servicebus.KindConnection,
		"amqp:link:detach-forced":           servicebus.KindConnection,
		"amqp:resource-limit-exceeded":      servicebus.KindEntityFull,
		"com.microsoft:entity-disabled":     servicebus.KindEntityDisabled,
		"amqp:not-found":                    servicebus.KindEntityMissing,
		"amqp:resource-deleted":             servicebus.KindEntityMissing,
		"amqp:unauthorized-access":          servicebus.KindUnauthorized,
		"com.microsoft:auth-failed":         servicebus.KindUnauthorized,
		"amqp:not-allowed":                  servicebus.KindNotAllowed,
	} {
		for _, kind := range []emulator.FaultKind{emulator.Reject, emulator.DetachLink} {
			t.Run(fmt.Sprintf("%s/%d", condition, kind), func(t *testing.T) {
				t.Parallel()
				server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
				fault := server.Inject(emulator.Fault{Kind: kind, Times: emulator.Forever, Condition: condition})
				outcomes := p.Publish(inTime(t, time.Minute), manyEvents(2, 10))
				wantAll(t, outcomes, worker.Unsent)
				wantDestinationError(t, outcomes[1].Err, orders, want)

				// The sender may be dead now; the Publisher is not.
				fault.Remove()
				wantAll(t, p.Publish(t.Context(), manyEvents(2, 10)), worker.Sent)
			})
		}
	}
}

func TestATransientFaultIsWaitedOut(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{
		"throttled":                 {Kind: emulator.ServerBusy, Times: 2},
		"detached when idle":        {Kind: emulator.DetachLink, Condition: "amqp:link:detach-forced"},
		"detached for good":         {Kind: emulator.DetachLink, Condition: "amqp:unauthorized-access", Nth: 2},
		"connection lost":           {Kind: emulator.DropBeforeStore},
		"connection lost afterward": {Kind: emulator.DropAfterStore},
		"link refused":              {Kind: emulator.RefuseAttach, Times: 2},
		"token refused":             {Kind: emulator.PutToken, Status: 503},
		"token timed out":           {Kind: emulator.PutToken, Status: 408},
		"slow":                      {Kind: emulator.Delay, Duration: 20 * time.Millisecond},
		"no reply":                  {Kind: emulator.NoReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, p := emulated(t, emulator.Entity{DuplicateDetection: true}, servicebus.Config{SendTimeout: time.Second})
			injected := server.Inject(fault)
			ctx := inTime(t, time.Minute)
			wantAll(t, p.Publish(ctx, manyEvents(10, 10)), worker.Sent)
			wantAll(t, p.Publish(ctx, manyEvents(20, 10)[10:]), worker.Sent)
			if injected.Fired() == 0 {
				t.Error("the fault never happened")
			}
			wantStored(t, server, 20)
		})
	}
}

// A token that ends in the middle of a send takes all links with it. Its batch
// may come back unsent; the next one gets a new token and goes out.
func TestATokenThatExpires(t *testing.T) {
	server, p := emulated(t, emulator.Entity{DuplicateDetection: true}, servicebus.Config{})
	wantAll(t, p.Publish(t.Context(), manyEvents(5, 10)), worker.Sent)
	expired := server.Inject(emulator.Fault{Kind: emulator.ExpireToken})
	for _, o := range p.Publish(inTime(t, time.Minute), manyEvents(10, 10)) {
		if o.Verdict != worker.Sent && o.Verdict != worker.Unsent {
			t.Errorf("an event is %s after its token expired: %v", o.Verdict, o.Err)
		}
	}
	if expired.Fired() == 0 {
		t.Error("no token expired")
	}
	wantAll(t, p.Publish(inTime(t, time.Minute), manyEvents(10, 10)), worker.Sent)
	wantStored(t, server, 10)
}

func TestNoReplyUntilTheDeadline(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever})
	outcomes := p.Publish(inTime(t, time.Second), manyEvents(3, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindTimeout)
	if !errors.Is(outcomes[0].Err, worker.ErrDeadline) {
		t.Errorf("%v does not say that the publish deadline was over", outcomes[0].Err)
	}
}

func TestAStopInTheMiddleOfASend(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	stopped := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Match: func(emulator.Message) bool {
		cancel(stopped)
		return true
	}})
	outcomes := p.Publish(ctx, manyEvents(3, 10))
	wantAll(t, outcomes, worker.Unsent)
	if err := outcomes[0].Err; !errors.Is(err, stopped) || errors.As(err, new(*servicebus.DestinationError)) {
		t.Errorf("%v, want the stop, and not the destination, to be blamed", err)
	}
}

func TestTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		tier         emulator.Tier
		messageLimit int64
		payload      int
		want         string
		wantErr      []string
	}{
		"standard":      {emulator.Standard, 0, 300_000, "srs", []string{"payload 300000", `"orders" takes 262144 bytes in a batch`}},
		"premium":       {emulator.Premium, 0, 1_500_000, "srs", []string{"payload 1500000", `"orders" takes 1048576 bytes in a batch`}},
		"premium large": {emulator.Premium, 100 << 20, 3_000_000, "sss", nil},
		// With the envelope around it, it is above the limit; alone it is not.
		"just so": {emulator.Standard, 0, 261_700, "sss", nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := startEmulator(t, emulator.Config{Tier: c.tier, Entities: []emulator.Entity{{Name: orders, MaxMessageBytes: c.messageLimit}}})
			_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(t, servicebus.Config{})
			events := manyEvents(3, 10)
			events[1].Payload = bytes.Repeat([]byte("x"), c.payload)
			outcomes := p.Publish(t.Context(), events)
			wantVerdicts(t, outcomes, c.want)
			for _, text := range c.wantErr {
				if err := outcomes[1].Err; err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("error is %v, want one with %q", err, text)
				}
			}
			// The refusal killed no sender that others need.
			wantAll(t, p.Publish(t.Context(), manyEvents(3, 10)), worker.Sent)
		})
	}
}

func TestABatchTooLargeByTheBrokersOpinionIsSplit(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Times: 3, Condition: "amqp:link:message-size-exceeded"})
	// Of 8, 4 and 2 the broker says so; then come 2 alone, 2, 4.
	wantAll(t, p.Publish(t.Context(), manyEvents(8, 10)), worker.Sent)
	wantStored(t, server, 8)
}

func TestAMessageTooLargeByTheBrokersOpinionIsRefused(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Times: emulator.Forever, Condition: "amqp:link:message-size-exceeded", Match: eventID(2)})
	wantVerdicts(t, p.Publish(t.Context(), manyEvents(4, 10)), "srss")
	wantStored(t, server, 3)
}

func TestBatchesHoldAtMost4500Messages(t *testing.T) {
	server := startEmulator(t, emulator.Config{Tier: emulator.Premium, Entities: []emulator.Entity{{Name: orders}}})
	_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(t, servicebus.Config{})
	events := manyEvents(4600, 0)
	for i := range events {
		// Small, so that the count is the limit and not the bytes.
		events[i] = worker.Event{ID: events[i].ID, Type: "T", CreatedAt: createdAt}
	}
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	if got := server.Stats().Batches; got != 2 {
		t.Errorf("%d batches, want 2", got)
	}
	wantStored(t, server, 4600)
}

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

func TestAWrongKeyIsUnauthorizedAndStaysSecret(t *testing.T) {
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}}})
	const wrong = "d3Jvbmcta2V5"
	connectionString := strings.Replace(server.ConnectionString(), "SharedAccessKey=", "SharedAccessKey="+wrong, 1)
	_, p := broker{connectionString: connectionString, queue: orders}.publisher(t, servicebus.Config{})
	outcomes := p.Publish(t.Context(), manyEvents(2, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindUnauthorized)
	if strings.Contains(outcomes[0].Err.Error(), wrong) {
		t.Errorf("the error shows the key: %v", outcomes[0].Err)
	}
}

func TestNoBrokerThere(t *testing.T) {
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}}})
	_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(t, servicebus.Config{})
	server.Close()
	outcomes := p.Publish(inTime(t, 2*time.Second), manyEvents(2, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindConnection)
}

func TestBatchLimitsOfOurOwn(t *testing.T) {
	batches := func(t *testing.T, cfg servicebus.Config) int64 {
		server, p := emulated(t, emulator.Entity{}, cfg)
		wantAll(t, p.Publish(t.Context(), manyEvents(1000, 600)), worker.Sent)
		wantStored(t, server, 1000)
		return server.Stats().Batches
	}
	byLink := batches(t, servicebus.Config{})
	if byLink < 3 || byLink > 5 {
		t.Errorf("1,000 events of 600 bytes took %d batches of 256 KB", byLink)
	}
	if got := batches(t, servicebus.Config{MaxBatchBytes: 64 << 10}); got < 3*byLink {
		t.Errorf("a limit of 64 KB made %d batches, the link's 256 KB makes %d", got, byLink)
	}
	if got := batches(t, servicebus.Config{MaxBatchBytes: 10 << 20}); got != byLink {
		t.Errorf("a limit above the link's made %d batches, the link's makes %d", got, byLink)
	}
	if got := batches(t, servicebus.Config{MaxBatchMessages: 50}); got != 20 {
		t.Errorf("a limit of 50 messages made %d batches, want 20", got)
	}
}

func TestConnectionsAreShared(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{Connections: 3})
	publishAtOnce(t, p, 9, 20)
	if got := server.Stats().ConnectionsAccepted; got != 3 {
		t.Errorf("%d connections were opened, want 3", got)
	}
	// One link to send, two to the entity's management, as azservicebus does.
	if got := server.Stats().Links; got != 9 {
		t.Errorf("%d links are open, want 3 on each connection", got)
	}
}

func TestADeadSenderIsClosed(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	for range 3 {
		wantAll(t, p.Publish(t.Context(), manyEvents(5, 10)), worker.Sent)
		server.Inject(emulator.Fault{Kind: emulator.DetachLink, Condition: "com.microsoft:server-busy"})
		wantAll(t, p.Publish(t.Context(), manyEvents(5, 10)), worker.Sent)
	}
	servicebus.WaitClosed(p)
	got := server.Stats()
	if got.ConnectionsAccepted != 1 || got.LinksAttached < 12 {
		t.Errorf("%d connections and %d links were opened, want new links on one connection", got.ConnectionsAccepted, got.LinksAttached)
	}
	if got.Links != 3 {
		t.Errorf("%d links are open, want the 3 of the sender that lives", got.Links)
	}
}

// Connections break all the time while many publish: whoever tries again what
// is unsent loses nothing.
func TestNothingIsLostWhileConnectionsBreak(t *testing.T) {
	server, p := emulated(t, emulator.Entity{DuplicateDetection: true}, servicebus.Config{Connections: 2})
	server.Inject(emulator.Fault{Kind: emulator.DropAfterStore, Nth: 5})
	server.Inject(emulator.Fault{Kind: emulator.DetachLink, Nth: 11, Condition: "com.microsoft:timeout"})
	server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Nth: 17})
	server.Inject(emulator.Fault{Kind: emulator.ServerBusy, Nth: 23})
	publishAtOnce(t, p, 40, 25)
	wantStored(t, server, 1000)
}

// A message that the broker takes and never answers to holds up its batch. From
// one claim to the next the batch goes out in smaller parts, until the message
// stands alone and is told apart by what passes beside it.
func TestAMessageThatIsNeverAnsweredIsFound(t *testing.T) {
	t.Parallel()
	for name, ordered := range map[string]bool{"any order": false, "one partition key": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders, DuplicateDetection: true}}})
			server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever, Match: eventID(23)})
			routes, err := servicebus.NewRoutes(servicebus.Route{Entity: orders, PartitionKeyFromAggregate: ordered})
			if err != nil {
				t.Fatal(err)
			}
			p := newPublisher(t, servicebus.Config{ConnectionString: server.ConnectionString(), Routes: routes, Source: "src", SendTimeout: time.Second})
			left := manyEvents(60, 100)
			for claims := 1; ; claims++ {
				if claims > 8 {
					t.Fatalf("%d events are still undecided after %d claims", len(left), claims-1)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
				outcomes := p.Publish(ctx, left)
				cancel()
				var next []worker.Event
				for i, o := range outcomes {
					switch {
					case o.Verdict == worker.Failed && left[i].ID == 23:
					case o.Verdict == worker.Failed || o.Verdict == worker.Refused:
						t.Fatalf("event %d was blamed: %v", left[i].ID, o.Err)
					case o.Verdict == worker.Unsent:
						next = append(next, left[i])
					}
				}
				if left = next; len(left) == 0 {
					return
				}
			}
		})
	}
}

// An event that only waited for its turn was never sent: however often that
// happens, and whatever else passes, it spends no attempt.
func TestAnEventWhoseTurnDidNotComeIsNotBlamed(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{MaxInFlight: 1})
	events := manyEvents(3, 100)
	hangs := make(chan struct{}, 3)
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever, Match: func(m emulator.Message) bool {
		if !eventID(1)(m) {
			return false
		}
		hangs <- struct{}{}
		return true
	}})
	for range 3 {
		holding, release := context.WithCancel(t.Context())
		held := make(chan []worker.Outcome)
		go func() { held <- p.Publish(holding, events[:1]) }()
		<-hangs // the only slot is taken

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		waited := p.Publish(ctx, events[1:2])
		cancel()
		wantAll(t, waited, worker.Unsent)
		wantDestinationError(t, waited[0].Err, orders, servicebus.KindTimeout)
		var why *servicebus.DestinationError
		if errors.As(waited[0].Err, &why) && why.Doubtful() {
			t.Errorf("%v: an event that was not sent is in doubt", why)
		}

		release()
		wantAll(t, <-held, worker.Unsent)
		wantAll(t, p.Publish(t.Context(), events[2:]), worker.Sent)
	}
}

// Without anything that passes, there is no telling: however often one event is
// not answered, it is the destination's trouble and spends no attempt.
func TestABrokerThatAnswersNothingBlamesNoMessage(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{SendTimeout: time.Second})
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever})
	for _, events := range []int{1, 1, 1, 1, 2} {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		outcomes := p.Publish(ctx, manyEvents(events, 100))
		cancel()
		wantAll(t, outcomes, worker.Unsent)
		wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindTimeout)
	}
}

// While one message breaks connections, another that goes out alone behind it may
// meet a broken one. That is not its doing.
func TestTheNeighbourOfAPoisonMessageIsNotBlamed(t *testing.T) {
	server, p := emulated(t, emulator.Entity{DuplicateDetection: true}, servicebus.Config{})
	// The first message that matches decides, so the neighbour is only looked at
	// when it is alone: its first send is dropped, in both of azservicebus's tries.
	var alone atomic.Int32
	server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Times: emulator.Forever, Match: func(m emulator.Message) bool {
		return eventID(1)(m) || eventID(2)(m) && alone.Add(1) <= 2
	}})
	events := manyEvents(3, 10)
	wantVerdicts(t, p.Publish(inTime(t, time.Minute), events[2:]), "s")
	outcomes := p.Publish(inTime(t, time.Minute), events[:2])
	if outcomes[1].Verdict != worker.Sent {
		t.Errorf("the neighbour is %s: %v", outcomes[1].Verdict, outcomes[1].Err)
	}
}
