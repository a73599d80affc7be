package emulator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

// What the client makes of a condition is its own affair, and for some it sends
// again by itself: this is what goes over the wire.
func TestDetachWithAnyCondition(t *testing.T) {
	server := start(t, queues("q"))
	for _, condition := range []string{
		"amqp:internal-error", "amqp:not-found", "amqp:not-allowed", "amqp:resource-limit-exceeded", "amqp:unauthorized-access",
		"amqp:link:detach-forced", "amqp:link:message-size-exceeded", "com.microsoft:server-busy", "com.microsoft:timeout",
		"com.microsoft:operation-cancelled", "com.microsoft:entity-disabled", "contoso:never-heard-of",
	} {
		fault := server.Inject(emulator.Fault{Kind: emulator.DetachLink, Condition: condition, Description: "told by a test"})
		raw := dial(t, server)
		raw.sender(t, raw.session(t), "q").transfer(t, 0, []byte("\x00\x53\x75\xa0\x01x"), false)
		err := raw.detached(t)
		wantCondition(t, err, condition)
		if err != nil && !strings.Contains(err.Error(), "told by a test") {
			t.Errorf("%v does not say what it is to", err)
		}
		if fault.Fired() != 1 {
			t.Errorf("%s fired %d times", condition, fault.Fired())
		}
	}
	if c := server.Counts("q"); c.Active != 0 {
		t.Errorf("%d messages stored of links that were detached", c.Active)
	}
	send(t, sender(t, connect(t, server), "q"), message("b", "y"))
}

func TestDropAtEachPointOfASend(t *testing.T) {
	large := strings.Repeat("x", 200<<10) // more than one frame
	for _, c := range []struct {
		kind   emulator.FaultKind
		stored int64
		told   bool
	}{
		{emulator.DropAtAttach, 0, false},
		{emulator.DropInTransfer, 0, false},
		{emulator.DropBeforeStore, 0, false},
		{emulator.DropAfterStore, 1, false},
		{emulator.DropAfterReply, 1, true},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			server := start(t, queues("q"))
			client := connect(t, server)
			server.Inject(emulator.Fault{Kind: c.kind, Entity: "q"})
			err := sender(t, client, "q").SendMessage(within(t), message("a", large), nil)
			if c.told && err != nil {
				t.Error(err)
			}
			if !c.told {
				wantCode(t, err, azservicebus.CodeConnectionLost)
			}
			for ctx := within(t); server.Stats().Connections > 0 && ctx.Err() == nil; {
				time.Sleep(time.Millisecond)
			}
			if s := server.Stats(); s.Connections != 0 || s.ConnectionsAccepted != 1 {
				t.Errorf("the connection is still there: %+v", s)
			}
			if n := server.Counts("q").Active; n != c.stored {
				t.Errorf("%d messages stored, want %d", n, c.stored)
			}
			if fired := server.FaultsFired(); fired[c.kind] != 1 || len(fired) != 1 {
				t.Errorf("fired: %v", fired)
			}
			retrying := connectPatiently(t, server)
			send(t, sender(t, retrying, "q"), message("b", large))
		})
	}
}

func TestSwallowedMessageIsNeitherStoredNorAnswered(t *testing.T) {
	server := start(t, queues("q"))
	s := sender(t, connect(t, server), "q")
	fault := server.Inject(emulator.Fault{Kind: emulator.Swallow, Match: func(m emulator.Message) bool { return m.MessageID == "lost" }})
	send(t, s, message("a", "x"))
	ctx, cancel := contextUntil(t, func() bool { return fault.Fired() == 1 })
	defer cancel()
	if err := s.SendMessage(ctx, message("lost", "y"), nil); !errors.Is(err, ctx.Err()) {
		t.Errorf("the send ended with %v, want the context's end", err)
	}
	send(t, s, message("b", "x"))
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages stored, want 2", c.Active)
	}
}

// A poison message may take the whole connection down, or be refused with what no
// client has heard of.
func TestPoisonByAPropertyDropsOrConfuses(t *testing.T) {
	for _, fault := range []emulator.Fault{
		{Kind: emulator.DropBeforeStore},
		{Kind: emulator.Reject, Condition: "amqp:internal-error"},
		{Kind: emulator.Reject, Condition: "contoso:never-heard-of"},
	} {
		server := start(t, queues("q"))
		client := connect(t, server)
		fault.Times = emulator.Forever
		fault.Match = func(m emulator.Message) bool { return m.ApplicationProperties["colour"] == "red" }
		injected := server.Inject(fault)
		batch := numbered(3)
		batch[1].ApplicationProperties = map[string]any{"colour": "red"}
		if err := sendBatch(t, sender(t, client, "q"), batch...); err == nil {
			t.Errorf("%s %s: the batch passed", fault.Kind, fault.Condition)
		}
		retrying := connectPatiently(t, server)
		if err := sendBatch(t, sender(t, retrying, "q"), batch[0], batch[2]); err != nil {
			t.Errorf("%s %s: without the poison: %v", fault.Kind, fault.Condition, err)
		}
		if injected.Fired() != 1 || server.Counts("q").Active != 2 {
			t.Errorf("%s %s: fired %d times, %+v", fault.Kind, fault.Condition, injected.Fired(), server.Counts("q"))
		}
	}
}

func TestFaultEverySoManySends(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	fault := server.Inject(emulator.Fault{Kind: emulator.Reject, Nth: 2, Every: 3, Times: 2, Condition: "amqp:not-allowed"})
	outcomes := ""
	for range 12 {
		if err := sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil); err != nil {
			outcomes += "x"
		} else {
			outcomes += "."
		}
	}
	if outcomes != ".x..x......." {
		t.Errorf("failed as %s", outcomes)
	}
	fault.Remove()
	server.Inject(emulator.Fault{Kind: emulator.ServerBusy})
	_ = sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil)
	if fired := server.FaultsFired(); fired[emulator.Reject] != 2 || fired[emulator.ServerBusy] != 1 {
		t.Errorf("fired: %v", fired)
	}
}
