package broker

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// config is a queue whose durations no test waits for.
func config() QueueConfig {
	return QueueConfig{Name: "q", LockDuration: time.Minute, MaxDeliveryCount: 10, MaxBytes: 1 << 20}
}

// sent is what a test sends.
type sent struct {
	id, session, body string
	ttl               time.Duration
	at                time.Time
}

func (s sent) message(t *testing.T) *Message {
	t.Helper()
	var b []byte
	if s.ttl > 0 {
		b = amqp.AppendHeader(b, amqp.Header{TTLMillis: uint32(s.ttl.Milliseconds())})
	}
	if !s.at.IsZero() {
		b = amqp.AppendDescriptor(b, amqp.DescMessageAnnotations)
		b = amqp.AppendValue(b, map[amqp.Symbol]any{annScheduledTime: s.at})
	}
	b, mark := amqp.StartList(amqp.AppendDescriptor(b, amqp.DescProperties), 11)
	b = amqp.AppendString(b, s.id)
	for range 9 {
		b = amqp.AppendNull(b)
	}
	if s.session == "" {
		b = amqp.AppendNull(b)
	} else {
		b = amqp.AppendString(b, s.session)
	}
	b = amqp.EndCompound(b, mark)
	b = amqp.AppendBinary(amqp.AppendDescriptor(b, amqp.DescData), []byte(s.body))
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func put(t *testing.T, to Destination, messages ...sent) {
	t.Helper()
	batch := make([]*Message, len(messages))
	for i, s := range messages {
		batch[i] = s.message(t)
	}
	if err := to.Enqueue(batch); err != nil {
		t.Fatal(err)
	}
}

// ids are the message ids of deliveries, in their order.
func ids(deliveries []Delivery) string {
	var all []string
	for _, d := range deliveries {
		all = append(all, d.Message().MessageID())
	}
	return strings.Join(all, " ")
}

// bubble runs a test in which time passes at once, on a queue that is closed
// at its end.
func bubble(t *testing.T, cfg QueueConfig, test func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(cfg)
		defer q.Close()
		test(t, q)
	})
}

// pass lets d go by, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLockEndsAfterItsDuration(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "a"}, sent{id: "b"})
		held := q.Take(nil, 1, false)
		pass(time.Minute - time.Millisecond)
		if got := ids(q.Take(nil, 9, false)); got != "b" {
			t.Errorf("while a is locked, %q is taken", got)
		}
		pass(time.Millisecond)
		again := q.Take(nil, 9, false)
		if ids(again) != "a" || again[0].DeliveryCount != 1 {
			t.Fatalf("after its lock: %q", ids(again))
		}
		if err := q.Settle(held[0].Token, Settlement{Verb: Complete}); err == nil {
			t.Error("the old lock still settles")
		}
		if err := q.Settle(again[0].Token, Settlement{Verb: Complete}); err != nil {
			t.Error(err)
		}
	})
}

func TestRenewMovesTheEnd(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "a"})
		held := q.Take(nil, 1, false)
		pass(40 * time.Second)
		until, err := q.Renew(held[0].Token)
		if err != nil || time.Until(until) != time.Minute {
			t.Fatalf("renewed until %s, %v", until, err)
		}
		pass(40 * time.Second)
		if got := ids(q.Take(nil, 1, false)); got != "" {
			t.Errorf("%q was given away under a renewed lock", got)
		}
		pass(20 * time.Second)
		if got := ids(q.Take(nil, 1, false)); got != "a" {
			t.Errorf("after the renewed lock: %q", got)
		}
	})
}

