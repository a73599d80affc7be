package broker

import (
	"maps"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Verb is what a receiver does with a message that it holds.
type Verb uint8

// What a receiver can do. Release gives a message back without counting the
// delivery; Abandon counts it.
const (
	Complete Verb = iota
	Abandon
	Release
	Defer
	DeadLetter
)

// Settlement is how a locked message is settled.
type Settlement struct {
	Verb Verb
	// Properties are set among the message's application properties.
	Properties map[string]any
}

// Application properties of a dead-lettered message.
const (
	PropDeadLetterReason      = "DeadLetterReason"
	PropDeadLetterDescription = "DeadLetterErrorDescription"
)

// Settle settles the message locked by token.
func (q *Queue) Settle(token amqp.UUID, s Settlement) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, ok := q.locked[token]
	if !ok {
		return lockLost(q.cfg.RequiresSession)
	}
	wasDeferred := m.wasDeferred
	q.unlock(m)
	m.add(s.Properties)
	switch s.Verb {
	case Complete:
		q.quota.release(m.size)
	case Release:
		q.giveBack(m, wasDeferred)
	case Abandon:
		m.deliveries++
		q.giveBack(m, wasDeferred)
	case Defer:
		q.putAside(m)
	case DeadLetter:
		q.bury(m)
	}
	return nil
}

func lockLost(session bool) *amqp.Error {
	if session {
		return amqp.Errorf(CondSessionLockLost, "The session lock has expired or was lost, or the message was settled already.")
	}
	return amqp.Errorf(CondMessageLockLost, "The lock supplied is invalid. "+
		"Either the lock expired, or the message has already been removed from the queue.")
}

// giveBack returns a message that was locked to where it came from, or, its
// deliveries used up, to the dead-letter queue.
func (q *Queue) giveBack(m *Message, deferred bool) {
	if q.deadLetter != nil && m.deliveries >= q.cfg.MaxDeliveryCount {
		m.add(map[string]any{
			PropDeadLetterReason:      "MaxDeliveryCountExceeded",
			PropDeadLetterDescription: "Message could not be consumed after the maximum number of delivery attempts.",
		})
		q.bury(m)
		return
	}
	if deferred {
		q.putAside(m)
		return
	}
	q.activate(m)
	q.wake()
}

func (q *Queue) putAside(m *Message) {
	m.state = Deferred
	m.wasDeferred = true
	q.deferred[m.sequence] = m
}

// bury moves a message that is in no list of q to the dead-letter queue. On
// the dead-letter queue itself it stays where it is.
func (q *Queue) bury(m *Message) {
	dead := q.deadLetter
	if dead == nil {
		q.activate(m)
		q.wake()
		return
	}
	m.expires, m.wasDeferred = 0, false
	dead.mu.Lock()
	defer dead.mu.Unlock()
	dead.enqueued++
	dead.activate(m)
	dead.wake()
}

// add sets application properties. The old map may be in someone's hands, so
// it is replaced.
func (m *Message) add(properties map[string]any) {
	if len(properties) == 0 {
		return
	}
	merged := maps.Clone(properties)
	for name, v := range m.added {
		if _, newer := merged[name]; !newer {
			merged[name] = v
		}
	}
	m.added = merged
}

// Renew prolongs the lock of one message and returns until when.
func (q *Queue) Renew(token amqp.UUID) (time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, ok := q.locked[token]
	if !ok {
		return time.Time{}, lockLost(q.cfg.RequiresSession)
	}
	if m.holder == nil {
		q.locks.Delete(m)
		m.lockedUntil = time.Now().UnixMilli() + q.cfg.LockDuration.Milliseconds()
		q.locks.Set(m)
		q.fireAt(m.lockedUntil)
	}
	return time.UnixMilli(m.lockedUntil), nil
}

// TakeDeferred hands out deferred messages by their numbers, locked, or gone
// at once with remove. With a number that is no deferred message's it hands
// out none.
func (q *Queue) TakeDeferred(sequences []int64, session *Session, remove bool) ([]Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range sequences {
		if m, ok := q.deferred[n]; !ok || (session != nil && m.session != session.id) {
			return nil, amqp.Errorf(CondMessageNotFound, "Failed to lock one or more specified messages. "+
				"The message %d does not exist or is not deferred.", n)
		}
	}
	now := time.Now().UnixMilli()
	var out []Delivery
	for _, n := range sequences {
		m, ok := q.deferred[n]
		if !ok {
			continue // named twice
		}
		delete(q.deferred, n)
		if remove {
			q.quota.release(m.size)
		} else {
			q.lock(m, session, now)
		}
		d := m.delivery()
		d.stateful, d.lockAnnotation = true, !remove
		d.State = Deferred
		out = append(out, d)
	}
	return out, nil
}
