package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
		"link refused":              {Kind: emulator.RefuseAttach, Times: 8},
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
	if why := new(servicebus.DestinationError); !errors.As(outcomes[0].Err, &why) || !why.Doubtful() {
		t.Errorf("%v: it was sent and not answered, so a message may be to blame", outcomes[0].Err)
	}
}

// Where the broker takes longer than a send may, the setting is named.
func TestNoReplyNamesTheSendTimeout(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{SendTimeout: time.Second})
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever})
	outcomes := p.Publish(inTime(t, 3*time.Second), manyEvents(3, 1))
	if err := outcomes[0].Err; err == nil || !strings.Contains(err.Error(), "--servicebus-send-timeout") {
		t.Errorf("the outcome is %v", err)
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
	var outcomes []worker.Outcome
	// On a busy machine even the refusal of a connection can come too late.
	for patience := 2 * time.Second; patience < time.Minute; patience *= 2 {
		outcomes = p.Publish(inTime(t, patience), manyEvents(2, 10))
		wantAll(t, outcomes, worker.Unsent)
		var why *servicebus.DestinationError
		if errors.As(outcomes[0].Err, &why) && why.Kind == servicebus.KindConnection {
			break
		}
	}
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindConnection)
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
	if got := servicebus.Leaving(p); got > 0 {
		t.Errorf("%d dead senders are still known", got)
	}
	got := server.Stats()
	if got.ConnectionsAccepted != 1 || got.LinksAttached < 12 {
		t.Errorf("%d connections and %d links were opened, want new links on one connection", got.ConnectionsAccepted, got.LinksAttached)
	}
	if got.Links != 3 {
		t.Errorf("%d links are open, want the 3 of the sender that lives", got.Links)
	}
}
