package storage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lockManager grants locks. One mutex guards all of it: a request that need
// not wait holds it for some ten nanoseconds, and deadlock detection sees a
// picture that stands still.
type lockManager struct {
	mu       sync.Mutex
	meters   *meters
	sessions map[*Session]struct{}
	apps     map[string]*appResource
	// names counts the locked names of objects among apps.
	names    atomic.Int64
	waits    waitMeters
	lowWaits waitMeters
}

// resource is what a lock is taken on. It sits inside the table, index entry
// or application resource itself, so that no lookup leads to it.
type resource struct {
	holders *heldLock
	queue   *waiter
}

// lockTarget is the thing a resource sits in.
type lockTarget interface {
	lockable() *resource
	describe(*LockInfo)
}

// heldLock is one owner's lock on one resource.
type heldLock struct {
	owner *lockOwner
	on    lockTarget
	mode  LockMode
	// taken counts the AppLocks that AppUnlock must give back.
	taken int

	nextHolder           *heldLock // of the resource
	prevOwned, nextOwned *heldLock // of the owner
}

// lockOwner is a transaction or, for application locks, a session. Locks of
// the owners of one session never conflict.
type lockOwner struct {
	session *Session
	held    *heldLock
}

// grant is the answer to a request that was granted.
type grant struct {
	held *heldLock
	// fresh says that the owner had no lock on the resource before.
	fresh bool
	// waited says that the request had to queue: what was read before it is old.
	waited bool
}

// try grants the lock if that is possible at once.
func (m *lockManager) try(o *lockOwner, on lockTarget, mode LockMode) (grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grantNow(o, on, mode)
}

// acquire waits for the lock, at most timeout (Forever has no bound). It
// returns ErrLockTimeout, ErrDeadlock or the context's error.
func (m *lockManager) acquire(ctx context.Context, o *lockOwner, on lockTarget, mode LockMode, timeout time.Duration) (grant, error) {
	m.mu.Lock()
	if g, ok := m.grantNow(o, on, mode); ok {
		m.mu.Unlock()
		return g, nil
	}
	if timeout == 0 {
		m.mu.Unlock()
		m.meters.lockTimeouts.Add(1)
		return grant{}, ErrLockTimeout
	}
	w := m.enqueue(o, on, mode)
	m.breakDeadlocks(w)
	m.mu.Unlock()
	return m.await(ctx, w, timeout)
}

// grantNow grants a lock that conflicts with no other session's lock and,
// unless it converts one that is held, with nothing that queues: later
// requests do not overtake.
func (m *lockManager) grantNow(o *lockOwner, on lockTarget, mode LockMode) (grant, bool) {
	r := on.lockable()
	var held *heldLock
	others := LockMode(0)
	for h := r.holders; h != nil; h = h.nextHolder {
		switch {
		case h.owner == o:
			held = h
		case h.owner.session != o.session:
			others |= h.mode
		}
	}
	if held != nil {
		if held.mode.covers(mode) {
			return grant{held: held}, true
		}
		if (held.mode | mode).conflicts(others) {
			return grant{}, false
		}
		held.mode |= mode
		return grant{held: held}, true
	}
	if mode.conflicts(others) {
		return grant{}, false
	}
	for w := r.queue; w != nil; w = w.next {
		if !w.low && w.owner.session != o.session && mode.conflicts(w.want) {
			return grant{}, false
		}
	}
	return grant{held: o.add(on, mode), fresh: true}, true
}

// add records a granted lock.
func (o *lockOwner) add(on lockTarget, mode LockMode) *heldLock {
	h := o.session.spare.take()
	h.owner, h.on, h.mode = o, on, mode
	r := on.lockable()
	h.nextHolder, r.holders = r.holders, h
	h.nextOwned = o.held
	if o.held != nil {
		o.held.prevOwned = h
	}
	o.held = h
	return h
}

// release gives back one lock, if h still is that lock: an escalation may have
// released it in between, or a write have made an X lock of it.
func (m *lockManager) release(h *heldLock, on lockTarget, mode LockMode) {
	if h == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.on == on && h.mode == mode {
		m.drop(h)
	}
}

// lower takes modes away from a lock; without any left it is released.
func (m *lockManager) lower(h *heldLock, to LockMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to == 0 {
		m.drop(h)
		return
	}
	h.mode = to
	m.promote(h.on)
}

// releaseAll gives back everything of an owner.
func (m *lockManager) releaseAll(o *lockOwner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for o.held != nil {
		m.drop(o.held)
	}
}

// releaseRows gives back an owner's row locks on one table.
func (m *lockManager) releaseRows(o *lockOwner, t *Table) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := o.held; h != nil; {
		next := h.nextOwned
		if e, ok := h.on.(*entry); ok && e.index.table == t {
			m.drop(h)
		}
		h = next
	}
}

// drop unlinks a lock and lets in who waited for it.
func (m *lockManager) drop(h *heldLock) {
	o, on := h.owner, h.on
	r := on.lockable()
	for at := &r.holders; ; at = &(*at).nextHolder {
		if *at == h {
			*at = h.nextHolder
			break
		}
	}
	if h.prevOwned != nil {
		h.prevOwned.nextOwned = h.nextOwned
	} else {
		o.held = h.nextOwned
	}
	if h.nextOwned != nil {
		h.nextOwned.prevOwned = h.prevOwned
	}
	o.session.spare.put(h)
	if app, ok := on.(*appResource); ok {
		m.unref(app)
	}
	m.promote(on)
}

// heldPool keeps a session's released locks for its next ones. The manager's
// mutex guards it.
type heldPool struct {
	free *heldLock
	size int
}

const (
	heldBlock = 64
	// maxSpare bounds what a session keeps after a huge transaction: a few
	// claims of 500 rows with four locks each.
	maxSpare = 8192
)

func (p *heldPool) take() *heldLock {
	if p.free == nil {
		block := make([]heldLock, heldBlock)
		for i := range block {
			p.put(&block[i])
		}
	}
	h := p.free
	p.free = h.nextOwned
	p.size--
	h.nextOwned = nil
	return h
}

func (p *heldPool) put(h *heldLock) {
	*h = heldLock{}
	if p.size < maxSpare {
		h.nextOwned, p.free = p.free, h
		p.size++
	}
}
