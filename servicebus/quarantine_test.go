package servicebus_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

// What breaks connections is hunted on one of its own: a batch that is under way
// on the common one meanwhile is not cut off, so it goes out once. Only a message
// that nobody suspects breaks the common one too, with its first try, which
// azservicebus makes twice.
func TestTheHuntBreaksNoConnectionOfOthers(t *testing.T) {
	t.Parallel()
	refused := emulator.Fault{Kind: emulator.Reject, Condition: "contoso:bad-message"}
	internal := emulator.Fault{Kind: emulator.Reject, Condition: "amqp:internal-error"}
	breaks := emulator.Fault{Kind: emulator.DropBeforeStore}
	inOrder := servicebus.Route{PartitionKeyFromAggregate: true}
	suspected := manyEvents(1, 10)
	suspected[0].RetryCount = 1
	for name, c := range map[string]struct {
		fault  emulator.Fault
		events []worker.Event
		route  servicebus.Route
		before bool  // they were in doubt already
		at     int32 // the try of the guilty one with which the other batch sets out
		want   string
	}{
		"refused":                 {refused, manyEvents(8, 10), servicebus.Route{}, false, 3, "fsssssss"},
		"refused, in order":       {refused, manyEvents(8, 10), inOrder, false, 3, "fsssssss"},
		"internal error":          {internal, manyEvents(8, 10), servicebus.Route{}, false, 3, "fsssssss"},
		"breaks":                  {breaks, manyEvents(8, 10), servicebus.Route{}, false, 3, "fsssssss"},
		"broke before":            {breaks, manyEvents(1, 10), servicebus.Route{}, true, 0, "u"},
		"failed before":           {refused, suspected, servicebus.Route{}, false, 0, "f"},
		"failed before, in order": {refused, suspected, inOrder, false, 0, "f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// On a busy machine the hunt can be over before the other batch is under
			// way, or that answered before the hunt is over.
			for pace := 20 * time.Millisecond; ; pace *= 2 {
				server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}, {Name: payments}}})
				c.route.Entity = orders
				p := newPublisher(t, servicebus.Config{
					ConnectionString: server.ConnectionString(), Source: "test", SendTimeout: time.Hour,
					Routes: mustRoutes(t, c.route, servicebus.Route{EventType: "Paid", Entity: payments}),
				})
				servicebus.Pace(p, pace)
				wantAll(t, p.Publish(t.Context(), append(paid(1), manyEvents(9, 10)[8])), worker.Sent)

				var tries atomic.Int32
				var once sync.Once
				hunting := make(chan struct{})
				c.fault.Entity, c.fault.Times = orders, emulator.Forever
				c.fault.Match = func(m emulator.Message) bool {
					guilty := eventID(1)(m)
					if guilty && tries.Add(1) >= c.at {
						once.Do(func() { close(hunting) })
					}
					return guilty
				}
				server.Inject(c.fault)
				if c.before {
					wantVerdicts(t, p.Publish(t.Context(), c.events), c.want)
				}
				server.Inject(emulator.Fault{Kind: emulator.Delay, Entity: orders, Duration: pace, Times: emulator.Forever})
				outcomes := make(chan []worker.Outcome, 1)
				hunt := func() { outcomes <- p.Publish(t.Context(), c.events) }
				var slow <-chan []worker.Outcome
				if c.at > 0 {
					go hunt()
					<-hunting
					slow = slowly(t, server, p, paid(10)[1:], 40*pace)
					if len(outcomes) > 0 {
						<-slow
						continue
					}
				} else {
					slow = slowly(t, server, p, paid(10)[1:], 40*pace)
					hunt()
				}
				verdicts := <-outcomes
				inTime := len(slow) == 0
				wantAll(t, <-slow, worker.Sent)
				wantVerdicts(t, verdicts, c.want)
				if got := server.Counts(payments).Active; got != 10 {
					t.Errorf("payments holds %d messages of 10 events", got)
				}
				wantConnections(t, server, 1)
				if got := servicebus.Leaving(p); got > 0 {
					t.Errorf("%d connections and senders that are not used any more are kept", got)
				}
				if inTime || t.Failed() {
					return
				}
			}
		})
	}
}

// Close cuts off what is under way in quarantine as well, and nothing enters it later.
func TestCloseCutsOffTheQuarantine(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{SendTimeout: time.Hour})
	suspected := manyEvents(1, 10)
	suspected[0].RetryCount = 1
	arrived := make(chan struct{})
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Match: func(emulator.Message) bool {
		close(arrived)
		return true
	}})
	outcomes := make(chan []worker.Outcome)
	go func() { outcomes <- p.Publish(t.Context(), suspected) }()
	<-arrived
	if err := p.Close(inTime(t, time.Minute)); err != nil {
		t.Error(err)
	}
	wantAll(t, <-outcomes, worker.Unsent)
	late := p.Publish(t.Context(), suspected)
	wantAll(t, late, worker.Unsent)
	if !errors.Is(late[0].Err, servicebus.ErrClosed) || errors.As(late[0].Err, new(*servicebus.DestinationError)) {
		t.Errorf("after Close: %v", late[0].Err)
	}
	wantConnections(t, server, 0)
}
