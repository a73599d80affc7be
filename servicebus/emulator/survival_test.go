package emulator_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

// TestRetriesAndDuplicateDetectionMakeExactlyOnce is what duplicate detection
// is for: connections drop before and after storing, the client sends again,
// and every message is there once.
func TestRetriesAndDuplicateDetectionMakeExactlyOnce(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{Name: "q", DuplicateDetection: true}}})
	var faults []*emulator.Injection
	for i, kind := range []emulator.FaultKind{
		emulator.DropAfterStore, emulator.DropBeforeStore, emulator.DropAfterStore, emulator.ServerBusy,
	} {
		faults = append(faults, server.Inject(emulator.Fault{Kind: kind, Nth: 5 * (i + 1)}))
	}
	const senders, batches, size = 4, 10, 20
	var wg sync.WaitGroup
	for w := range senders {
		client := connectWith(t, server, &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{
			MaxRetries: 10, RetryDelay: time.Millisecond, MaxRetryDelay: 10 * time.Millisecond,
		}})
		s := sender(t, client, "q")
		wg.Go(func() {
			for b := range batches {
				batch, err := s.NewMessageBatch(within(t), nil)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range size {
					if err := batch.AddMessage(message(fmt.Sprintf("%d-%d-%d", w, b, i), "x"), nil); err != nil {
						t.Error(err)
					}
				}
				if err := s.SendMessageBatch(within(t), batch, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	distinct := map[string]bool{}
	for _, m := range server.Messages("q") {
		distinct[m.MessageID] = true
	}
	c := server.Counts("q")
	if want := senders * batches * size; len(distinct) != want || c.Active != int64(want) {
		t.Errorf("%d messages with %d ids are there, want %d", c.Active, len(distinct), want)
	}
	if c.Duplicates < 2*size {
		t.Errorf("%d duplicates were dropped; two batches at least were sent twice", c.Duplicates)
	}
	for _, f := range faults {
		if f.Fired() != 1 {
			t.Errorf("a fault fired %d times", f.Fired())
		}
	}
}
