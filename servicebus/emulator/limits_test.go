package emulator_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"azsqloutbox/servicebus/emulator"
)

// condition is the AMQP condition in an error, empty if there is none.
func condition(err error) string {
	var e *amqp.Error
	if errors.As(err, &e) {
		return string(e.Condition)
	}
	return ""
}

func wantCondition(t *testing.T, err error, want string) {
	t.Helper()
	if condition(err) != want {
		t.Errorf("condition %q in %v, want %q", condition(err), err, want)
	}
}

func TestStandardBatchHoldsWhatTheServiceHolds(t *testing.T) {
	server := start(t, queues("q"))
	s := sender(t, connect(t, server), "q")
	batch, err := s.NewMessageBatch(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("x", 600)
	for {
		if err := batch.AddMessage(&azservicebus.Message{Body: []byte(body)}, nil); err != nil {
			if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
				t.Fatal(err)
			}
			break
		}
	}
	// Measured with a limit of 262,144 bytes and generated ids.
	if batch.NumMessages() < 350 || batch.NumMessages() > 400 {
		t.Errorf("%d messages of 600 bytes fit a batch", batch.NumMessages())
	}
	if err := s.SendMessageBatch(within(t), batch, nil); err != nil {
		t.Fatal(err)
	}
	if c := server.Counts("q"); c.Active != int64(batch.NumMessages()) {
		t.Errorf("%d messages arrived of %d", c.Active, batch.NumMessages())
	}
	err = s.SendMessage(within(t), message("big", strings.Repeat("x", 256<<10)), nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("a message above the limit: %v, want ErrMessageTooLarge", err)
	}
}

func TestPremiumTakesLargeMessagesSinglyOnly(t *testing.T) {
	server := start(t, emulator.Config{Tier: emulator.Premium, Entities: []emulator.Entity{
		{Name: "q", MaxMessageBytes: 20 << 20},
	}})
	client := connect(t, server)
	s := sender(t, client, "q")
	batch, err := s.NewMessageBatch(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	if err := batch.AddMessage(&azservicebus.Message{Body: large}, nil); !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("10 MB were added to a batch: %v", err)
	}
	if err := batch.AddMessage(&azservicebus.Message{Body: large[:900<<10]}, nil); err != nil {
		t.Errorf("900 KB were not added to a batch: %v", err)
	}
	send(t, s, &azservicebus.Message{Body: large})
	got := receive(t, receiver(t, client, "q", nil), 1)[0]
	if !bytes.Equal(got.Body, large) {
		t.Errorf("%d bytes came back, not the %d that were sent", len(got.Body), len(large))
	}
}

func TestOversizedDeliveryDetachesTheLink(t *testing.T) {
	server := start(t, queues("q"))
	raw := dial(t, server)
	session := raw.session(t)
	link := raw.sender(t, session, "q")
	link.transfer(t, 0, make([]byte, 60<<10), true)
	for range 4 {
		link.transfer(t, 0, make([]byte, 60<<10), true)
	}
	wantCondition(t, raw.detached(t), "amqp:link:message-size-exceeded")
}

func TestTransferWithoutCreditDetachesTheLink(t *testing.T) {
	server := start(t, queues("q"))
	server.Inject(emulator.Fault{Kind: emulator.SlowCredit, Duration: time.Hour})
	raw := dial(t, server)
	raw.sender(t, raw.session(t), "q").transfer(t, 0, []byte("\x00\x53\x75\xa0\x01x"), false)
	wantCondition(t, raw.detached(t), "amqp:link:transfer-limit-exceeded")
	if c := server.Counts("q"); c.Active != 0 {
		t.Errorf("%d messages stored", c.Active)
	}
}