func TestExpiredMessagesGo(t *testing.T) {
	for _, deadLetter := range []bool{false, true} {
		cfg := config()
		cfg.DefaultTTL, cfg.DeadLetterExpired = time.Hour, deadLetter
		bubble(t, cfg, func(t *testing.T, q *Queue) {
			put(t, q, sent{id: "short", ttl: time.Minute}, sent{id: "default"}, sent{id: "too-long", ttl: 24 * time.Hour})
			pass(time.Minute)
			if c := q.Counts(); c.Active != 2 || (c.DeadLettered == 1) != deadLetter {
				t.Errorf("after a minute: %+v", c)
			}
			pass(time.Hour)
			c := q.Counts()
			if c.Active != 0 || (c.DeadLettered == 3) != deadLetter {
				t.Errorf("after an hour: %+v", c)
			}
			if deadLetter {
				d := q.DeadLetter().Peek(0, 1, nil)[0]
				content, err := d.Content()
				if err != nil || content.Application[PropDeadLetterReason] != "TTLExpiredException" {
					t.Errorf("the reason is %v, %v", content.Application[PropDeadLetterReason], err)
				}
			} else if used := q.quota.used.Load(); used != 0 {
				t.Errorf("%d bytes are still in use", used)
			}
		})
	}
}

func TestScheduledMessageComesInItsTimeAndLast(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "later", at: time.Now().Add(time.Hour)}, sent{id: "now"})
		if c := q.Counts(); c.Scheduled != 1 || c.Active != 1 {
			t.Errorf("counts are %+v", c)
		}
		pass(59 * time.Minute)
		put(t, q, sent{id: "meanwhile"})
		pass(time.Minute)
		got := q.Take(nil, 9, true)
		if ids(got) != "now meanwhile later" {
			t.Errorf("received %q", ids(got))
		}
	})
}

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

func TestSpaceIsGivenBack(t *testing.T) {
	cfg := config()
	cfg.MaxBytes = 1000
	bubble(t, cfg, func(t *testing.T, q *Queue) {
		big := sent{id: "a", body: strings.Repeat("x", 600)}
		put(t, q, big)
		err := q.Enqueue([]*Message{big.message(t)})
		var refused *amqp.Error
		if !errors.As(err, &refused) || refused.Condition != CondResourceLimit {
			t.Fatalf("into a full queue: %v", err)
		}
		d := q.Take(nil, 1, false)
		if err := q.Settle(d[0].Token, Settlement{Verb: DeadLetter}); err != nil {
			t.Fatal(err)
		}
		if err := q.Enqueue([]*Message{big.message(t)}); err == nil {
			t.Error("dead letters take no space")
		}
		q.DeadLetter().Take(nil, 1, true)
		put(t, q, big)
	})
}

func TestOrderSurvivesGivingBack(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		for i := range 6 {
			put(t, q, sent{id: fmt.Sprint(i)})
		}
		held := q.Take(nil, 4, false)
		for _, i := range []int{2, 0} {
			if err := q.Settle(held[i].Token, Settlement{Verb: Release}); err != nil {
				t.Fatal(err)
			}
		}
		if got := ids(q.Take(nil, 9, true)); got != "0 2 4 5" {
			t.Errorf("received %q", got)
		}
	})
}

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

func TestWatchersAreWoken(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		wake := make(chan struct{}, 1)
		stop := q.Watch(wake)
		put(t, q, sent{id: "a"})
		<-wake
		held := q.Take(nil, 1, false)
		pass(time.Minute)
		<-wake
		stop()
		put(t, q, sent{id: "b"})
		select {
		case <-wake:
			t.Error("woken after stop")
		default:
		}
		_ = held
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

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x00\x53\x72\xc1\x01\x00\x00\x53\x75\xa0\x05whole"))
	f.Add([]byte("\x00\x53\x73\x45\x00\x53\x74\xc1\x07\x02\xa1\x01k\x50\x01\x00\x53\x77\x40"))
	f.Add([]byte("\x00\x53\x74\x40\x00\x53\x77\x40"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ParseBatch(data, 10)
		m, err := Parse(data)
		if err != nil {
			return
		}
		// Whatever is stored can be given out, and be taken in again.
		m.add(map[string]any{"added": "x"})
		m.state, m.lockedUntil = Locked, 5
		d := m.delivery()
		d.stateful, d.lockAnnotation = true, true
		out, err := d.Append(nil)
		if err != nil {
			t.Fatalf("stored, but not to be given out: %v", err)
		}
		if _, err := Parse(out); err != nil {
			t.Fatalf("given out, but not to be taken in: %v", err)
		}
	})
}
