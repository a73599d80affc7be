package servicebus

import (
	"bytes"
	"context"
	"testing"

	"azsqloutbox/servicebus/emulator"
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
	bare := benchEvent()
	bare.Headers = nil
	for name, event := range map[string]worker.Event{"headers": benchEvent(), "bare": bare} {
		b.Run(name, func(b *testing.B) {
			route := plainRoute()
			var m message
			b.ReportAllocs()
			for b.Loop() {
				if err := m.fill("database.schema.table:123456789:1767323045678", route, &event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPack maps and batches a claim of 500 events, and sends nothing:
// what the publisher costs by itself, azservicebus's encoding included.
func BenchmarkPack(b *testing.B) {
	pack, events := packing(b)
	b.ReportAllocs()
	for b.Loop() {
		pack()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

// packing returns what maps and batches so many events.
func packing(t testing.TB) (pack func(), events int) {
	t.Helper()
	server, err := emulator.Start(emulator.Config{Entities: []emulator.Entity{{Name: "orders"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	routes, err := NewRoutes(*plainRoute())
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{ConnectionString: server.ConnectionString(), Routes: routes, Source: "database.schema.table"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	claim := make([]worker.Event, 500)
	for i := range claim {
		claim[i] = benchEvent()
		claim[i].ID += int64(i)
	}
	return func() {
		d := p.delivery(claim)
		groups, _ := p.groupEvents(d.events)
		for _, g := range groups {
			if f := d.pack(context.Background(), g.dest, g.events, func(parcel) *failure { return nil }); f != nil {
				t.Fatal(f.err)
			}
		}
	}, len(claim)
}
