package emulator_test

import (
	"testing"

	"azsqloutbox/servicebus/emulator"
)

func TestEntitiesComeAndGo(t *testing.T) {
	server := start(t, queues("stays"))
	client := connect(t, server)
	bystander := sender(t, connect(t, server), "stays") // the client drops its connection for a fatal error
	send(t, bystander, message("a", "x"))
	topic := emulator.Entity{Name: "Events", Kind: emulator.Topic, DuplicateDetection: true, Subscriptions: []emulator.Subscription{{Name: "s"}}}
	wantCondition(t, sender(t, client, "events").SendMessage(within(t), message("a", "x"), nil), "amqp:not-found")
	for range 2 {
		if err := server.CreateEntity(topic); err != nil {
			t.Fatal(err)
		}
		s := sender(t, client, "events")
		send(t, s, message("a", "x"))
		if n := len(server.Messages("events/subscriptions/s")); n != 1 {
			t.Errorf("%d messages in the subscription, want 1: what was deleted is forgotten", n)
		}
		r, err := client.NewReceiverForSubscription("events", "s", nil)
		if err != nil {
			t.Fatal(err)
		}
		receive(t, r, 1)

		server.DeleteEntity("EVENTS")
		wantCondition(t, s.SendMessage(within(t), message("b", "x"), nil), "amqp:not-found")
		_, err = r.ReceiveMessages(within(t), 1, nil)
		wantCondition(t, err, "amqp:not-found")
		wantCondition(t, sender(t, client, "events").SendMessage(within(t), message("b", "x"), nil), "amqp:not-found")
	}
	send(t, bystander, message("b", "x"))
	if found, err := administer(t, server.ConnectionString()).GetTopic(within(t), "events", nil); err != nil || found != nil {
		t.Errorf("the admin client finds %+v, %v", found, err)
	}
}

func TestEntitiesThatCannotBeMadeOrDeleted(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "t", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{{Name: "s"}}},
	}})
	for _, e := range []emulator.Entity{{Name: "T"}, {Name: ""}, {Name: "q", DuplicateWindow: 1}} {
		if err := server.CreateEntity(e); err == nil {
			t.Errorf("%+v was made", e)
		}
	}
	for _, name := range []string{"nowhere", "t/subscriptions/s", "t/subscriptions/s/$deadletterqueue"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was deleted", name)
				}
			}()
			server.DeleteEntity(name)
		}()
	}
}
