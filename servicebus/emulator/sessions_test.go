package emulator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/servicebus/emulator/internal/amqp"
)

func sessionQueue() emulator.Config {
	return emulator.Config{Entities: []emulator.Entity{{Name: "q", RequiresSession: true}}}
}

func inSession(session, id string) *azservicebus.Message {
	m := message(id, "of "+session)
	m.SessionID = to.Ptr(session)
	return m
}

func receiveSession(t *testing.T, r *azservicebus.SessionReceiver, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var all []*azservicebus.ReceivedMessage
	for len(all) < n {
		some, err := r.ReceiveMessages(within(t), n-len(all), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func TestSessionIsReceivedInOrderByOne(t *testing.T) {
	server := start(t, sessionQueue())
	client := connect(t, server)
	s := sender(t, client, "q")
	for i := range 3 {
		send(t, s, inSession("one", fmt.Sprint(i)), inSession("two", fmt.Sprint(i)))
	}
	one, err := client.AcceptSessionForQueue(within(t), "q", "one", nil)
	if err != nil {
		t.Fatal(err)
	}
	if one.LockedUntil().Before(time.Now()) {
		t.Errorf("the session is locked until %s", one.LockedUntil())
	}
	for i, m := range receiveSession(t, one, 3) {
		if m.MessageID != fmt.Sprint(i) || *m.SessionID != "one" {
			t.Errorf("message %d is %s of %s", i, m.MessageID, *m.SessionID)
		}
		if err := one.CompleteMessage(within(t), m, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err = client.AcceptSessionForQueue(within(t), "q", "one", nil)
	wantCondition(t, err, "com.microsoft:session-cannot-be-locked")

	next, err := client.AcceptNextSessionForQueue(within(t), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	if next.SessionID() != "two" {
		t.Errorf("the next session is %q", next.SessionID())
	}
	// Locked messages are free again when the session is, and not counted.
	receiveSession(t, next, 2)
	if err := next.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	again, err := client.AcceptSessionForQueue(within(t), "q", "two", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range receiveSession(t, again, 3) {
		if m.MessageID != fmt.Sprint(i) || m.DeliveryCount != 1 {
			t.Errorf("message %d is %s with delivery count %d", i, m.MessageID, m.DeliveryCount)
		}
	}
}

func TestAcceptNextWaitsForASession(t *testing.T) {
	server := start(t, sessionQueue())
	client := connect(t, server)
	accepted := make(chan error, 1)
	go func() {
		r, err := client.AcceptNextSessionForQueue(within(t), "q", nil)
		if err == nil && r.SessionID() != "late" {
			err = fmt.Errorf("session %q", r.SessionID())
		}
		accepted <- err
	}()
	send(t, sender(t, client, "q"), inSession("late", "a"))
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
}

func TestAcceptNextTimesOut(t *testing.T) {
	server := start(t, sessionQueue())
	raw := dial(t, server)
	raw.send(t, raw.session(t), &amqp.Attach{
		Name: "next", Role: amqp.RoleReceiver,
		Source: &amqp.Source{Address: "q", Filter: map[string]any{
			"com.microsoft:session-filter": amqp.Described{Descriptor: uint64(0x137000000C)},
		}},
		Properties: map[amqp.Symbol]any{"com.microsoft:timeout": uint32(50)},
	})
	wantCondition(t, raw.detached(t), "com.microsoft:timeout")
}

func TestSessionStateAndLock(t *testing.T) {
	server := start(t, sessionQueue())
	client := connect(t, server)
	send(t, sender(t, client, "q"), inSession("one", "a"))
	r, err := client.AcceptNextSessionForQueue(within(t), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := r.GetSessionState(within(t), nil); err != nil || state != nil {
		t.Errorf("state %q, %v before any was set", state, err)
	}
	if err := r.SetSessionState(within(t), []byte("half way"), nil); err != nil {
		t.Fatal(err)
	}
	if state, err := r.GetSessionState(within(t), nil); err != nil || string(state) != "half way" {
		t.Errorf("state %q, %v", state, err)
	}
	before := r.LockedUntil()
	if err := r.RenewSessionLock(within(t), nil); err != nil || r.LockedUntil().Before(before) {
		t.Errorf("renewed to %s from %s, %v", r.LockedUntil(), before, err)
	}
}

func TestSessionLockExpires(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "q", RequiresSession: true, LockDuration: 200 * time.Millisecond},
	}})
	client := connect(t, server)
	send(t, sender(t, client, "q"), inSession("one", "a"))
	for range 2 {
		// The first never renews nor closes, so the second waits for its lock to end.
		r, err := client.AcceptNextSessionForQueue(within(t), "q", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.SessionID() != "one" {
			t.Errorf("session %q", r.SessionID())
		}
	}
}

func TestSessionRulesOfAnEntity(t *testing.T) {
	cfg := sessionQueue()
	cfg.Entities = append(cfg.Entities, emulator.Entity{Name: "plain"})
	server := start(t, cfg)
	client := connect(t, server)
	wantCondition(t, sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil), "amqp:not-allowed")
	_, err := receiver(t, client, "q", nil).ReceiveMessages(within(t), 1, nil)
	wantCondition(t, err, "amqp:not-allowed")
	_, err = client.AcceptNextSessionForQueue(within(t), "plain", nil)
	wantCondition(t, err, "amqp:not-allowed")
}

func TestLinkThatWaitsForASessionIsDetached(t *testing.T) {
	server := start(t, sessionQueue())
	raw := dial(t, server)
	channel := raw.session(t)
	raw.send(t, channel, &amqp.Attach{
		Name: "r", Role: amqp.RoleReceiver,
		Source: &amqp.Source{Address: "q", Filter: map[string]any{"com.microsoft:session-filter": nil}},
	})
	for ctx := within(t); server.Stats().Links == 0 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	if n := server.DetachLinks("q", "com.microsoft:entity-disabled", "for a test"); n != 1 {
		t.Fatalf("%d links were detached, want the one that waits", n)
	}
	if a := until[*amqp.Attach](t, raw); a.Source != nil {
		t.Errorf("the attach of a link that is not to be: %+v", a)
	}
	wantCondition(t, raw.detached(t), "com.microsoft:entity-disabled")
}
