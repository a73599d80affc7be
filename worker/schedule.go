package worker

import "sync"

// schedule decides which event type a lane claims next. It lives one cycle at
// a time: begin fills it with the types that have something pending, next
// hands out rounds, done takes them back. A type is finished for the cycle
// when a claim came back short or MaxRounds are used; the others are not kept
// waiting for it.
//
// A second lane joins a type only once a claim of it came back full: a lone
// event costs one claim, not one a lane.
type schedule struct {
	maxRounds int

	mu     sync.Mutex
	cycle  int
	types  []*turn
	events int // claimed in this cycle
	// deepened is signalled when a type has become worth a second lane.
	deepened chan struct{}
}

func newSchedule(maxRounds, claimed int) *schedule {
	return &schedule{maxRounds: maxRounds, events: claimed, deepened: make(chan struct{}, 1)}
}

// turn is one event type's share of a cycle.
type turn struct {
	eventType string
	cursor    Cursor
	rounds    int // handed out
	batch     int // events a claim may take
	active    int // handed out and not back
	deep      bool
	finished  bool
	probe     bool // one small claim, because the last one could not be sent
}

func (t *turn) open(maxRounds int) bool {
	if t.probe {
		maxRounds = 1
	}
	return !t.finished && t.rounds < maxRounds && (t.deep || t.active == 0)
}

// round is the right to make one claim.
type round struct {
	turn      *turn
	eventType string
	after     Cursor
	batch     int
}

// begin starts a cycle with claims of batch events, or one small claim of the
// types that probe names, from where it says. Rounds of the last cycle that are still out do no
// harm: their turns are simply not looked at any more. No cursor survives; that
// a type was still deep when its rounds were used up does.
func (s *schedule) begin(types []string, batch int, probe func(eventType string) (Cursor, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deep := make(map[string]bool, len(s.types))
	for _, t := range s.types {
		deep[t.eventType] = t.deep && !t.finished
	}
	s.events = 0
	s.types = make([]*turn, len(types))
	for i := range types {
		// Another type is the first each time: where a rate lets few events through,
		// the first one takes them.
		t := types[(i+s.cycle)%len(types)]
		s.types[i] = &turn{eventType: t, batch: batch, deep: deep[t]}
		if probe == nil {
			continue
		}
		if from, is := probe(t); is {
			s.types[i].probe, s.types[i].batch, s.types[i].cursor = true, min(batch, probeBatch), from
		}
	}
	s.cycle++
}

// rest finishes the types that resting names for this cycle: their batches
// cannot or shall not go out.
func (s *schedule) rest(resting func(eventType string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.types {
		if resting(t.eventType) {
			t.finished = true
		}
	}
}

// next hands out a round of the type that has the fewest lanes on it, then the
// fewest rounds used, and passes by those that are to be held back. It returns
// false when the cycle is over, for now at least.
func (s *schedule) next(held func(eventType string) bool) (round, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *turn
	for _, t := range s.types {
		if !t.open(s.maxRounds) || held(t.eventType) {
			continue
		}
		if best == nil || t.active < best.active || (t.active == best.active && t.rounds < best.rounds) {
			best = t
		}
	}
	if best == nil {
		return round{}, false
	}
	best.rounds++
	best.active++
	return round{turn: best, eventType: best.eventType, after: best.cursor, batch: best.batch}, true
}

// done takes a round back with what it claimed. A claim that came back short
// finishes its type even while other lanes are on it: what it did not get,
// they hold.
func (s *schedule) done(r round, c Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.turn.active--
	s.events += len(c.Events)
	if !c.More {
		r.turn.finished = true
	} else if !r.turn.deep {
		r.turn.deep = true
		select {
		case s.deepened <- struct{}{}:
		default:
		}
	}
	if n := len(c.Events); n > 0 {
		if last := c.Events[n-1].ID; !r.turn.cursor.Set || last > r.turn.cursor.ID {
			r.turn.cursor = After(last)
		}
	}
}

// open says whether next would hand out a round.
func (s *schedule) open(held func(eventType string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.types {
		if t.open(s.maxRounds) && !held(t.eventType) {
			return true
		}
	}
	return false
}

// claimed is how many events this cycle's rounds brought so far.
func (s *schedule) claimed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}
