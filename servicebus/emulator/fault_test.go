package emulator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

func TestRejectHitsTheNthAndOnlyAsOftenAsSaid(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	fault := server.Inject(emulator.Fault{
		Kind: emulator.Reject, Entity: "q", Nth: 2, Times: 2,
		Condition: "amqp:not-allowed", Description: "because",
	})
	var failed []int
	for i := range 5 {
		if err := sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil); err != nil {
			wantCondition(t, err, "amqp:not-allowed")
			failed = append(failed, i)
		}
	}
	if len(failed) != 2 || failed[0] != 1 || failed[1] != 2 {
		t.Errorf("sends %v failed, want 1 and 2", failed)
	}
	if fault.Fired() != 2 {
		t.Errorf("fired %d times", fault.Fired())
	}
	if c := server.Counts("q"); c.Active != 3 {
		t.Errorf("%d messages stored, want 3", c.Active)
	}
}

func TestPoisonFailsItsWholeBatch(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	poison := server.Inject(emulator.Fault{
		Kind: emulator.Reject, Times: emulator.Forever, Condition: "amqp:not-allowed",
		Match: func(m emulator.Message) bool { return m.MessageID == "m-1" && string(m.Body) == "body 1" },
	})
	batch := numbered(3)
	wantCondition(t, sendBatch(t, sender(t, client, "q"), batch...), "amqp:not-allowed")
	if err := sendBatch(t, sender(t, client, "q"), batch[0], batch[2]); err != nil {
		t.Errorf("without the poison: %v", err)
	}
	wantCondition(t, sendBatch(t, sender(t, client, "q"), batch[1]), "amqp:not-allowed")
	poison.Remove()
	if err := sendBatch(t, sender(t, client, "q"), batch[1]); err != nil {
		t.Errorf("after Remove: %v", err)
	}
	if poison.Fired() != 2 {
		t.Errorf("fired %d times, want 2", poison.Fired())
	}
}

func TestDetachKillsTheSender(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	server.Inject(emulator.Fault{Kind: emulator.DetachLink, Condition: "com.microsoft:entity-disabled"})
	s := sender(t, client, "q")
	wantCondition(t, s.SendMessage(within(t), message("a", "x"), nil), "com.microsoft:entity-disabled")
	wantCondition(t, s.SendMessage(within(t), message("a", "x"), nil), "com.microsoft:entity-disabled")
	send(t, sender(t, client, "q"), message("b", "y"))
	if c := server.Counts("q"); c.Active != 1 {
		t.Errorf("%d messages stored, want only the one of the new sender", c.Active)
	}
}

func TestDropConnectionBeforeAndAfterStoring(t *testing.T) {
	for kind, stored := range map[emulator.FaultKind]int64{emulator.DropBeforeStore: 0, emulator.DropAfterStore: 1} {
		server := start(t, queues("q"))
		s := sender(t, connect(t, server), "q")
		fault := server.Inject(emulator.Fault{Kind: kind})
		var e *azservicebus.Error
		err := s.SendMessage(within(t), message("a", "x"), nil)
		if !errors.As(err, &e) || e.Code != azservicebus.CodeConnectionLost {
			t.Errorf("kind %d: %v, want code %s", kind, err, azservicebus.CodeConnectionLost)
		}
		if c := server.Counts("q"); c.Active != stored || fault.Fired() != 1 {
			t.Errorf("kind %d: %d messages stored, want %d; fired %d times", kind, c.Active, stored, fault.Fired())
		}
	}
}

func TestNoReplyLeavesTheSenderWaiting(t *testing.T) {
	server := start(t, queues("q"))
	s := sender(t, connect(t, server), "q")
	send(t, s, message("a", "x"))
	fault := server.Inject(emulator.Fault{Kind: emulator.NoReply})
	ctx, cancel := contextUntil(t, func() bool { return fault.Fired() == 1 })
	defer cancel()
	if err := s.SendMessage(ctx, message("b", "y"), nil); !errors.Is(err, ctx.Err()) {
		t.Errorf("the send ended with %v, want the context's end", err)
	}
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages stored, want 2", c.Active)
	}
}

func TestServerBusyLastsItsDuration(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	const busy = 200 * time.Millisecond
	fault := server.Inject(emulator.Fault{Kind: emulator.ServerBusy, Duration: busy})
	began := time.Now()
	wantCondition(t, sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil), "com.microsoft:server-busy")
	for {
		err := sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil)
		if err == nil {
			break
		}
		wantCondition(t, err, "com.microsoft:server-busy")
	}
	if took := time.Since(began); took < busy {
		t.Errorf("busy for %s only, want %s", took, busy)
	}
	if fault.Fired() < 2 {
		t.Errorf("fired %d times", fault.Fired())
	}
}

func TestTheClientRetriesServerBusy(t *testing.T) {
	server := start(t, queues("q"))
	client := connectPatiently(t, server)
	fault := server.Inject(emulator.Fault{Kind: emulator.ServerBusy, Times: 2})
	send(t, sender(t, client, "q"), message("a", "x"))
	if fault.Fired() != 2 {
		t.Errorf("fired %d times, want 2", fault.Fired())
	}
}

