package emulator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

func TestEachSeesWhatIsThereInOrderAndTakesNothing(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q"}, {Name: "sessions", RequiresSession: true}}})
	client := connect(t, server)
	const messages = 2500 // more than it looks at in one go
	for _, entity := range []string{"q", "sessions"} {
		all := numbered(messages)
		for i, m := range all {
			m.SessionID = to.Ptr(fmt.Sprint(i % 7))
		}
		s := sender(t, client, entity)
		for from := 0; from < messages; from += 500 {
			if err := sendBatch(t, s, all[from:from+500]...); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.ScheduleMessages(within(t), all[:1], time.Now().Add(time.Hour), nil); err != nil {
			t.Fatal(err)
		}
		if entity == "q" {
			receive(t, receiver(t, client, entity, nil), 10) // which are locked, and still seen
		}
		var seen []int64
		for m := range server.Each(entity) {
			if i := len(seen); i < messages && (m.MessageID != fmt.Sprintf("m-%d", i) || string(m.Body) != fmt.Sprintf("body %d", i)) {
				t.Fatalf("message %d of %s is %s %q", i, entity, m.MessageID, m.Body)
			}
			seen = append(seen, m.SequenceNumber)
		}
		if len(seen) != messages+1 || !slices.IsSorted(seen) {
			t.Errorf("%s: %d messages, in order %t", entity, len(seen), slices.IsSorted(seen))
		}
		for range server.Each(entity) {
			break
		}
		if c := server.Counts(entity); c.Active != messages || c.Enqueued != messages || c.Scheduled != 1 {
			t.Errorf("%s: %+v", entity, c)
		}
	}
}

// seen collects what an observer is told.
type seen struct {
	mu  sync.Mutex
	all []string
}

func (s *seen) observe(m emulator.Message, duplicate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := m.MessageID + "=" + string(m.Body)
	if duplicate {
		text += " again"
	}
	s.all = append(s.all, text)
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.all, ", ")
}

func TestObserverIsToldOfAllThatIsTaken(t *testing.T) {
	topic := emulator.Entity{Name: "t", Kind: emulator.Topic, DuplicateDetection: true, Subscriptions: []emulator.Subscription{
		{Name: "none", Rules: []emulator.Rule{{SQL: "1=0"}}},
	}}
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", DuplicateDetection: true}, topic}})
	for _, entity := range []string{"q", "t"} {
		client := connect(t, server)
		var told, deaf seen
		stop := server.Observe(entity, told.observe)
		server.Observe(entity, deaf.observe)()
		s := sender(t, client, entity)
		send(t, s, message("m-1", "first"))
		if err := sendBatch(t, s, numbered(3)...); err != nil {
			t.Fatal(err)
		}
		server.Inject(emulator.Fault{Kind: emulator.Reject, Entity: entity, Condition: "amqp:not-allowed"})
		_ = sender(t, client, entity).SendMessage(within(t), message("refused", "x"), nil)
		server.Inject(emulator.Fault{Kind: emulator.DropAfterStore, Entity: entity})
		_ = sender(t, client, entity).SendMessage(within(t), message("unsure", "x"), nil)
		if entity == "t" {
			server.DeleteEntity(entity)
			if err := server.CreateEntity(topic); err != nil {
				t.Fatal(err)
			}
		}
		send(t, sender(t, connect(t, server), entity), message("m-9", "late"))
		stop()
		send(t, sender(t, connect(t, server), entity), message("m-10", "unseen"))
		want := "m-1=first, m-0=body 0, m-1=body 1 again, m-2=body 2, unsure=x, m-9=late"
		if told.String() != want || deaf.String() != "" {
			t.Errorf("%s: observed %s, want %s; and one that had stopped: %q", entity, &told, want, &deaf)
		}
	}
	if c := server.Counts("q"); c.Enqueued != 6 || c.Duplicates != 1 {
		t.Errorf("counts are %+v, want 6 messages and a duplicate", c)
	}
	if c := server.Counts("t"); c.Enqueued != 2 {
		t.Errorf("counts of the topic that was made again are %+v", c)
	}
}

func TestDiscardCountsAndForgets(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "q", Discard: true, DuplicateDetection: true, MaxSizeBytes: 100_000},
		{Name: "t", Discard: true, Kind: emulator.Topic, MaxSizeBytes: 100_000, Subscriptions: []emulator.Subscription{{Name: "s"}}},
	}})
	client := connect(t, server)
	for entity, holds := range map[string]string{"q": "q", "t": "t/subscriptions/s"} {
		var told seen
		defer server.Observe(entity, told.observe)()
		s := sender(t, client, entity)
		for i := range 10 { // more than there is room for at once
			batch := numbered(2)
			for n, m := range batch {
				m.MessageID, m.Body = to.Ptr(fmt.Sprint(i/2, n)), make([]byte, 20_000)
			}
			if err := sendBatch(t, s, batch...); err != nil {
				t.Fatal(err)
			}
		}
		if got := server.Messages(holds); len(got) != 0 {
			t.Errorf("%s holds %d messages", holds, len(got))
		}
		want := int64(20)
		if entity == "q" {
			want = 10
		}
		if c := server.Counts(holds); c.Enqueued != want || c.Active != 0 || c.Enqueued+c.Duplicates != 20 && entity == "q" {
			t.Errorf("%s: %+v", holds, c)
		}
		if n := len(told.all); n != 20 {
			t.Errorf("%s: %d were observed, want 20", entity, n)
		}
	}
	// It is still checked.
	wantCondition(t, sender(t, client, "q").SendMessage(within(t), &azservicebus.Message{
		MessageID: to.Ptr("large"), Body: make([]byte, 101_000),
	}, nil), "amqp:resource-limit-exceeded")
}