func TestBatchOfMoreThan4500IsRefused(t *testing.T) {
	server := start(t, emulator.Config{Tier: emulator.Premium, Entities: []emulator.Entity{{Name: "q"}}})
	s := sender(t, connect(t, server), "q")
	batch, err := s.NewMessageBatch(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 4501 {
		if err := batch.AddMessage(&azservicebus.Message{Body: []byte("x")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	// The client takes amqp:internal-error for a broken connection.
	if err := s.SendMessageBatch(within(t), batch, nil); err == nil {
		t.Fatal("4,501 messages were taken")
	}
	if c := server.Counts("q"); c.Active != 0 {
		t.Errorf("%d messages of a refused batch were stored", c.Active)
	}
}

func TestFullEntityRefuses(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", MaxSizeBytes: 2000}}})
	client := connect(t, server)
	send(t, sender(t, client, "q"), message("a", strings.Repeat("x", 1000)))
	err := sender(t, client, "q").SendMessage(within(t), message("b", strings.Repeat("x", 1000)), nil)
	wantCondition(t, err, "amqp:resource-limit-exceeded")

	r := receiver(t, client, "q", nil)
	if err := r.CompleteMessage(within(t), receive(t, r, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
	send(t, sender(t, client, "q"), message("c", strings.Repeat("x", 1000)))
}

func TestUnknownEntityIsNotFound(t *testing.T) {
	server := start(t, queues("q"))
	err := sender(t, connect(t, server), "nowhere").SendMessage(within(t), message("a", "x"), nil)
	wantCondition(t, err, "amqp:not-found")
}

func TestNamesIgnoreCase(t *testing.T) {
	server := start(t, queues("Orders"))
	send(t, sender(t, connect(t, server), "oRDERS"), message("a", "x"))
	if c := server.Counts("ORDERS"); c.Active != 1 {
		t.Errorf("counts are %+v", c)
	}
}

func TestWrongKeyIsUnauthorized(t *testing.T) {
	server := start(t, queues("q"))
	text := strings.Replace(server.ConnectionString(), "SAS_KEY_VALUE", "guessed", 1)
	client, err := azservicebus.NewClientFromConnectionString(text, &azservicebus.ClientOptions{RetryOptions: impatient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(within(t)) })
	err = sender(t, client, "q").SendMessage(within(t), message("a", "x"), nil)
	var e *azservicebus.Error
	if !errors.As(err, &e) || e.Code != azservicebus.CodeUnauthorizedAccess {
		t.Errorf("with a wrong key: %v, want code %s", err, azservicebus.CodeUnauthorizedAccess)
	}
}

func TestLongIDsAreRefused(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	send(t, sender(t, client, "q"), message(strings.Repeat("i", 128), "x"))
	if err := sender(t, client, "q").SendMessage(within(t), message(strings.Repeat("i", 129), "x"), nil); err == nil {
		t.Error("a message id of 129 characters was taken")
	}
	m := message("a", "x")
	m.PartitionKey = to.Ptr(strings.Repeat("p", 129))
	if err := sender(t, client, "q").SendMessage(within(t), m, nil); err == nil {
		t.Error("a partition key of 129 characters was taken")
	}
}

func TestLargePropertiesAreRefused(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	sized := func(id string, bytes ...int) *azservicebus.Message {
		m := message(id, "x")
		m.ApplicationProperties = map[string]any{}
		for i, n := range bytes {
			m.ApplicationProperties[string(rune('a'+i))] = strings.Repeat("v", n)
		}
		return m
	}
	const tooMuch = "com.microsoft:argument-error"
	wantRefused := func(m *azservicebus.Message) {
		t.Helper()
		for _, err := range []error{
			sender(t, client, "q").SendMessage(within(t), m, nil),
			sendBatch(t, sender(t, client, "q"), message("innocent", "x"), m),
		} {
			// The client takes a condition that it does not know for a lost connection.
			if err == nil || !strings.Contains(err.Error(), tooMuch) {
				t.Errorf("%s: %v, want %s", *m.MessageID, err, tooMuch)
			}
		}
	}
	send(t, sender(t, client, "q"), sized("fits", 32_000, 32_000))
	wantRefused(sized("one property", 32<<10))
	wantRefused(sized("all properties", 22_000, 22_000, 22_000))
	if c := server.Counts("q"); c.Active != 1 {
		t.Errorf("%d messages in the queue, want the one that fits", c.Active)
	}
}

func TestPartitionedEntityRefusesMixedBatches(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", Partitioned: true}}})
	client := connect(t, server)
	a, b := message("a", "x"), message("b", "y")
	a.PartitionKey, b.PartitionKey = to.Ptr("one"), to.Ptr("two")
	wantCondition(t, sendBatch(t, sender(t, client, "q"), a, b), "amqp:not-allowed")
	b.PartitionKey = a.PartitionKey
	if err := sendBatch(t, sender(t, client, "q"), a, b); err != nil {
		t.Error(err)
	}
}

func TestPartitionedEntityWithDuplicateDetectionWantsAKey(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", Partitioned: true, DuplicateDetection: true}}})
	client := connect(t, server)
	a, b := message("a", "x"), message("b", "y")
	wantCondition(t, sendBatch(t, sender(t, client, "q"), a, b), "amqp:not-allowed")
	send(t, sender(t, client, "q"), a)
	a, b = message("c", "x"), message("d", "y")
	a.PartitionKey, b.PartitionKey = to.Ptr("one"), to.Ptr("one")
	if err := sendBatch(t, sender(t, client, "q"), a, b); err != nil {
		t.Error(err)
	}
}

func TestConnectionsAboveTheQuotaAreRefused(t *testing.T) {
	cfg := queues("q")
	cfg.MaxConnections = 2
	server := start(t, cfg)
	first, second := connect(t, server), connect(t, server)
	send(t, sender(t, first, "q"), message("a", "x"))
	send(t, sender(t, second, "q"), message("b", "x"))
	err := sender(t, connect(t, server), "q").SendMessage(within(t), message("c", "x"), nil)
	if err == nil || !strings.Contains(err.Error(), "ConnectionsQuotaExceeded") {
		t.Errorf("a third connection of two: %v", err)
	}
	send(t, sender(t, first, "q"), message("d", "x"))
	if err := second.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	for ctx := within(t); server.Stats().Connections > 1 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	send(t, sender(t, connect(t, server), "q"), message("e", "x"))
	if c := server.Counts("q"); c.Active != 4 {
		t.Errorf("%d messages stored, want 4", c.Active)
	}
}

func TestNamespaceIsThrottledByCredits(t *testing.T) {
	cfg := emulator.Config{CreditsPerSecond: 4, Entities: []emulator.Entity{
		{Name: "q"},
		{Name: "t", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{
			{Name: "a"}, {Name: "b", Rules: []emulator.Rule{{Subject: "x"}, {Subject: "y"}}},
		}},
	}}
	server := start(t, cfg)
	client := connect(t, server)
	busy := func(entity string) {
		t.Helper()
		err := sender(t, client, entity).SendMessage(within(t), message("a", "x"), nil)
		wantCondition(t, err, "com.microsoft:server-busy")
		if err == nil || !strings.Contains(err.Error(), "50009") {
			t.Errorf("%v does not say 50009", err)
		}
	}
	// All is taken, and a minute of credits owed: for every entity.
	if err := sendBatch(t, sender(t, client, "q"), numbered(240)...); err != nil {
		t.Fatal(err)
	}
	busy("q")
	busy("t")
	if server.Throttled() != 2 {
		t.Errorf("%d sends were throttled, want 2", server.Throttled())
	}
	// One message costs four credits on the topic, one and its three filters.
	server.SetCreditsPerSecond(1)
	if err := sendBatch(t, sender(t, client, "t"), numbered(60)...); err != nil {
		t.Fatal(err)
	}
	busy("q")
	server.SetCreditsPerSecond(0)
	send(t, sender(t, client, "q"), message("b", "x"))
}
