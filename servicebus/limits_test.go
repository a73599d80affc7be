package servicebus_test

import (
	"bytes"
	"strings"
	"testing"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

func TestTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		tier         emulator.Tier
		messageLimit int64
		payload      int
		want         string
		wantErr      []string
	}{
		"standard":      {emulator.Standard, 0, 300_000, "srs", []string{"payload 300000", `"orders" takes 262144 bytes in a batch`}},
		"premium":       {emulator.Premium, 0, 1_500_000, "srs", []string{"payload 1500000", `"orders" takes 1048576 bytes in a batch`}},
		"premium large": {emulator.Premium, 100 << 20, 3_000_000, "sss", nil},
		// With the envelope around it, it is above the limit; alone it is not.
		"just so": {emulator.Standard, 0, 261_700, "sss", nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := startEmulator(t, emulator.Config{Tier: c.tier, Entities: []emulator.Entity{{Name: orders, MaxMessageBytes: c.messageLimit}}})
			_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(t, servicebus.Config{})
			events := manyEvents(3, 10)
			events[1].Payload = bytes.Repeat([]byte("x"), c.payload)
			outcomes := p.Publish(t.Context(), events)
			wantVerdicts(t, outcomes, c.want)
			for _, text := range c.wantErr {
				if err := outcomes[1].Err; err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("error is %v, want one with %q", err, text)
				}
			}
			// The refusal killed no sender that others need.
			wantAll(t, p.Publish(t.Context(), manyEvents(3, 10)), worker.Sent)
		})
	}
}

func TestABatchTooLargeByTheBrokersOpinionIsSplit(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Times: 3, Condition: "amqp:link:message-size-exceeded"})
	// Of 8, 4 and 2 the broker says so; then come 2 alone, 2, 4.
	wantAll(t, p.Publish(t.Context(), manyEvents(8, 10)), worker.Sent)
	wantStored(t, server, 8)
}

func TestAMessageTooLargeByTheBrokersOpinionIsRefused(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	server.Inject(emulator.Fault{Kind: emulator.Reject, Times: emulator.Forever, Condition: "amqp:link:message-size-exceeded", Match: eventID(2)})
	wantVerdicts(t, p.Publish(t.Context(), manyEvents(4, 10)), "srss")
	wantStored(t, server, 3)
}

func TestBatchesHoldAtMost4500Messages(t *testing.T) {
	server := startEmulator(t, emulator.Config{Tier: emulator.Premium, Entities: []emulator.Entity{{Name: orders}}})
	_, p := broker{connectionString: server.ConnectionString(), queue: orders}.publisher(t, servicebus.Config{})
	events := manyEvents(4600, 0)
	for i := range events {
		// Small, so that the count is the limit and not the bytes.
		events[i] = worker.Event{ID: events[i].ID, Type: "T", CreatedAt: createdAt}
	}
	wantAll(t, p.Publish(t.Context(), events), worker.Sent)
	if got := server.Stats().Batches; got != 2 {
		t.Errorf("%d batches, want 2", got)
	}
	wantStored(t, server, 4600)
}

func TestBatchLimitsOfOurOwn(t *testing.T) {
	batches := func(t *testing.T, cfg servicebus.Config) int64 {
		server, p := emulated(t, emulator.Entity{}, cfg)
		wantAll(t, p.Publish(t.Context(), manyEvents(1000, 600)), worker.Sent)
		wantStored(t, server, 1000)
		return server.Stats().Batches
	}
	byLink := batches(t, servicebus.Config{})
	if byLink < 3 || byLink > 5 {
		t.Errorf("1,000 events of 600 bytes took %d batches of 256 KB", byLink)
	}
	if got := batches(t, servicebus.Config{MaxBatchBytes: 64 << 10}); got < 3*byLink {
		t.Errorf("a limit of 64 KB made %d batches, the link's 256 KB makes %d", got, byLink)
	}
	if got := batches(t, servicebus.Config{MaxBatchBytes: 10 << 20}); got != byLink {
		t.Errorf("a limit above the link's made %d batches, the link's makes %d", got, byLink)
	}
	if got := batches(t, servicebus.Config{MaxBatchMessages: 50}); got != 20 {
		t.Errorf("a limit of 50 messages made %d batches, want 20", got)
	}
}

// A message that is left alone in its batch goes out without the envelope.
func TestABatchOfOneIsAPlainMessage(t *testing.T) {
	server, p := emulated(t, emulator.Entity{}, servicebus.Config{})
	events := manyEvents(2, 10)
	events[0].Headers = []byte(`{"no":`)
	wantVerdicts(t, p.Publish(t.Context(), events), "rs")
	if got := server.Stats().Batches; got != 0 {
		t.Errorf("%d batches, want none", got)
	}
}
