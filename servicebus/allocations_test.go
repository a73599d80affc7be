package servicebus

import "testing"

// What filling a message allocates is ours; what encoding it does is
// azservicebus's. The header that is a string takes one, the copy of the
// headers one, the message id one and a traceparent one.
func TestFillAllocations(t *testing.T) {
	event, route := benchEvent(), plainRoute()
	var m message
	n := testing.AllocsPerRun(100, func() {
		if err := m.fill("database.schema.table", route, &event); err != nil {
			t.Fatal(err)
		}
	})
	if n > 4 {
		t.Errorf("%v allocations a message, want 4", n)
	}
}
