package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

func TestPoisonMessageIsFoundByBisection(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Times: emulator.Forever, Condition: "contoso:bad-message", Description: "the colour is wrong, Info: green", Match: eventID(14)})
	outcomes := p.Publish(t.Context(), manyEvents(20, 10))
	wantVerdicts(t, outcomes, strings.Repeat("s", 13)+"f"+strings.Repeat("s", 6))
	if got, want := fmt.Sprint(outcomes[13].Err), `"orders" does not take this message, sent alone: the colour is wrong, Info: green (contoso:bad-message)`; got != want {
		t.Errorf("error of the guilty one is %q, want %q", got, want)
	}
	wantStored(t, server, 19)
}

// A message that breaks every connection it travels on must not keep the others
// from going out. Nobody names it: only that others pass gives it away.
func TestPoisonMessageThatBreaksTheConnectionIsFound(t *testing.T) {
	for id, want := range map[int64]string{1: "fsss", 3: "ssfs", 4: "sssf"} {
		server, p := emulated(t, emulator.Entity{DuplicateDetection: true}, servicebus.Config{})
		server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Times: emulator.Forever, Match: eventID(id)})
		wantVerdicts(t, p.Publish(inTime(t, time.Minute), manyEvents(4, 10)), want)
		wantStored(t, server, 3)
	}
}

func TestABrokerThatBreaksEveryConnectionBlamesNoMessage(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	fault := server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Times: emulator.Forever})
	outcomes := p.Publish(inTime(t, time.Minute), manyEvents(16, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[15].Err, orders, servicebus.KindConnection)
	// Two tries each by azservicebus: the batch twice, once each of 8, 4, 2 and 2 more,
	// and three messages twice.
	if fired := fault.Fired(); fired > 2*(2+4+3*2) {
		t.Errorf("%d connections were broken", fired)
	}
}

// A condition that nobody knows and that meets every message costs a few of
// them an attempt, not all.
func TestBisectionGivesUpWhenNothingPasses(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	fault := server.Inject(emulator.Fault{Kind: emulator.Reject, Times: emulator.Forever, Condition: "contoso:down"})
	outcomes := p.Publish(inTime(t, time.Minute), manyEvents(64, 10))
	wantVerdicts(t, outcomes, "fff"+strings.Repeat("u", 61))
	wantDestinationError(t, outcomes[63].Err, orders, servicebus.KindUnknown)
	if got, want := outcomes[63].Err.Error(), `send to "orders": unknown: every message that was tried alone failed: scripted by a test (contoso:down)`; got != want {
		t.Errorf("error of those that were not tried is %q, want %q", got, want)
	}
	// Two tries each by azservicebus: the batch, its halves down to one, and
	// three messages; far from the 127 sends of a whole bisection.
	if fired := fault.Fired(); fired > 30 {
		t.Errorf("the broker was asked %d times", fired)
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
			routes := mustRoutes(t, servicebus.Route{Entity: orders, PartitionKeyFromAggregate: ordered})
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

// What stands in the way of a link says nothing of the messages, whatever it is.
func TestALinkThatIsRefusedBlamesNoMessage(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.RefuseAttach, Times: emulator.Forever, Condition: "contoso:no-links-today"})
	outcomes := p.Publish(inTime(t, time.Minute), manyEvents(4, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindUnknown)
}

// An event is blamed when it stood alone and was not answered for the second time,
// while others passed. That decides it: when it comes back, it has two tries again.
func TestABlamedEventHasTwoTriesAgain(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{SendTimeout: time.Hour})
	server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever, Match: eventID(1)})
	events := manyEvents(2, 10)
	for _, want := range []worker.Verdict{worker.Unsent, worker.Failed, worker.Unsent, worker.Failed} {
		for {
			o := p.Publish(inTime(t, 500*time.Millisecond), events[:1])[0]
			if why := new(servicebus.DestinationError); errors.As(o.Err, &why) && !why.Doubtful() {
				continue // on a busy machine it was not sent in this time
			}
			if o.Verdict != want {
				t.Fatalf("the event is %s (%v), want %s", o.Verdict, o.Err, want)
			}
			break
		}
		if want == worker.Failed {
			events[0].RetryCount++
		}
		wantAll(t, p.Publish(t.Context(), events[1:]), worker.Sent)
	}
}

