package broker

import (
	"cmp"
	"slices"
)

// Counts is what a queue holds at one moment.
type Counts struct {
	// Active counts the locked ones as well, as the service does.
	Active       int64
	Locked       int64
	Deferred     int64
	Scheduled    int64
	DeadLettered int64
	// Enqueued is how many messages were ever taken, and Duplicates how many
	// duplicate detection has dropped.
	Enqueued   int64
	Duplicates int64
}

// Counts says what the queue holds.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := Counts{
		Active:     int64(q.active.Len() + len(q.locked)),
		Locked:     int64(len(q.locked)),
		Deferred:   int64(len(q.deferred)),
		Scheduled:  int64(q.scheduled.Len()),
		Enqueued:   q.enqueued,
		Duplicates: q.duplicates,
	}
	q.sessions.Scan(func(_ string, s *Session) bool {
		c.Active += int64(s.ready.Len())
		return true
	})
	if q.deadLetter != nil {
		c.DeadLettered = q.deadLetter.Counts().Active
	}
	return c
}

// Peek returns up to limit messages in whatever state, by number, from the
// given number on; with a session only its messages.
func (q *Queue) Peek(from int64, limit int, session *string) []Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	var found []Delivery
	see := func(m *Message) {
		if m.sequence >= from && (session == nil || m.session == *session) {
			d := m.delivery()
			d.stateful = true
			found = append(found, d)
		}
	}
	// The active ones come in order, so limit of them are enough.
	ascend := func(m *Message) bool {
		see(m)
		return len(found) < limit
	}
	pivot := &Message{sequence: from}
	if q.cfg.RequiresSession {
		q.sessions.Scan(func(_ string, s *Session) bool {
			left := limit
			s.ready.Ascend(pivot, func(m *Message) bool {
				see(m)
				left--
				return left > 0
			})
			return true
		})
	} else {
		q.active.Ascend(pivot, ascend)
	}
	for _, m := range q.locked {
		see(m)
	}
	for _, m := range q.deferred {
		see(m)
	}
	q.scheduled.Scan(func(m *Message) bool { see(m); return true })
	slices.SortFunc(found, func(a, b Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return found[:min(limit, len(found))]
}

// Counts has what is scheduled in a topic and how many duplicates it dropped;
// the rest is in its subscriptions.
func (t *Topic) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Counts{Scheduled: int64(t.scheduled.Len()), Enqueued: t.enqueued, Duplicates: t.duplicates}
}
