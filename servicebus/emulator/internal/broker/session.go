package broker

import (
	"time"

	"github.com/tidwall/btree"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Session is a message session: messages with one session id, received in
// order by one receiver at a time. All of it is guarded by its queue.
type Session struct {
	queue       *Queue
	id          string
	ready       *btree.BTreeG[*Message]
	state       []byte
	held        bool
	lockedUntil int64
	lost        func()
}

// session finds the session or makes it.
func (q *Queue) session(id string) *Session {
	s, ok := q.sessions.Get(id)
	if !ok {
		s = &Session{queue: q, id: id, ready: newTree(func(a, b *Message) bool { return a.sequence < b.sequence })}
		q.sessions.Set(id, s)
	}
	return s
}

// Accept locks a session for one receiver: the one named, or with a nil id any
// that is free and has messages. It returns nil without an error where there
// is none now: watch the queue and ask again. lost is called, once and on a
// goroutine of its own, if the lock expires.
func (q *Queue) Accept(id *string, lost func()) (*Session, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now().UnixMilli()
	q.expire(now)
	var s *Session
	if id != nil {
		if s = q.session(*id); s.held {
			return nil, amqp.Errorf(CondSessionUnavailable, "The requested session %q cannot be accepted. "+
				"It may be locked by another receiver.", *id)
		}
	} else {
		q.sessions.Scan(func(_ string, candidate *Session) bool {
			if !candidate.held && candidate.ready.Len() > 0 {
				s = candidate
			}
			return s == nil
		})
	}
	if s == nil {
		return nil, nil
	}
	s.held, s.lost = true, lost
	s.prolong(now)
	return s, nil
}

func (s *Session) prolong(now int64) {
	s.lockedUntil = now + s.queue.cfg.LockDuration.Milliseconds()
	s.queue.fireAt(s.lockedUntil)
}

// ID is the session id.
func (s *Session) ID() string { return s.id }

// LockedUntil is when the lock ends unless it is renewed.
func (s *Session) LockedUntil() time.Time {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return time.UnixMilli(s.lockedUntil)
}

// Take is [Queue.Take] for the session.
func (s *Session) Take(into []Delivery, limit int, remove bool) []Delivery {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if !s.held {
		return into
	}
	return s.queue.take(into, s.ready, s, limit, remove)
}

// Release ends the lock. Messages that are still locked are free again, and
// their deliveries do not count.
// https://learn.microsoft.com/azure/service-bus-messaging/message-sessions#impact-of-delivery-count
func (s *Session) Release() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.free(false)
	s.queue.wake()
}

// free gives up the lock and what was locked under it.
func (s *Session) free(countDelivery bool) {
	if !s.held {
		return
	}
	s.held, s.lost, s.lockedUntil = false, nil, 0
	for _, m := range s.queue.locked {
		if m.holder != s {
			continue
		}
		s.queue.unlock(m)
		if countDelivery {
			m.deliveries++
		}
		s.queue.giveBack(m, m.wasDeferred)
	}
	if s.ready.Len() == 0 && s.state == nil {
		s.queue.sessions.Delete(s.id)
	}
}

// held finds a session that a receiver holds.
func (q *Queue) held(id string) (*Session, error) {
	s, ok := q.sessions.Get(id)
	if !ok || !s.held {
		return nil, amqp.Errorf(CondSessionLockLost, "The session lock on %q has expired or was never taken.", id)
	}
	return s, nil
}

// RenewSession prolongs the lock of a session and returns until when.
func (q *Queue) RenewSession(id string) (time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.held(id)
	if err != nil {
		return time.Time{}, err
	}
	s.prolong(time.Now().UnixMilli())
	for _, m := range q.locked {
		if m.holder == s {
			m.lockedUntil = s.lockedUntil
		}
	}
	return time.UnixMilli(s.lockedUntil), nil
}

// SessionState is what the session's receiver stored, nil for nothing.
func (q *Queue) SessionState(id string) ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.held(id)
	if err != nil {
		return nil, err
	}
	return s.state, nil
}

// SetSessionState stores state with the session; nil clears it.
func (q *Queue) SetSessionState(id string, state []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.held(id)
	if err != nil {
		return err
	}
	s.state = state
	return nil
}

// Held is the session a receiver holds under this id, nil if none does.
func (q *Queue) Held(id string) *Session {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.held(id)
	if err != nil {
		return nil
	}
	return s
}

// expireSessions frees the sessions whose lock is over and returns whom to
// tell.
func (q *Queue) expireSessions(now int64) (lost []func()) {
	var over []*Session
	q.sessions.Scan(func(_ string, s *Session) bool {
		if s.held && s.lockedUntil <= now {
			over = append(over, s)
		}
		return true
	})
	for _, s := range over {
		if s.lost != nil {
			lost = append(lost, s.lost)
		}
		s.free(true)
	}
	return lost
}

// fireAtSessions sets the timer for the session locks.
func (q *Queue) fireAtSessions() {
	q.sessions.Scan(func(_ string, s *Session) bool {
		if s.held {
			q.fireAt(s.lockedUntil)
		}
		return true
	})
}
