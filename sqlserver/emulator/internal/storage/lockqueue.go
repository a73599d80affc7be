package storage

import (
	"context"
	"time"
)

// waiter is a request in a resource's queue. A session has one at a time.
type waiter struct {
	owner *lockOwner
	on    lockTarget
	// want is the mode that the owner will hold, what it holds already included.
	want LockMode
	// converts is the lock that the request adds to, nil for a new one.
	converts *heldLock
	next     *waiter
	// low is a request at low priority: it waits for all the others, and nobody
	// for it.
	low bool

	// priority and cost choose the victim of a deadlock. They are copied when
	// the wait begins, because the session's own goroutine writes them.
	priority, cost int

	since time.Time

	granted grant
	done    chan error // one result
}

// enqueue puts a request into its resource's queue: conversions before new
// requests, otherwise in the order of arrival.
func (m *lockManager) enqueue(o *lockOwner, on lockTarget, mode LockMode) *waiter {
	r := on.lockable()
	w := &waiter{
		owner: o, on: on, want: mode, done: make(chan error, 1), since: time.Now(),
		priority: o.session.DeadlockPriority,
	}
	if tx := o.session.txn; tx != nil {
		w.cost = len(tx.changes)
	}
	for h := r.holders; h != nil; h = h.nextHolder {
		if h.owner == o {
			w.converts = h
			w.want |= h.mode
		}
	}
	at := &r.queue
	for *at != nil && (w.converts == nil || (*at).converts != nil) {
		at = &(*at).next
	}
	w.next, *at = *at, w
	o.session.waiting = w
	m.meters.lockWaits.Add(1)
	return w
}

// dequeue takes a request out of its queue.
func (m *lockManager) dequeue(w *waiter) {
	for at := &w.on.lockable().queue; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			break
		}
	}
	w.owner.session.waiting = nil
	waited := time.Since(w.since)
	w.owner.session.waited += waited
	if w.low {
		m.lowWaits.add(w.want, waited)
		return
	}
	m.waits.add(w.want, waited)
	countWait(w.on, waited)
}

// await sleeps until w is granted, refused or out of time.
func (m *lockManager) await(ctx context.Context, w *waiter, timeout time.Duration) (grant, error) {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	var cause error
	select {
	case err := <-w.done:
		return w.granted, err
	case <-ctx.Done():
		cause = ctx.Err()
	case <-expired:
		cause = ErrLockTimeout
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.owner.session.waiting != w {
		// Decided in the meantime: the lock is ours already, or we are a victim.
		return w.granted, <-w.done
	}
	m.refuse(w, cause)
	if cause == ErrLockTimeout {
		m.meters.lockTimeouts.Add(1)
	}
	return grant{}, <-w.done
}

// refuse ends a wait with an error; whoever queued behind it may go now.
func (m *lockManager) refuse(w *waiter, err error) {
	m.dequeue(w)
	w.done <- err
	m.promote(w.on)
}

// promote grants what the queue of a target allows, in its order: a request
// goes when it conflicts neither with a lock of another session nor with a
// request in front of it.
func (m *lockManager) promote(on lockTarget) {
	r := on.lockable()
	for w := r.queue; w != nil; {
		next := w.next
		if !m.blocked(w, nil) {
			m.dequeue(w)
			w.granted = grant{held: w.converts, waited: true}
			if w.converts != nil {
				w.converts.mode = w.want
			} else {
				w.granted.held, w.granted.fresh = w.owner.add(on, w.want), true
			}
			w.done <- nil
		}
		w = next
	}
}

// blocked says whether w must wait. It calls visit, where given, with every
// session that w waits for.
func (m *lockManager) blocked(w *waiter, visit func(*Session)) bool {
	r := w.on.lockable()
	blocked := false
	by := func(s *Session, mode LockMode) {
		if s != w.owner.session && w.want.conflicts(mode) {
			blocked = true
			if visit != nil {
				visit(s)
			}
		}
	}
	for h := r.holders; h != nil; h = h.nextHolder {
		by(h.owner.session, h.mode)
	}
	for other := r.queue; other != nil && (other != w || w.low); other = other.next {
		if !other.low {
			by(other.owner.session, other.want)
		}
	}
	return blocked
}
