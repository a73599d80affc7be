package sqlserver

import (
	"testing"

	"azsqloutbox/worker"
)

// A claim in flight must not hold room that a larger one needed before it.
func TestReaderKeepsNoRoomThatItDoesNotNeed(t *testing.T) {
	r := newEventReader(&table{}, worker.MaxBatch, 16<<20)
	if cap(r.bytes) > largestGuess {
		t.Errorf("%d bytes are allocated before the first row", cap(r.bytes))
	}
	r.payload = []byte("{}")
	r.take("a")
	events := r.finish()
	if cap(r.bytes) > 64 || cap(events) > 4 {
		t.Errorf("one event of two bytes holds %d bytes and room for %d events", cap(r.bytes), cap(events))
	}
	if string(events[0].Payload) != "{}" {
		t.Errorf("payload is %s", events[0].Payload)
	}
}
