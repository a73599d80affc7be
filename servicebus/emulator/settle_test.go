package emulator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

func TestAbandonCountsAndGoesToDeadLettersAtTheLimit(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", MaxDeliveryCount: 2}}})
	client := connect(t, server)
	send(t, sender(t, client, "q"), message("a", "x"), message("b", "y"))
	r := receiver(t, client, "q", nil)

	first := receive(t, r, 1)[0]
	if first.DeliveryCount != 1 {
		t.Errorf("delivery count %d on the first delivery, want 1", first.DeliveryCount)
	}
	properties := &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"why": "test"}}
	if err := r.AbandonMessage(within(t), first, properties); err != nil {
		t.Fatal(err)
	}
	again := receive(t, r, 1)[0]
	if again.MessageID != "a" || again.DeliveryCount != 2 || again.ApplicationProperties["why"] != "test" {
		t.Errorf("after abandoning a: %q with delivery count %d and %v", again.MessageID, again.DeliveryCount, again.ApplicationProperties)
	}
	if err := r.AbandonMessage(within(t), again, nil); err != nil {
		t.Fatal(err)
	}
	dead := receive(t, receiver(t, client, "q", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}), 1)[0]
	if dead.MessageID != "a" || *dead.DeadLetterReason != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letter is %q for %q", dead.MessageID, *dead.DeadLetterReason)
	}
	if c := server.Counts("q"); c.Active != 1 || c.DeadLettered != 1 {
		t.Errorf("counts are %+v, want b active and a dead-lettered", c)
	}
}

