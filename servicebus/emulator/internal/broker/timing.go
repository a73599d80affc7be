package broker

import (
	"time"

	"github.com/tidwall/btree"
)

// fireAt sees to it that the timer fires at the latest at the given time. The
// caller holds q.mu.
func (q *Queue) fireAt(at int64) {
	if q.closed || (q.timerAt != 0 && q.timerAt <= at) {
		return
	}
	q.timerAt = at
	q.timer.Reset(time.Until(time.UnixMilli(at)))
}

// onTimer does all that is due: locks that end, messages whose time comes or
// is over.
func (q *Queue) onTimer() {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return
	}
	q.timerAt = 0
	now := time.Now().UnixMilli()
	q.expireLocks(now)
	lost := q.expireSessions(now)
	for {
		m, ok := q.scheduled.Min()
		if !ok || m.scheduled > now {
			break
		}
		q.scheduled.Delete(m)
		q.enqueueNow(m, now)
	}
	q.expire(now)
	for _, tree := range []*btree.BTreeG[*Message]{q.locks, q.scheduled, q.expiring} {
		if m, ok := tree.Min(); ok {
			q.fireAt(q.dueAt(m))
		}
	}
	q.fireAtSessions()
	q.wake()
	q.mu.Unlock()

	for _, tell := range lost {
		tell()
	}
}

// dueAt is the time by which m is sorted, by what it waits for.
func (q *Queue) dueAt(m *Message) int64 {
	switch m.state {
	case Locked:
		return m.lockedUntil
	case Scheduled:
		return m.scheduled
	default:
		return m.expires
	}
}

func (q *Queue) expireLocks(now int64) {
	for {
		m, ok := q.locks.Min()
		if !ok || m.lockedUntil > now {
			return
		}
		q.unlock(m)
		m.deliveries++
		q.giveBack(m, m.wasDeferred)
	}
}

// expire removes active messages whose time to live is over.
func (q *Queue) expire(now int64) {
	for {
		m, ok := q.expiring.Min()
		if !ok || m.expires > now {
			return
		}
		q.expiring.Delete(m)
		q.ready(m).Delete(m)
		if q.cfg.DeadLetterExpired && q.deadLetter != nil {
			m.add(map[string]any{
				PropDeadLetterReason:      "TTLExpiredException",
				PropDeadLetterDescription: "The message expired and was dead lettered.",
			})
			q.bury(m)
		} else {
			q.quota.release(m.size)
		}
	}
}
