package emulator

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// queueSource feeds a link from a queue or from one session of it.
type queueSource struct {
	link    *sender
	queue   *broker.Queue
	held    *broker.Session // nil without sessions
	unwatch func()
	taken   []broker.Delivery
	buf     []byte
	out     []outgoing
}

func watchQueue(q *broker.Queue, l *sender) *queueSource {
	return &queueSource{link: l, queue: q, unwatch: q.Watch(l.wake)}
}

func watchSession(held *broker.Session, q *broker.Queue, l *sender) *queueSource {
	s := watchQueue(q, l)
	s.held = held
	return s
}

func (s *queueSource) next(limit int) []outgoing {
	clear(s.taken)
	clear(s.out)
	s.taken, s.out, s.buf = s.taken[:0], s.out[:0], s.buf[:0]
	if s.held != nil {
		s.taken = s.held.Take(s.taken, limit, s.link.settled)
	} else {
		s.taken = s.queue.Take(s.taken, limit, s.link.settled)
	}
	for i := range s.taken {
		start := len(s.buf)
		var err error
		if s.buf, err = s.taken[i].Append(s.buf); err != nil {
			// Every message was walked when it was stored, so this is a bug here,
			// and one that a test should see.
			s.link.detachWith(s.link, amqp.Errorf(broker.CondInternal, "a stored message cannot be encoded: %s", err))
			return s.out
		}
		s.out = append(s.out, outgoing{message: s.buf[start:len(s.buf):len(s.buf)], token: s.taken[i].Token})
	}
	if cap(s.buf) > roomyBytes {
		s.buf = nil
	}
	return s.out
}

func (s *queueSource) close() {
	s.unwatch()
	if s.held != nil {
		s.held.Release()
	}
}

// settle settles a message that this source gave out.
func (s *queueSource) settle(token amqp.UUID, how broker.Settlement) error {
	return s.queue.Settle(token, how)
}

// replies feeds a link with the answers to requests.
type replies struct {
	link    *sender
	waiting []outgoing
}

func (r *replies) next(limit int) []outgoing {
	n := min(limit, len(r.waiting))
	out := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	return out
}

func (r *replies) close() { r.waiting = nil }

// add queues a reply. The connection's lock is held.
func (r *replies) add(message []byte) {
	r.waiting = append(r.waiting, outgoing{message: message})
	r.link.signal()
}