func TestDeadLetterKeepsTheMessageAndSaysWhy(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	m := message("a", "body")
	m.ApplicationProperties = map[string]any{"own": int64(7)}
	m.Subject = to.Ptr("subject")
	send(t, sender(t, client, "q"), m)
	r := receiver(t, client, "q", nil)
	err := r.DeadLetterMessage(within(t), receive(t, r, 1)[0], &azservicebus.DeadLetterOptions{
		Reason: to.Ptr("bad"), ErrorDescription: to.Ptr("very bad"),
	})
	if err != nil {
		t.Fatal(err)
	}
	deadLetters := receiver(t, client, "q", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	dead := receive(t, deadLetters, 1)[0]
	if *dead.DeadLetterReason != "bad" || *dead.DeadLetterErrorDescription != "very bad" {
		t.Errorf("dead-lettered for %q: %q", *dead.DeadLetterReason, *dead.DeadLetterErrorDescription)
	}
	if string(dead.Body) != "body" || *dead.Subject != "subject" || dead.ApplicationProperties["own"] != int64(7) {
		t.Errorf("the message changed: %q, %v, %v", dead.Body, *dead.Subject, dead.ApplicationProperties)
	}
	if err := deadLetters.CompleteMessage(within(t), dead, nil); err != nil {
		t.Fatal(err)
	}
	if c := held(server, "q"); c != (emulator.Counts{}) {
		t.Errorf("left behind: %+v", c)
	}
}

func TestDeferredMessagesAreReceivedByNumber(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	send(t, sender(t, client, "q"), message("a", "x"))
	r := receiver(t, client, "q", nil)
	m := receive(t, r, 1)[0]
	if err := r.DeferMessage(within(t), m, nil); err != nil {
		t.Fatal(err)
	}
	if got := server.Messages("q"); len(got) != 1 || got[0].State != emulator.StateDeferred {
		t.Fatalf("after deferring: %+v", got)
	}
	deferred, err := r.ReceiveDeferredMessages(within(t), []int64{*m.SequenceNumber}, nil)
	if err != nil || len(deferred) != 1 {
		t.Fatalf("received %d deferred messages, %v", len(deferred), err)
	}
	if deferred[0].State != azservicebus.MessageStateDeferred || string(deferred[0].Body) != "x" {
		t.Errorf("the deferred message is %v %q", deferred[0].State, deferred[0].Body)
	}
	if err := r.CompleteMessage(within(t), deferred[0], nil); err != nil {
		t.Fatal(err)
	}
	if c := held(server, "q"); c != (emulator.Counts{}) {
		t.Errorf("left behind: %+v", c)
	}
	if _, err := r.ReceiveDeferredMessages(within(t), []int64{*m.SequenceNumber}, nil); err == nil {
		t.Error("the number of a completed message was found again")
	}
}

func TestLockExpiryGivesTheMessageToTheNext(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", LockDuration: 100 * time.Millisecond}}})
	client := connect(t, server)
	send(t, sender(t, client, "q"), message("a", "x"))
	slow := receiver(t, client, "q", nil)
	stale := receive(t, slow, 1)[0]
	fresh := receive(t, receiver(t, client, "q", nil), 1)[0]
	if fresh.DeliveryCount != 2 || fresh.LockToken == stale.LockToken {
		t.Errorf("redelivered with count %d under lock %x (was %x)", fresh.DeliveryCount, fresh.LockToken, stale.LockToken)
	}
	var lost *azservicebus.Error
	if err := slow.CompleteMessage(within(t), stale, nil); !errors.As(err, &lost) || lost.Code != azservicebus.CodeLockLost {
		t.Errorf("completing under a lock that is over: %v, want code %s", err, azservicebus.CodeLockLost)
	}
}

func TestRenewingKeepsTheLock(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	send(t, sender(t, client, "q"), message("a", "x"))
	r := receiver(t, client, "q", nil)
	m := receive(t, r, 1)[0]
	before := *m.LockedUntil
	if err := r.RenewMessageLock(within(t), m, nil); err != nil {
		t.Fatal(err)
	}
	if m.LockedUntil.Before(before) {
		t.Errorf("the renewed lock ends at %s, before %s", m.LockedUntil, before)
	}
	if err := r.CompleteMessage(within(t), m, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.RenewMessageLock(within(t), m, nil); err == nil {
		t.Error("the lock of a completed message was renewed")
	}
}

func TestReceiveAndDeleteLeavesNothing(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	if err := sendBatch(t, sender(t, client, "q"), numbered(10)...); err != nil {
		t.Fatal(err)
	}
	r := receiver(t, client, "q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	receive(t, r, 10)
	if c := held(server, "q"); c != (emulator.Counts{}) {
		t.Errorf("left behind: %+v", c)
	}
}

func TestPeekChangesNothing(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	if err := sendBatch(t, sender(t, client, "q"), numbered(5)...); err != nil {
		t.Fatal(err)
	}
	r := receiver(t, client, "q", nil)
	for _, want := range []int{3, 2, 0} {
		got, err := r.PeekMessages(within(t), 3, nil)
		if err != nil || len(got) != want {
			t.Fatalf("peeked %d messages, %v; want %d", len(got), err, want)
		}
	}
	if c := server.Counts("q"); c.Active != 5 || c.Locked != 0 {
		t.Errorf("counts are %+v", c)
	}
}

func TestScheduledMessagesWaitAndCanBeCancelled(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	s := sender(t, client, "q")
	numbers, err := s.ScheduleMessages(within(t), numbered(2), time.Now().Add(time.Hour), nil)
	if err != nil || len(numbers) != 2 {
		t.Fatalf("scheduled %v, %v", numbers, err)
	}
	soon := message("soon", "x")
	soon.ScheduledEnqueueTime = to.Ptr(time.Now().Add(100 * time.Millisecond))
	send(t, s, soon)
	if c := server.Counts("q"); c.Scheduled < 2 {
		t.Errorf("counts are %+v", c)
	}
	if err := s.CancelScheduledMessages(within(t), numbers[:1], nil); err != nil {
		t.Fatal(err)
	}
	if err := s.CancelScheduledMessages(within(t), numbers[:1], nil); err == nil {
		t.Error("a message was cancelled twice")
	}
	got := receive(t, receiver(t, client, "q", nil), 1)[0]
	if got.MessageID != "soon" || got.EnqueuedTime.Before(soon.ScheduledEnqueueTime.Truncate(time.Millisecond)) {
		t.Errorf("%q was enqueued at %s, before its time %s", got.MessageID, got.EnqueuedTime, soon.ScheduledEnqueueTime)
	}
	if c := server.Counts("q"); c.Scheduled != 1 {
		t.Errorf("counts are %+v, want the message that was not cancelled", c)
	}
}
