package storage

// breakDeadlocks ends every deadlock that w, the newest wait, closes, by
// refusing one request of each. New edges of the wait-for graph all touch the
// session that begins to wait, so no other moment needs to be watched.
func (m *lockManager) breakDeadlocks(w *waiter) {
	s := w.owner.session
	for s.waiting == w {
		cycle := m.cycle(s)
		if cycle == nil {
			return
		}
		m.meters.deadlocks.Add(1)
		m.refuse(victim(cycle), ErrDeadlock)
	}
}

// cycle finds sessions that wait for each other in a ring through start, start
// first.
func (m *lockManager) cycle(start *Session) []*waiter {
	seen := map[*Session]bool{}
	var path []*waiter
	var follow func(s *Session) bool
	follow = func(s *Session) bool {
		if s.waiting == nil || seen[s] {
			return false
		}
		seen[s] = true
		path = append(path, s.waiting)
		var blockers []*Session
		m.blocked(s.waiting, func(b *Session) { blockers = append(blockers, b) })
		for _, b := range blockers {
			if b == start || follow(b) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if !follow(start) {
		return nil
	}
	return path
}

// victim is the session of the lowest DEADLOCK_PRIORITY and, of several, the
// one that is cheapest to roll back (SET DEADLOCK_PRIORITY in sql-docs). Of
// equals it is the one whose wait closed the ring.
func victim(cycle []*waiter) *waiter {
	v := cycle[0]
	for _, w := range cycle[1:] {
		if w.priority < v.priority || w.priority == v.priority && w.cost < v.cost {
			v = w
		}
	}
	return v
}
