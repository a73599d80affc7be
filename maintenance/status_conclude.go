package maintenance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

// conclude joins what was read.
func (s *Status) conclude(types map[string]*EventTypeStatus) {
	down := make(map[string]*DestinationStatus)
	leases, sources := make(map[float64]bool), make(map[string]bool)
	for _, w := range s.Workers {
		if !w.Live {
			continue
		}
		leases[w.LeaseSeconds], sources[w.Source] = true, true
		s.EventsPerSecond += w.EventsPerSecond
		for eventType, perSecond := range w.rates {
			ofType(types, eventType).EventsPerSecond += perSecond
		}
		for _, b := range w.Breakers {
			d := down[b.Destination]
			if d == nil {
				d = &DestinationStatus{Destination: b.Destination, State: b.State, Since: b.Since, Error: b.Error}
				down[b.Destination] = d
			}
			if worse(b.State, d.State) {
				d.State, d.Error = b.State, b.Error
			}
			if b.Since.Before(d.Since) {
				d.Since = b.Since
			}
			d.Failures += b.Failures
			d.EventTypes = append(d.EventTypes, b.EventTypes...)
			d.Workers = append(d.Workers, w.Owner)
		}
	}
	for _, d := range down {
		slices.Sort(d.EventTypes)
		d.EventTypes = slices.Compact(d.EventTypes)
		s.Destinations = append(s.Destinations, *d)
	}
	slices.SortFunc(s.Destinations, func(a, b DestinationStatus) int { return cmp.Compare(a.Destination, b.Destination) })
	for _, name := range slices.Sorted(maps.Keys(types)) {
		s.OldestPendingSeconds = max(s.OldestPendingSeconds, types[name].OldestSeconds)
		s.EventTypes = append(s.EventTypes, *types[name])
	}
	s.warn(leases, sources)
}

// unrouted are the event types that have something pending and that every living
// worker says it has no route for: workers look for such every half a minute.
func (s *Status) unrouted() (types []string) {
	for _, e := range s.EventTypes {
		living, lost := 0, 0
		for _, w := range s.Workers {
			if !w.Live {
				continue
			}
			living++
			if slices.Contains(w.unrouted, e.EventType) {
				lost++
			}
		}
		if e.Pending > 0 && living > 0 && lost == living {
			types = append(types, e.EventType)
		}
	}
	return types
}

// worse says that a destination in state a takes less than one in state b.
func worse(a, b worker.BreakerState) bool {
	rank := map[worker.BreakerState]int{worker.BreakerOpen: 3, worker.BreakerHalfOpen: 2, worker.BreakerRecovering: 1}
	return rank[a] > rank[b]
}

// warn says what a person should look at.
func (s *Status) warn(leases map[float64]bool, sources map[string]bool) {
	warn := func(format string, args ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...)) }
	for _, w := range s.Workers {
		if w.unreadable {
			warn("the breakers of %s cannot be read: it may be of another version (%s)", w.Owner, w.Version)
		}
	}
	for _, p := range s.Pauses {
		switch {
		case p.Scope == worker.ScopeAll && p.Name != "":
			warn("in %s_control is a row of the scope all with the name %q, which no command of outboxctl writes: it pauses everything, and resume does not end it. Delete the row", s.Table, p.Name)
		case !p.Scope.Known():
			warn("in %s_control is a row of the unknown scope %q: no worker of this version obeys it. It is of another version, or mistyped", s.Table, p.Scope)
		}
	}
	live, paused := 0, 0
	for _, w := range s.Workers {
		if w.Live {
			live++
		}
		if w.Live && w.Paused {
			paused++
		}
	}
	if live == 0 && (s.Pending > 0 || s.InFlight > 0) {
		warn("no worker lives, and what waits is %s", quantity.Of(s.Pending+s.InFlight, "event"))
	}
	if paused > 0 {
		warn("started with --paused and waiting: %d of %s; outboxctl resume --all --execute lets them begin", paused, quantity.Of(live, "living worker"))
	}
	for _, w := range s.Workers {
		if w.Live && w.Trouble != "" {
			warn("%s says: %s", w.Owner, w.Trouble)
		}
	}
	for _, eventType := range s.unrouted() {
		warn("no living worker has a route for the event type %q: its events wait until one does; add a route, or a default one, and restart the workers", eventType)
	}
	if len(leases) > 1 {
		warn("living workers have different leases: give all of them the same --lease")
	}
	if len(sources) > 1 {
		warn("living workers have different sources: the same event would get two MessageIDs, and duplicate detection would not see it")
	}
	overdue := 0
	for _, r := range s.Receipts {
		if r.LeaseLeftSeconds < -30 {
			overdue++
		}
	}
	if overdue > 0 {
		warn("long past the lease, and reaped by nobody: %s", quantity.Of(overdue, "claim"))
	}
	s.faults = len(s.Warnings)
	if s.Parked > 0 {
		warn("parked, waiting for a person: %s; outboxctl failed list --parked", quantity.Of(s.Parked, "event"))
	}
}
