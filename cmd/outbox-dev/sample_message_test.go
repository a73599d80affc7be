package main

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus"
)

type message = azservicebus.ReceivedMessage

// sampleMessage is what event n looks like when it arrives.
func sampleMessage(s samples, n int) *message {
	e := s.event(n)
	created := time.UnixMilli(1_700_000_000_123).UTC()
	return &message{
		MessageID: servicebus.MessageID(source, int64(n), created),
		Subject:   &e.EventType,
		Body:      e.Payload,
		ApplicationProperties: map[string]any{
			servicebus.PropertyEventID: int64(n), servicebus.PropertyEventType: e.EventType,
			servicebus.PropertyAggregateType: e.AggregateType, servicebus.PropertyAggregateID: e.AggregateID,
			servicebus.PropertyCreatedAt: created,
			"tenant":                     tenant(n), "sequence": int64(n), "rush": n%2 == 0,
		},
	}
}
