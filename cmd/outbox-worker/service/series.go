package service

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"azsqloutbox/worker"
)

const (
	// ownSeries is how many event types have series of their own, beside those that
	// a route names. Whoever writes events chooses their types, an id in them makes
	// thousands, and a series costs memory here and in whatever scrapes. A hundred is
	// more than a dashboard can show, and some five hundred lines a scrape.
	ownSeries = 100
	// otherTypes is the event type of the series that stands for all the rest. It is
	// the word that OpenTelemetry has for a value without one of its own
	// (opentelemetry.io/docs/specs/semconv/http, http.request.method), and unlikely
	// to be an event type.
	otherTypes = "_OTHER"
)

// named are the event types that have counters of their own: those of routes, and
// the first ownSeries others that come. A counter may not change its name, so
// they stay. It may be used from many goroutines.
type named struct {
	mu    sync.Mutex
	types map[string]bool
	free  int
}

func newNamed(routed []string) *named {
	n := &named{types: make(map[string]bool, len(routed)), free: ownSeries}
	for _, t := range routed {
		n.types[t] = true
	}
	return n
}

// label is what a counter calls an event type.
func (n *named) label(eventType string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.types[eventType] {
		if n.free == 0 {
			return otherTypes
		}
		n.free--
		n.types[eventType] = true
	}
	return eventType
}

// shownTypes is the backlog of event types as metrics and page have it.
type shownTypes struct {
	Own    []worker.TypeBacklog
	Others otherBacklog
	// unrouted are those that no route names, of Own and of the others.
	unrouted map[string]bool
}

// otherBacklog sums up the event types without a line of their own.
type otherBacklog struct {
	Types            int
	Pending          int64
	Capped           bool // more wait than Pending says
	OldestAge        time.Duration
	routed, unrouted int64 // parts of Pending
}

// picker chooses the event types that have a line of their own: those of routes,
// and of the others the ownSeries that have been waiting longest, which is what a
// person is woken for. One that is chosen stays until another's events are twice as
// old as its own, or two that are as old as each other would change places with
// every count, and an alert by event type would begin anew each time.
type picker struct {
	routed map[string]bool
	picked map[string]bool
}

func newPicker(routed []string) *picker {
	p := &picker{routed: make(map[string]bool, len(routed))}
	for _, t := range routed {
		p.routed[t] = true
	}
	return p
}

func (p *picker) pick(types []worker.TypeBacklog, unrouted []string) shownTypes {
	s := shownTypes{unrouted: make(map[string]bool, len(unrouted))}
	for _, t := range unrouted {
		s.unrouted[t] = true
	}
	rest := slices.DeleteFunc(slices.Clone(types), func(t worker.TypeBacklog) bool { return p.routed[t.EventType] })
	slices.SortStableFunc(rest, func(a, b worker.TypeBacklog) int {
		return cmp.Or(cmp.Compare(p.weight(b), p.weight(a)), cmp.Compare(b.Pending, a.Pending), cmp.Compare(a.EventType, b.EventType))
	})
	p.picked = make(map[string]bool, ownSeries)
	for _, t := range rest[:min(len(rest), ownSeries)] {
		p.picked[t.EventType] = true
	}
	for _, t := range types {
		if p.routed[t.EventType] || p.picked[t.EventType] {
			s.Own = append(s.Own, t)
			continue
		}
		s.Others.Types++
		s.Others.Pending += t.Pending
		s.Others.Capped = s.Others.Capped || t.Capped
		s.Others.OldestAge = max(s.Others.OldestAge, t.OldestAge)
		if s.unrouted[t.EventType] {
			s.Others.unrouted += t.Pending
		} else {
			s.Others.routed += t.Pending
		}
	}
	return s
}

// weight is a type's age in seconds, counted twice for one that is chosen; a second
// on top of that keeps its place while nothing of it waits.
func (p *picker) weight(t worker.TypeBacklog) float64 {
	if p.picked[t.EventType] {
		return 2*t.OldestAge.Seconds() + 1
	}
	return t.OldestAge.Seconds()
}
