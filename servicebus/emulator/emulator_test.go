package emulator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"azsqloutbox/servicebus/emulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a test that has gone wrong; no test waits for it to pass.
const patience = 20 * time.Second

func start(t testing.TB, cfg emulator.Config) *emulator.Server {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	}
	server, err := emulator.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func queues(names ...string) emulator.Config {
	var cfg emulator.Config
	for _, name := range names {
		cfg.Entities = append(cfg.Entities, emulator.Entity{Name: name})
	}
	return cfg
}

var (
	// impatient makes a client give up at once where a fault is scripted, patient go
	// on until it is over.
	impatient = azservicebus.RetryOptions{MaxRetries: -1}
	patient   = azservicebus.RetryOptions{MaxRetries: 3, RetryDelay: time.Millisecond}
)

func connect(t testing.TB, server *emulator.Server) *azservicebus.Client {
	t.Helper()
	return connectWith(t, server, &azservicebus.ClientOptions{RetryOptions: impatient})
}

func connectPatiently(t testing.TB, server *emulator.Server) *azservicebus.Client {
	t.Helper()
	return connectWith(t, server, &azservicebus.ClientOptions{RetryOptions: patient})
}

func connectWith(t testing.TB, server *emulator.Server, options *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(server.ConnectionString(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func sender(t testing.TB, client *azservicebus.Client, entity string) *azservicebus.Sender {
	t.Helper()
	s, err := client.NewSender(entity, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func message(id, body string) *azservicebus.Message {
	return &azservicebus.Message{MessageID: &id, Body: []byte(body)}
}

func numbered(n int) []*azservicebus.Message {
	messages := make([]*azservicebus.Message, n)
	for i := range messages {
		messages[i] = message(fmt.Sprintf("m-%d", i), fmt.Sprintf("body %d", i))
	}
	return messages
}

func send(t testing.TB, s *azservicebus.Sender, messages ...*azservicebus.Message) {
	t.Helper()
	for _, m := range messages {
		if err := s.SendMessage(within(t), m, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func sendBatch(t testing.TB, s *azservicebus.Sender, messages ...*azservicebus.Message) error {
	t.Helper()
	batch, err := s.NewMessageBatch(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := batch.AddMessage(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s.SendMessageBatch(within(t), batch, nil)
}

// receive gets exactly n messages.
func receive(t testing.TB, r *azservicebus.Receiver, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var all []*azservicebus.ReceivedMessage
	for len(all) < n {
		some, err := r.ReceiveMessages(within(t), n-len(all), nil)
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, some...)
	}
	return all
}

func receiver(t testing.TB, client *azservicebus.Client, queue string, options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	t.Helper()
	r, err := client.NewReceiverForQueue(queue, options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSendsSinglyAndInBatchesAndReceives(t *testing.T) {
	server := start(t, queues("orders"))
	client := connect(t, server)
	s := sender(t, client, "orders")
	send(t, s, message("single", "alone"))
	if err := sendBatch(t, s, numbered(3)...); err != nil {
		t.Fatal(err)
	}
	if c := server.Counts("orders"); c.Active != 4 {
		t.Fatalf("%d active messages, want 4", c.Active)
	}
	if st := server.Stats(); st.MessagesReceived != 4 || st.Batches != 1 {
		t.Fatalf("stats are %+v, want 4 messages in 1 batch and 1 single", st)
	}

	r := receiver(t, client, "orders", nil)
	got := receive(t, r, 4)
	for i, want := range []string{"alone", "body 0", "body 1", "body 2"} {
		if string(got[i].Body) != want {
			t.Errorf("message %d is %q, want %q", i, got[i].Body, want)
		}
		if got[i].SequenceNumber == nil || *got[i].SequenceNumber != int64(i+1) {
			t.Errorf("message %d has sequence number %v", i, got[i].SequenceNumber)
		}
		if err := r.CompleteMessage(within(t), got[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	if c := held(server, "orders"); c != (emulator.Counts{}) {
		t.Errorf("after completing all: %+v", c)
	}
}

// held is what an entity holds, without what it has ever seen.
func held(server *emulator.Server, entity string) emulator.Counts {
	c := server.Counts(entity)
	c.Enqueued, c.Duplicates = 0, 0
	return c
}

// contextUntil ends the context once reached is true.
func contextUntil(t testing.TB, reached func() bool) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	go func() {
		for !reached() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	return ctx, cancel
}
