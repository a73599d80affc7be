package emulator_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

// What a claim's worth of events looks like to the broker.
const (
	benchBatch = 300
	benchBody  = 600
)

func benchmarkServer(b *testing.B) (*emulator.Server, *azservicebus.Client) {
	server := start(b, emulator.Config{Entities: []emulator.Entity{{Name: "q", MaxSizeBytes: 1 << 40}}})
	return server, connect(b, server)
}

// fill sends at least n messages in full batches and returns how many.
func fill(b *testing.B, client *azservicebus.Client, n int) int {
	b.Helper()
	s := sender(b, client, "q")
	body := bytes.Repeat([]byte{'x'}, benchBody)
	sent := 0
	for sent < n {
		batch, err := s.NewMessageBatch(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		for range benchBatch {
			id := fmt.Sprint(sent)
			if err := batch.AddMessage(&azservicebus.Message{MessageID: &id, Body: body}, nil); err != nil {
				b.Fatal(err)
			}
			sent++
		}
		if err := s.SendMessageBatch(context.Background(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	return sent
}

// BenchmarkSend is one op a message, batched by the client.
func BenchmarkSend(b *testing.B) {
	_, client := benchmarkServer(b)
	fill(b, client, 1)
	b.SetBytes(benchBody)
	b.ResetTimer()
	n := fill(b, client, b.N)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkReceiveAndDelete(b *testing.B) {
	_, client := benchmarkServer(b)
	fill(b, client, b.N)
	r := receiver(b, client, "q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	b.SetBytes(benchBody)
	b.ResetTimer()
	for got := 0; got < b.N; {
		some, err := r.ReceiveMessages(context.Background(), min(5000, b.N-got), nil)
		if err != nil {
			b.Fatal(err)
		}
		got += len(some)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkPeekLockComplete(b *testing.B) {
	_, client := benchmarkServer(b)
	fill(b, client, b.N)
	r := receiver(b, client, "q", nil)
	b.SetBytes(benchBody)
	b.ResetTimer()
	for got := 0; got < b.N; {
		some, err := r.ReceiveMessages(context.Background(), min(1000, b.N-got), nil)
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan error, 16)
		for w := range 16 {
			go func() {
				for i := w; i < len(some); i += 16 {
					if err := r.CompleteMessage(context.Background(), some[i], nil); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 16 {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		got += len(some)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkSendDiscarded is BenchmarkSend to an entity that keeps nothing, as for
// a load that would not fit into memory.
func BenchmarkSendDiscarded(b *testing.B) {
	server := start(b, emulator.Config{Entities: []emulator.Entity{{Name: "q", Discard: true, DuplicateDetection: true}}})
	client := connect(b, server)
	fill(b, client, 1)
	b.SetBytes(benchBody)
	b.ResetTimer()
	n := fill(b, client, b.N)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkSendWatched is BenchmarkSend under a poison fault that never matches
// and an observer, as chaos has them.
func BenchmarkSendWatched(b *testing.B) {
	server, client := benchmarkServer(b)
	server.Inject(emulator.Fault{Kind: emulator.Reject, Match: func(m emulator.Message) bool { return m.MessageID == "poison" }})
	server.Observe("q", func(emulator.Message, bool) {})
	fill(b, client, 1)
	b.SetBytes(benchBody)
	b.ResetTimer()
	n := fill(b, client, b.N)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
}
