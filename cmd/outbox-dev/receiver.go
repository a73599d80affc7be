package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/servicebus"
)

const receivers = 2

// inspector receives messages and checks each against the event it claims to
// be. Its methods may be used from many goroutines.
type inspector struct {
	samples samples
	source  string // of the message ids
	got     func(n int)

	mu         sync.Mutex
	seen       []bool
	received   int
	duplicates int
	altered    int
	problem    error // the first one
	last       time.Time
	oldestWait time.Duration
	complete   chan struct{}
}

func newInspector(s samples, events int, got func(n int)) *inspector {
	return &inspector{samples: s, source: source, got: got, seen: make([]bool, events), complete: make(chan struct{})}
}

// receive takes messages until ctx ends. They are deleted as they are received:
// what arrived is counted here, and nothing needs to come back.
func (in *inspector) receive(ctx context.Context, connectionString string) error {
	client, err := azservicebus.NewClientFromConnectionString(connectionString, nil)
	if err != nil {
		return fmt.Errorf("connect a receiver: %w", err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	group, ctx := errgroup.WithContext(ctx)
	for range receivers {
		receiver, err := client.NewReceiverForQueue(local.Entity, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		if err != nil {
			return fmt.Errorf("open a receiver on %s: %w", local.Entity, err)
		}
		group.Go(func() error {
			for {
				// By default the client waits a second for company after the first
				// message in this mode, and a small demo would measure that.
				messages, err := receiver.ReceiveMessages(ctx, 1000, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: 20 * time.Millisecond})
				if ctx.Err() != nil {
					return nil
				}
				if err != nil {
					return fmt.Errorf("receive from %s: %w", local.Entity, err)
				}
				in.inspect(messages)
			}
		})
	}
	return group.Wait()
}

func (in *inspector) inspect(messages []*azservicebus.ReceivedMessage) {
	now := time.Now()
	in.mu.Lock()
	defer in.mu.Unlock()
	fresh := 0
	for _, m := range messages {
		n, err := in.check(m)
		if err != nil {
			in.altered++
			if in.problem == nil {
				in.problem = fmt.Errorf("message %s: %w", m.MessageID, err)
			}
			continue
		}
		in.last = now
		if in.seen[n] {
			in.duplicates++
			continue
		}
		in.seen[n] = true
		in.received++
		fresh++
		if created, ok := m.ApplicationProperties[servicebus.PropertyCreatedAt].(time.Time); ok {
			in.oldestWait = max(in.oldestWait, now.Sub(created))
		}
	}
	in.got(fresh)
	if fresh > 0 && in.received == len(in.seen) {
		close(in.complete)
	}
}

// check compares a message with what was written.
func (in *inspector) check(m *azservicebus.ReceivedMessage) (int, error) {
	n, err := number(m.Body)
	if err != nil {
		return 0, err
	}
	if n < 0 || n >= len(in.seen) {
		return 0, fmt.Errorf("it claims to be event %d of %d", n, len(in.seen))
	}
	want := in.samples.event(n)
	if !bytes.Equal(m.Body, want.Payload) {
		return 0, fmt.Errorf("the payload of event %d was altered", n)
	}
	if m.Subject == nil || *m.Subject != want.EventType {
		return 0, fmt.Errorf("the subject of event %d is not %q", n, want.EventType)
	}
	id, _ := m.ApplicationProperties[servicebus.PropertyEventID].(int64)
	created, _ := m.ApplicationProperties[servicebus.PropertyCreatedAt].(time.Time)
	if wantID := servicebus.MessageID(in.source, id, created); m.MessageID != wantID {
		return 0, fmt.Errorf("the id of event %d is not %s", n, wantID)
	}
	for name, value := range map[string]any{
		servicebus.PropertyEventType:     want.EventType,
		servicebus.PropertyAggregateType: want.AggregateType,
		servicebus.PropertyAggregateID:   want.AggregateID,
		"tenant":                         tenant(n),
		"sequence":                       int64(n),
		"rush":                           n%2 == 0,
	} {
		if got := m.ApplicationProperties[name]; got != value {
			return 0, fmt.Errorf("the property %s of event %d is %v, want %v", name, n, got, value)
		}
	}
	return n, nil
}
