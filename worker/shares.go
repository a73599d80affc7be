package worker

import "sync"

// shares keeps one destination from taking every place of the worker: the
// batches for one that does not answer stay under way until their deadline, and
// the others must go on meanwhile. With a single destination there is nobody to
// leave a place to.
type shares struct {
	destination func(eventType string) string
	most        int // places of one destination

	mu      sync.Mutex
	several bool
	out     map[string]int
}

func newShares(destination func(string) string, places int) *shares {
	return &shares{destination: destination, most: max(1, places-1), out: make(map[string]int)}
}

// know says which event types there are.
func (s *shares) know(types []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.several = false
	for _, t := range types {
		s.several = s.several || s.destination(t) != s.destination(types[0])
	}
}

// full says whether a type's destination has all the places it may have.
func (s *shares) full(eventType string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.several && s.out[s.destination(eventType)] >= s.most
}

// take and give count a batch from before its claim until it is published.
func (s *shares) take(eventType string) { s.add(eventType, 1) }
func (s *shares) give(eventType string) { s.add(eventType, -1) }

func (s *shares) add(eventType string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.destination(eventType)
	if s.out[d] += n; s.out[d] <= 0 {
		delete(s.out, d)
	}
}
