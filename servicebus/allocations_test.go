package servicebus

import "testing"

// What filling a message allocates is ours; what encoding it does is
// azservicebus's. The header that is a string takes one, the copy of the
// headers one and a traceparent one.
func TestFillAllocations(t *testing.T) {
	event, route := benchEvent(), plainRoute()
	var m message
	n := testing.AllocsPerRun(100, func() {
		if err := m.fill("database.schema.table:123456789:1767323045678", route, &event); err != nil {
			t.Fatal(err)
		}
	})
	if n > 3 {
		t.Errorf("%v allocations a message, want 3", n)
	}
}

// What publishing allocates for an event, up to the sending. Of the 15.3 that
// were counted, 12 are azservicebus's: its copy of the message, and the growth of
// the buffer that it encodes each message into.
func TestPackAllocations(t *testing.T) {
	pack, events := packing(t)
	if n := testing.AllocsPerRun(5, pack) / float64(events); n > 16 {
		t.Errorf("%.1f allocations an event, want at most 16", n)
	}
}