// A lone event whose time is over while connections break may have met an outage each
// time, whatever passes in between. Its own doing would be found within one delivery.
func TestALoneEventThatMeetsOutagesIsNotBlamed(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{SendTimeout: time.Hour})
	events := manyEvents(2, 10)
	for range 3 {
		breaks := server.Inject(emulator.Fault{Kind: emulator.DropBeforeStore, Times: 2, Match: eventID(1)})
		hangs := server.Inject(emulator.Fault{Kind: emulator.NoReply, Nth: 3, Match: eventID(1)})
		wantAll(t, p.Publish(inTime(t, 500*time.Millisecond), events[:1]), worker.Unsent)
		breaks.Remove()
		hangs.Remove()
		wantAll(t, p.Publish(t.Context(), events[1:]), worker.Sent)
	}
}

// Events that were not answered go out in parts, all at once: what is in the way of
// one part is not in the way of the others. Those that then pass are in doubt no
// more, and share a batch when they come again.
func TestWhatWasNotAnsweredGoesOutInPartsAtOnce(t *testing.T) {
	t.Parallel()
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{SendTimeout: time.Hour})
	hangs := server.Inject(emulator.Fault{Kind: emulator.NoReply, Times: emulator.Forever, Match: eventID(1)})
	events := manyEvents(16, 10)
	for deadline := 500 * time.Millisecond; hangs.Fired() == 0; deadline *= 2 {
		wantAll(t, p.Publish(inTime(t, deadline), events), worker.Unsent)
	}
	for deadline := time.Second; ; deadline *= 2 {
		outcomes := p.Publish(inTime(t, deadline), events)
		unsent := slices.IndexFunc(outcomes[2:], func(o worker.Outcome) bool { return o.Verdict != worker.Sent })
		if unsent < 0 {
			break
		}
		if deadline > 10*time.Second {
			t.Fatalf("event %d is not sent: %v", events[2+unsent].ID, outcomes[2+unsent].Err)
		}
	}
	before := server.Stats().Batches
	wantAll(t, p.Publish(t.Context(), events[2:]), worker.Sent)
	if got := server.Stats().Batches - before; got != 1 {
		t.Errorf("events that have passed went out in %d batches, want one", got)
	}
}

// What failed before goes out apart from the rest: few events alone, many in parts,
// and those of one partition key in parts that keep the order.
func TestWhatFailedBeforeGoesOutInParts(t *testing.T) {
	for name, c := range map[string]struct {
		events  int
		ordered bool
		batches int64
	}{
		"few": {2 * 8, false, 0}, "many": {3 * 8, false, 8}, "ordered": {2 * 8, true, 8},
	} {
		server, p := emulated(t, emulator.Entity{}, servicebus.Config{
			Routes: mustRoutes(t, servicebus.Route{Entity: orders, PartitionKeyFromAggregate: c.ordered}),
		})
		events := manyEvents(c.events, 10)
		for i := range events {
			events[i].RetryCount = 1
		}
		wantAll(t, p.Publish(t.Context(), events), worker.Sent)
		if got := server.Stats(); got.Batches != c.batches || got.MessagesReceived != int64(c.events) {
			t.Errorf("%s: %d messages and %d batches, want %d and %d", name, got.MessagesReceived, got.Batches, c.events, c.batches)
		}
	}
}

// Where no link can be opened, no event after the first is tried.
func TestWhatFailedBeforeWaitsForALink(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	refused := server.Inject(emulator.Fault{Kind: emulator.RefuseAttach, Times: emulator.Forever, Condition: "amqp:not-found"})
	events := manyEvents(10, 10)
	for i := range events {
		events[i].RetryCount = 1
	}
	wantAll(t, p.Publish(inTime(t, time.Minute), events), worker.Unsent)
	if got := refused.Fired(); got > 2 {
		t.Errorf("a link was asked for %d times", got)
	}
}
