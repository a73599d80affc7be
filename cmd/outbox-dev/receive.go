package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// receiveCmd shows messages as a consumer gets them.
type receiveCmd struct {
	ServiceBus   string `name:"servicebus-connection-string" required:"" placeholder:"TEXT" help:"The broker, as serve prints it."`
	Entity       string `required:"" placeholder:"NAME" help:"The queue or topic."`
	Subscription string `env:"-" placeholder:"NAME" help:"The topic's subscription."`
	Messages     int    `env:"-" default:"0" placeholder:"N" help:"End after so many. Default 0: at Ctrl-C."`
}

// Validate is called by the parser.
func (c *receiveCmd) Validate() error { return within("--messages", c.Messages, 0, 1_000_000) }

// Run prints each message and completes it then, so that one that was not shown
// stays in its queue.
func (c *receiveCmd) Run(ctx context.Context, s streams) error {
	client, err := azservicebus.NewClientFromConnectionString(c.ServiceBus, nil)
	if err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	receiver, err := c.open(client)
	if err != nil {
		return fmt.Errorf("open a receiver on %s: %w", c.Entity, err)
	}
	for n := 0; c.Messages == 0 || n < c.Messages; n++ {
		messages, err := receiver.ReceiveMessages(ctx, 1, nil)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive from %s: %w", c.Entity, err)
		}
		for _, m := range messages {
			if err := show(s.out, m); err != nil {
				return err
			}
			if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
				return fmt.Errorf("complete message %s: %w", m.MessageID, err)
			}
		}
	}
	return nil
}

func (c *receiveCmd) open(client *azservicebus.Client) (*azservicebus.Receiver, error) {
	if c.Subscription != "" {
		return client.NewReceiverForSubscription(c.Entity, c.Subscription, nil)
	}
	return client.NewReceiverForQueue(c.Entity, nil)
}

// show writes a message: its id and subject, its properties, its body.
func show(w io.Writer, m *azservicebus.ReceivedMessage) error {
	var b strings.Builder
	b.WriteString(m.MessageID)
	if m.Subject != nil {
		b.WriteString("  " + *m.Subject)
	}
	b.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(m.ApplicationProperties)) {
		fmt.Fprintf(&b, "  %s: %v\n", name, m.ApplicationProperties[name])
	}
	fmt.Fprintf(&b, "  %s\n", m.Body)
	_, err := io.WriteString(w, b.String())
	return err
}
