package emulator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"

	"azsqloutbox/servicebus/emulator"
)

func TestTopicFansOutByRules(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{
		Name: "events", Kind: emulator.Topic,
		Subscriptions: []emulator.Subscription{
			{Name: "all"},
			{Name: "true", Rules: []emulator.Rule{{SQL: "1 = 1"}}},
			{Name: "false", Rules: []emulator.Rule{{SQL: "1=0"}}},
			{Name: "created", Rules: []emulator.Rule{{Subject: "created"}}},
			{Name: "eu-or-a", Rules: []emulator.Rule{
				{Properties: map[string]any{"region": "eu"}},
				{MessageID: "a"},
			}},
		},
	}}})
	client := connect(t, server)
	a, b, c := message("a", "1"), message("b", "2"), message("c", "3")
	a.Subject = to.Ptr("created")
	b.Subject, b.ApplicationProperties = to.Ptr("deleted"), map[string]any{"region": "eu"}
	if err := sendBatch(t, sender(t, client, "events"), a, b, c); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"all": "abc", "true": "abc", "false": "", "created": "a", "eu-or-a": "ab"} {
		got := ""
		for _, m := range server.Messages("events/subscriptions/" + name) {
			got += m.MessageID
		}
		if got != want {
			t.Errorf("subscription %s has %q, want %q", name, got, want)
		}
	}
	r, err := client.NewReceiverForSubscription("events", "created", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CompleteMessage(within(t), receive(t, r, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Messages("events/subscriptions/all")); n != 3 {
		t.Errorf("completing in one subscription left %d in another, want 3", n)
	}
	_, err = receiver(t, client, "events", nil).ReceiveMessages(within(t), 1, nil)
	wantCondition(t, err, "amqp:not-allowed")
}

func TestDuplicatesAreDroppedSilently(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "q", DuplicateDetection: true},
		{Name: "t", Kind: emulator.Topic, DuplicateDetection: true, Subscriptions: []emulator.Subscription{{Name: "s"}}},
	}})
	client := connect(t, server)
	for entity, holds := range map[string]string{"q": "q", "t": "t/subscriptions/s"} {
		s := sender(t, client, entity)
		send(t, s, message("m-1", "first"))
		if err := sendBatch(t, s, numbered(3)...); err != nil {
			t.Fatal(err)
		}
		if c := server.Counts(entity); c.Duplicates != 1 {
			t.Errorf("%s dropped %d duplicates, want 1", entity, c.Duplicates)
		}
		if got := server.Messages(holds); len(got) != 3 || string(got[0].Body) != "first" {
			t.Errorf("%s holds %d messages", holds, len(got))
		}
	}
}

func TestScheduledOnATopicByManagement(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{
		Name: "t", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{
			{Name: "all"}, {Name: "m-1", Rules: []emulator.Rule{{MessageID: "m-1"}}},
		},
	}}})
	client := connect(t, server)
	s := sender(t, client, "t")
	numbers, err := s.ScheduleMessages(within(t), numbered(2), time.Now().Add(time.Hour), nil)
	if err != nil || len(numbers) != 2 {
		t.Fatalf("scheduled %v, %v", numbers, err)
	}
	if _, err := s.ScheduleMessages(within(t), numbered(2), time.Now().Add(50*time.Millisecond), nil); err != nil {
		t.Fatal(err)
	}
	properties, err := administer(t, server.ConnectionString()).GetTopicRuntimeProperties(within(t), "t", nil)
	if err != nil || properties.ScheduledMessageCount < 2 {
		t.Errorf("the admin client counts %+v, %v", properties, err)
	}
	if err := s.CancelScheduledMessages(within(t), numbers[:1], nil); err != nil {
		t.Error(err)
	}
	if err := s.CancelScheduledMessages(within(t), numbers[:1], nil); err == nil {
		t.Error("a message was cancelled twice")
	}
	for name, want := range map[string]int{"all": 2, "m-1": 1} {
		r, err := client.NewReceiverForSubscription("t", name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := receive(t, r, want); got[want-1].MessageID != "m-1" {
			t.Errorf("%s got %s last", name, got[want-1].MessageID)
		}
	}
	if c := server.Counts("t"); c.Scheduled != 1 {
		t.Errorf("counts are %+v, want the one message that is due in an hour", c)
	}
	_, err = receiver(t, client, "t", nil).PeekMessages(within(t), 1, nil)
	wantCondition(t, err, "amqp:not-allowed")
}

func TestRulesThatAreNotModelledDoNotStart(t *testing.T) {
	for field, rule := range map[string]emulator.Rule{
		"Rules":            {Name: "nothing"},
		"Rules.SQL":        {SQL: "sys.Label LIKE 'a%'"},
		"Rules.Properties": {Properties: map[string]any{"n": 1}},
	} {
		server, err := emulator.Start(emulator.Config{Entities: []emulator.Entity{{
			Name: "t", Kind: emulator.Topic,
			Subscriptions: []emulator.Subscription{{Name: "s", Rules: []emulator.Rule{rule}}},
		}}})
		if err == nil {
			server.Close()
		}
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
