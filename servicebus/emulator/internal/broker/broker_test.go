package broker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// config is a queue whose durations no test waits for.
func config() QueueConfig {
	return QueueConfig{Name: "q", LockDuration: time.Minute, MaxDeliveryCount: 10, MaxBytes: 1 << 20}
}

// sent is what a test sends.
type sent struct {
	id, session, body string
	ttl               time.Duration
	at                time.Time
}

func (s sent) message(t *testing.T) *Message {
	t.Helper()
	var b []byte
	if s.ttl > 0 {
		b = amqp.AppendHeader(b, amqp.Header{TTLMillis: uint32(s.ttl.Milliseconds())})
	}
	if !s.at.IsZero() {
		b = amqp.AppendDescriptor(b, amqp.DescMessageAnnotations)
		b = amqp.AppendValue(b, map[amqp.Symbol]any{annScheduledTime: s.at})
	}
	b, mark := amqp.StartList(amqp.AppendDescriptor(b, amqp.DescProperties), 11)
	b = amqp.AppendString(b, s.id)
	for range 9 {
		b = amqp.AppendNull(b)
	}
	if s.session == "" {
		b = amqp.AppendNull(b)
	} else {
		b = amqp.AppendString(b, s.session)
	}
	b = amqp.EndCompound(b, mark)
	b = amqp.AppendBinary(amqp.AppendDescriptor(b, amqp.DescData), []byte(s.body))
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func put(t *testing.T, to Destination, messages ...sent) {
	t.Helper()
	batch := make([]*Message, len(messages))
	for i, s := range messages {
		batch[i] = s.message(t)
	}
	if err := to.Enqueue(batch); err != nil {
		t.Fatal(err)
	}
}

// ids are the message ids of deliveries, in their order.
func ids(deliveries []Delivery) string {
	var all []string
	for _, d := range deliveries {
		all = append(all, d.Message().MessageID())
	}
	return strings.Join(all, " ")
}

// bubble runs a test in which time passes at once, on a queue that is closed
// at its end.
func bubble(t *testing.T, cfg QueueConfig, test func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(cfg)
		defer q.Close()
		test(t, q)
	})
}

// pass lets d go by, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