// sendAtOnce sends so many messages, all of them together.
func sendAtOnce(t *testing.T, s *azservicebus.Sender, sends int) {
	t.Helper()
	errs := make(chan error, sends)
	for range sends {
		go func() { errs <- s.SendMessage(within(t), message("a", "x"), nil) }()
	}
	for range sends {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func TestDelayAndRoundTripDoNotTakeTurns(t *testing.T) {
	cfg := queues("q")
	cfg.RoundTrip = 100 * time.Millisecond
	server := start(t, cfg)
	s := sender(t, connect(t, server), "q")
	send(t, s, message("first", "x"))
	began := time.Now()
	const sends = 100
	sendAtOnce(t, s, sends)
	// One after the other they would take ten seconds.
	if took := time.Since(began); took < cfg.RoundTrip || took > sends*cfg.RoundTrip/2 {
		t.Errorf("%d sends at once took %s", sends, took)
	}
}

func TestSlowCreditHoldsSendersBack(t *testing.T) {
	server := start(t, queues("q"))
	const slow, sends = 20 * time.Millisecond, 5
	fault := server.Inject(emulator.Fault{Kind: emulator.SlowCredit, Entity: "q", Duration: slow, Times: emulator.Forever})
	s := sender(t, connect(t, server), "q")
	send(t, s, message("a", "x")) // attaches the one link; the wait for the next credit has begun
	began := time.Now()
	sendAtOnce(t, s, sends)
	if took := time.Since(began); took < (sends-1)*slow || fault.Fired() <= sends {
		t.Errorf("%d sends took %s and %d credits, want at least %s and one each", sends, took, fault.Fired(), (sends-1)*slow)
	}
	if c := server.Counts("q"); c.Active != sends+1 {
		t.Errorf("%d messages stored, want %d", c.Active, sends+1)
	}
}

func TestRefusedAttach(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	server.Inject(emulator.Fault{Kind: emulator.RefuseAttach, Entity: "q", Condition: "com.microsoft:entity-disabled"})
	wantCondition(t, sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil), "com.microsoft:entity-disabled")
	send(t, sender(t, client, "q"), message("b", "y"))
}

func TestPutTokenStatus(t *testing.T) {
	for status, code := range map[int]azservicebus.Code{
		401: azservicebus.CodeUnauthorizedAccess,
		404: azservicebus.CodeNotFound,
		403: azservicebus.CodeConnectionLost,
	} {
		server := start(t, queues("q"))
		client := connect(t, server)
		server.Inject(emulator.Fault{Kind: emulator.PutToken, Entity: "q", Status: status, Times: emulator.Forever})
		var e *azservicebus.Error
		err := sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil)
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("status %d: %v, want code %s", status, err, code)
		}
	}
}

func TestPutTokenStatusThatPasses(t *testing.T) {
	for _, status := range []int{408, 503} {
		server := start(t, queues("q"))
		fault := server.Inject(emulator.Fault{Kind: emulator.PutToken, Entity: "q", Status: status})
		// The client has no code for these.
		err := sender(t, connect(t, server), "q").SendMessage(within(t), message("a", "x"), nil)
		if want := fmt.Sprintf("status code %d", status); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("status %d: %v", status, err)
		}
		fault.Remove()
		fault = server.Inject(emulator.Fault{Kind: emulator.PutToken, Entity: "q", Status: status})
		retrying := connectPatiently(t, server)
		send(t, sender(t, retrying, "q"), message("a", "x"))
		if fault.Fired() != 1 {
			t.Errorf("status %d fired %d times", status, fault.Fired())
		}
	}
}

func TestKillConnectionsIsSurvived(t *testing.T) {
	server := start(t, queues("q"))
	client := connectPatiently(t, server)
	s := sender(t, client, "q")
	send(t, s, message("a", "x"))
	server.KillConnections()
	send(t, s, message("b", "y"))
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages stored, want 2", c.Active)
	}
	if st := server.Stats(); st.ConnectionsAccepted != 2 {
		t.Errorf("%d connections, want 2", st.ConnectionsAccepted)
	}
}

func TestDetachLinksIsRecovered(t *testing.T) {
	server := start(t, queues("q"))
	client := connectPatiently(t, server)
	s := sender(t, client, "q")
	send(t, s, message("a", "x"))
	if n := server.DetachLinks("q", "amqp:link:detach-forced", "idle"); n != 1 {
		t.Errorf("%d links were detached, want the sender's", n)
	}
	send(t, s, message("b", "y"))
	if st := server.Stats(); st.ConnectionsAccepted != 1 {
		t.Errorf("%d connections, want the one", st.ConnectionsAccepted)
	}
}

func TestInjectRefusesWhatCannotHappen(t *testing.T) {
	server := start(t, queues("q"))
	for name, fault := range map[string]emulator.Fault{
		"no kind":          {},
		"unknown entity":   {Kind: emulator.Reject, Entity: "nowhere"},
		"no status":        {Kind: emulator.PutToken},
		"match on attach":  {Kind: emulator.RefuseAttach, Match: func(emulator.Message) bool { return true }},
		"delay of nothing": {Kind: emulator.Delay},
		"slow as nothing":  {Kind: emulator.SlowCredit},
		"no admin status":  {Kind: emulator.AdminStatus},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: injected", name)
				}
			}()
			server.Inject(fault)
		}()
	}
}
