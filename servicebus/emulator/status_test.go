package emulator_test

import (
	"strings"
	"testing"

	"azsqloutbox/servicebus/emulator"
)

const disabled = "com.microsoft:entity-disabled"

func TestDisabledQueueDetachesAndRefusesUntilItIsActiveAgain(t *testing.T) {
	server := start(t, queues("q", "other"))
	client := connect(t, server)
	before := sender(t, client, "q")
	send(t, before, message("a", "x"))
	bystander := sender(t, client, "other")
	send(t, bystander, message("b", "x"))

	server.SetStatus("q", emulator.StatusDisabled)
	wantCondition(t, before.SendMessage(within(t), message("c", "x"), nil), disabled)
	wantCondition(t, sender(t, client, "q").SendMessage(within(t), message("d", "x"), nil), disabled)
	_, err := receiver(t, client, "q", nil).ReceiveMessages(within(t), 1, nil)
	wantCondition(t, err, disabled)
	send(t, bystander, message("e", "x"))

	server.SetStatus("q", emulator.StatusActive)
	send(t, sender(t, client, "q"), message("f", "x"))
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages in the queue, want the two that were sent while it was active", c.Active)
	}
}

func TestHalfDisabledQueueDoesTheOtherHalf(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	send(t, sender(t, client, "q"), message("a", "x"))

	server.SetStatus("q", emulator.StatusSendDisabled)
	wantCondition(t, sender(t, client, "q").SendMessage(within(t), message("b", "x"), nil), disabled)
	r := receiver(t, client, "q", nil)
	held := receive(t, r, 1)[0]

	server.SetStatus("q", emulator.StatusReceiveDisabled)
	send(t, sender(t, client, "q"), message("c", "x"))
	if err := r.CompleteMessage(within(t), held, nil); err == nil {
		t.Error("a message of a queue that is ReceiveDisabled was completed")
	}
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages in the queue, want both", c.Active)
	}
}

func TestStatusOfTopicsAndSubscriptions(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "t", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{{Name: "on"}, {Name: "off"}}},
	}})
	client := connect(t, server)
	server.SetStatus("t/subscriptions/off", emulator.StatusDisabled)
	send(t, sender(t, client, "t"), message("a", "x"))
	if n := len(server.Messages("t/subscriptions/off")); n != 1 {
		t.Errorf("the disabled subscription got %d copies, want 1", n)
	}
	off, err := client.NewReceiverForSubscription("t", "off", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = off.ReceiveMessages(within(t), 1, nil)
	wantCondition(t, err, disabled)

	server.SetStatus("t", emulator.StatusDisabled)
	wantCondition(t, sender(t, client, "t").SendMessage(within(t), message("b", "x"), nil), disabled)
	on, err := client.NewReceiverForSubscription("t", "on", nil)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, on, 1)
}

func TestEntityMadeFullRefusesUntilItHasRoom(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "q"},
		{Name: "t", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{{Name: "s"}}},
	}})
	client := connect(t, server)
	for _, entity := range []string{"q", "t"} {
		send(t, sender(t, client, entity), message("a", "x"))
		server.SetMaxSizeBytes(entity, 0)
		err := sendBatch(t, sender(t, client, entity), message("b", "x"), message("c", "x"))
		wantCondition(t, err, "amqp:resource-limit-exceeded")
		server.SetMaxSizeBytes(entity, 1<<20)
		send(t, sender(t, client, entity), message("d", strings.Repeat("x", 100)))
	}
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages in the queue, want 2", c.Active)
	}
}

func TestStatusesThatCannotBePanic(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "t", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{{Name: "s"}}},
	}})
	for name, set := range map[string]func(){
		"topic":        func() { server.SetStatus("t", emulator.StatusReceiveDisabled) },
		"subscription": func() { server.SetStatus("t/subscriptions/s", emulator.StatusSendDisabled) },
		"dead letters": func() { server.SetStatus("t/subscriptions/s/$deadletterqueue", emulator.StatusDisabled) },
		"no such one":  func() { server.SetStatus("nowhere", emulator.StatusDisabled) },
		"size":         func() { server.SetMaxSizeBytes("t/subscriptions/s", 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: was set", name)
				}
			}()
			set()
		}()
	}
}
