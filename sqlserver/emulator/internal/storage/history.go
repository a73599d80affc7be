package storage

import (
	"sync"
	"sync/atomic"
)

// history is the commit clock, the snapshots that look back from it, and what
// committed transactions left behind for them: superseded versions and ghosts.
// A transaction's leftovers go as soon as every snapshot is as young as its
// commit, which is at the commit itself when no statement runs.
type history struct {
	clock atomic.Uint64

	mu sync.Mutex
	// oldest to newest; a snapshot is never older than the one before it.
	first, last *snapshot
	// leftovers are in the order of their commits.
	leftovers []leftover
}

// snapshot is a moment of the commit clock that somebody reads at.
type snapshot struct {
	at         uint64
	taken      bool
	prev, next *snapshot
}

// leftover is what one transaction's changes superseded.
type leftover struct {
	at      uint64
	by      *txnStatus
	changes []change
}

// take makes s look at now.
func (h *history) take(s *snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*s = snapshot{at: h.clock.Load(), taken: true, prev: h.last}
	if h.last != nil {
		h.last.next = s
	} else {
		h.first = s
	}
	h.last = s
}

// end lets s go, and cleans up what only s still needed.
func (h *history) end(s *snapshot) {
	if !s.taken {
		return
	}
	h.mu.Lock()
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		h.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		h.last = s.prev
	}
	*s = snapshot{}
	ready := h.ready()
	h.mu.Unlock()
	cleanUp(ready)
}

// commit makes everything that by did visible, at one moment, and cleans up.
func (h *history) commit(by *txnStatus, changes []change) {
	h.mu.Lock()
	at := h.clock.Load() + 1
	by.committed.Store(at)
	h.clock.Store(at)
	h.leftovers = append(h.leftovers, leftover{at, by, changes})
	ready := h.ready()
	h.mu.Unlock()
	cleanUp(ready)
}

// leave adds changes whose clean-up was missed because the row was in use.
func (h *history) leave(by *txnStatus, changes []change) {
	h.mu.Lock()
	h.leftovers = append(h.leftovers, leftover{h.clock.Load(), by, changes})
	ready := h.ready()
	h.mu.Unlock()
	cleanUp(ready)
}

// ready takes out the leftovers that no snapshot needs.
func (h *history) ready() []leftover {
	n := 0
	for n < len(h.leftovers) && (h.first == nil || h.leftovers[n].at <= h.first.at) {
		n++
	}
	if n == 0 {
		return nil
	}
	ready := h.leftovers[:n:n]
	if h.leftovers = h.leftovers[n:]; len(h.leftovers) == 0 {
		h.leftovers = nil
	}
	return ready
}

// cleanUpStep is after how many changes the clean-up lets others at the table.
const cleanUpStep = 64

// cleanUp cuts superseded versions off and takes ghosts out of the trees.
func cleanUp(ready []leftover) {
	for _, l := range ready {
		for len(l.changes) > 0 {
			t := l.changes[0].table
			n := 1
			for n < len(l.changes) && n < cleanUpStep && l.changes[n].table == t {
				n++
			}
			if t != nil {
				t.cleanUp(l.by, l.changes[:n])
			}
			l.changes = l.changes[n:]
		}
	}
	clear(ready)
}

func (t *Table) cleanUp(by *txnStatus, changes []change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	versions, ghosts := 0, 0
	for i := range changes {
		c := &changes[i]
		if c.version != nil {
			// Cut link by link, so that a version is counted once whichever of its
			// successors is cleaned up first.
			for v := c.version; v.prev != nil; {
				v, v.prev = v.prev, nil
				versions++
			}
		}
		for _, m := range c.moves {
			// It may have been revived since, or emptied again by a later
			// transaction, whose leftover it is then.
			if e := m.from; e != nil && e.ghost == by && !e.removed {
				e.index.remove(e)
				e.rec.ghosts--
				ghosts++
			}
		}
	}
	t.db.meters.versions.Add(-int64(versions))
	t.db.meters.ghosts.Add(-int64(ghosts))
}
