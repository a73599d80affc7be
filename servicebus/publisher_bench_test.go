package servicebus_test

import (
	"bytes"
	"testing"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

// benchEvents are claims as the worker makes them: 500 events of one type with
// 600 bytes of payload and a few headers.
func benchEvents() []worker.Event {
	events := manyEvents(500, 600)
	for i := range events {
		events[i].AggregateID = "8c5f3c1e-7d1b-4b0e-9d57-0d9a4f1c2b3a"
		events[i].Headers = []byte(`{"tenant":"contoso","version":3,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`)
		events[i].Payload = bytes.Repeat([]byte("0123456789"), 60)
	}
	return events
}

// BenchmarkPublish is the whole way to the broker's confirmation, emulator
// included: divide by 500 for one event.
func BenchmarkPublish(b *testing.B) {
	for name, route := range map[string]servicebus.Route{
		"plain":    {Entity: orders},
		"sessions": {Entity: orders, SessionIDFromAggregate: true},
	} {
		b.Run(name, func(b *testing.B) {
			server := startEmulator(b, emulator.Config{Entities: []emulator.Entity{{Name: orders, MaxSizeBytes: 1 << 40}}})
			_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(b, servicebus.Config{Routes: mustRoutes(b, route)})
			events := benchEvents()
			b.ReportAllocs()
			for b.Loop() {
				wantAll(b, p.Publish(b.Context(), events), worker.Sent)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
		})
	}
}
