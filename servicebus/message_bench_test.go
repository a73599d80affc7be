package servicebus

import (
	"bytes"
	"testing"

	"azsqloutbox/worker"
)

// benchEvent is an event as the Azure SQL article has them: about 600 bytes of
// payload, a few headers.
func benchEvent() worker.Event {
	return worker.Event{
		ID: 123456789, Type: "OrderPlaced", AggregateType: "Order", AggregateID: "8c5f3c1e-7d1b-4b0e-9d57-0d9a4f1c2b3a", CreatedAt: created,
		Payload: bytes.Repeat([]byte("0123456789"), 60),
		Headers: []byte(`{"tenant":"contoso","version":3,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`),
	}
}

func BenchmarkFill(b *testing.B) {
	event := benchEvent()
	route := plainRoute()
	var m message
	b.ReportAllocs()
	for b.Loop() {
		if err := m.fill("database.schema.table", route, &event); err != nil {
			b.Fatal(err)
		}
	}
}
