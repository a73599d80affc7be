package broker

import (
	"time"

	"github.com/tidwall/btree"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// byTime sorts messages by a time of theirs, then by number.
func byTime(at func(*Message) int64) func(a, b *Message) bool {
	return func(a, b *Message) bool {
		if at(a) != at(b) {
			return at(a) < at(b)
		}
		return a.sequence < b.sequence
	}
}

// setTimer has what is scheduled first passed on in its time. The caller holds
// t.mu.
func (t *Topic) setTimer() {
	if m, ok := t.scheduled.Min(); ok && !t.closed {
		t.timer.Reset(time.Until(time.UnixMilli(m.scheduled)))
	}
}

// onTimer passes on what is due. A topic is not full for what it holds already.
func (t *Topic) onTimer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	now := time.Now().UnixMilli()
	for {
		m, ok := t.scheduled.Min()
		if !ok || m.scheduled > now {
			break
		}
		t.scheduled.Delete(m)
		t.quota.release(m.size)
		copies, size, err := t.fanOut([]*Message{m})
		if err != nil {
			continue // cannot be: it was tried when the message came
		}
		t.quota.release(-size)
		for i, s := range t.subscriptions {
			s.queue.accept(copies[i], now)
		}
	}
	t.setTimer()
}

// Cancel removes scheduled messages. With a number that is no scheduled
// message's it removes none.
func (t *Topic) Cancel(sequences []int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cancel(t.scheduled, sequences, t.quota)
}

// Cancel removes scheduled messages. With a number that is no scheduled
// message's it removes none.
func (q *Queue) Cancel(sequences []int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return cancel(q.scheduled, sequences, q.quota)
}

func cancel(scheduled *btree.BTreeG[*Message], sequences []int64, space *quota) error {
	wanted := make(map[int64]*Message, len(sequences))
	for _, n := range sequences {
		wanted[n] = nil
	}
	scheduled.Scan(func(m *Message) bool {
		if _, ok := wanted[m.sequence]; ok {
			wanted[m.sequence] = m
		}
		return true
	})
	for n, m := range wanted {
		if m == nil {
			return amqp.Errorf(CondMessageNotFound, "The message %d is not scheduled.", n)
		}
	}
	for _, m := range wanted {
		scheduled.Delete(m)
		space.release(m.size)
	}
	return nil
}
