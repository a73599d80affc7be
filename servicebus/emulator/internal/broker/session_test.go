package broker

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestSessionLockEnds(t *testing.T) {
	cfg := config()
	cfg.RequiresSession = true
	bubble(t, cfg, func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "1", session: "s"}, sent{id: "2", session: "s"}, sent{id: "3", session: "other"})
		var lost atomic.Int32
		id := "s"
		held, err := q.Accept(&id, func() { lost.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		first := held.Take(nil, 1, false)
		if _, err := q.Accept(&id, nil); err == nil {
			t.Error("a session was accepted twice")
		}
		pass(30 * time.Second)
		if _, err := q.RenewSession("s"); err != nil {
			t.Fatal(err)
		}
		pass(59 * time.Second)
		if lost.Load() != 0 {
			t.Fatal("the renewed session was lost")
		}
		pass(time.Second)
		if lost.Load() != 1 {
			t.Fatalf("lost was called %d times", lost.Load())
		}
		if err := q.Settle(first[0].Token, Settlement{Verb: Complete}); err == nil {
			t.Error("the lost session still settles")
		}
		if got := held.Take(nil, 9, false); len(got) != 0 {
			t.Errorf("the lost session still receives %q", ids(got))
		}
		again, err := q.Accept(&id, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := again.Take(nil, 9, false)
		if ids(got) != "1 2" || got[0].DeliveryCount != 1 || got[1].DeliveryCount != 0 {
			t.Errorf("the next receiver gets %q", ids(got))
		}
	})
}
