package broker

import (
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

func TestDuplicatesWithinTheWindowOnly(t *testing.T) {
	cfg := config()
	cfg.DuplicateWindow = time.Minute
	bubble(t, cfg, func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "a"}, sent{id: "a"}, sent{id: "b"})
		q.Take(nil, 9, true)
		pass(time.Minute - time.Millisecond)
		put(t, q, sent{id: "a"})
		if c := q.Counts(); c.Active != 0 || c.Duplicates != 2 {
			t.Errorf("within the window: %+v", c)
		}
		pass(time.Millisecond)
		put(t, q, sent{id: "a"})
		if c := q.Counts(); c.Active != 1 {
			t.Errorf("after the window: %+v", c)
		}
		if len(q.history.seen) != 1 || len(q.history.order) != 1 {
			t.Errorf("%d ids are remembered", len(q.history.seen))
		}
	})
}

func TestMessageIDsOfAnyTypeAreCompared(t *testing.T) {
	withID := func(id any) *Message {
		b, mark := amqp.StartList(amqp.AppendDescriptor(nil, amqp.DescProperties), 1)
		b = amqp.EndCompound(amqp.AppendValue(b, id), mark)
		m, err := Parse(amqp.AppendBinary(amqp.AppendDescriptor(b, amqp.DescData), nil))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	h := newHistory(1000)
	kept := h.fresh([]*Message{withID("1"), withID(uint64(1)), withID(uint64(1)), withID(nil), withID(nil)}, 0)
	if len(kept) != 4 {
		t.Errorf("%d messages are fresh, want 4: two ids and two without", len(kept))
	}
}
