package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"azsqloutbox/worker"
)

// lookPatience is how long a pause looks for what may be wrong with it.
const lookPatience = 10 * time.Second

// look finds the other pauses in force, and reasons why this one may not do what
// was meant. What it cannot read is a warning, for the pause itself holds.
func (p Pause) look(ctx context.Context, c *connection, r *PauseResult, known bool) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var s Status
	err := c.do(ctx, "read the pauses of "+p.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		return s.readPauses(ctx, conn, p.Target, nil)
	})
	if err != nil {
		r.Warnings = append(r.Warnings, "the other pauses could not be read: "+err.Error())
	}
	for _, other := range s.Pauses {
		if other.Scope != p.Scope || other.Name != p.Name {
			r.StillPaused = append(r.StillPaused, other)
		}
	}
	if p.Resume {
		// Rows are found to the letter, and a worker does not care about the case of
		// an entity.
		for _, other := range r.StillPaused {
			if !r.WasPaused && other.Scope == p.Scope && strings.EqualFold(other.Name, p.Name) {
				r.Warnings = append(r.Warnings, fmt.Sprintf("did you mean %s?", controlled(other.Scope, other.Name)))
			}
		}
		return
	}
	if p.Scope == worker.ScopeAll || known && p.Scope == worker.ScopeEventType {
		return
	}
	status, err := ReadStatus(ctx, p.Target)
	if err != nil {
		r.Warnings = append(r.Warnings, "whether the name is right could not be looked at: "+err.Error())
		return
	}
	if doubt := status.doubt(p.Scope, p.Name); doubt != "" {
		r.Warnings = append(r.Warnings, doubt)
	}
}

// doubt says why a name may be none that a worker has in its routes; empty where
// it looks right.
func (s Status) doubt(scope worker.Scope, name string) string {
	if scope == worker.ScopeEntity {
		return s.doubtEntity(name)
	}
	var known []string
	for _, e := range s.EventTypes {
		known = append(known, e.EventType)
	}
	if slices.Contains(known, name) {
		return ""
	}
	text := fmt.Sprintf("no event that waits, is claimed, has failed or just went out is of the type %q, and names are compared to the letter", name)
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		return text + fmt.Sprintf(": did you mean %q?", known[i])
	}
	if len(known) > 0 {
		text += "; there are " + someOf(known)
	}
	return text
}

// someOf quotes the first of a list of names.
func someOf(names []string) string {
	const some = 10
	more := ""
	if len(names) > some {
		names, more = names[:some], ", …"
	}
	return fmt.Sprintf("%q", names) + more
}

// doubtEntity goes by what the living workers say of their routes.
func (s Status) doubtEntity(name string) string {
	var routed []string
	var silent *WorkerStatus
	live := 0
	for _, w := range s.Workers {
		if !w.Live {
			continue
		}
		live++
		known := slices.Clone(w.Destinations)
		for _, b := range w.Breakers {
			known = append(known, b.Destination)
		}
		if slices.ContainsFunc(known, func(d string) bool { return strings.EqualFold(d, name) }) { // as a worker compares them
			return ""
		}
		if len(w.Destinations) == 0 {
			silent = &w
		}
		routed = append(routed, known...)
	}
	switch {
	case live == 0:
		return fmt.Sprintf("no worker lives, so whether a route leads to %q cannot be seen: compare it with the routes", name)
	case silent != nil:
		return fmt.Sprintf("whether a route leads to %q cannot be seen, because worker %q of version %q does not say where its routes lead: compare it with them", name, silent.Owner, silent.Version)
	}
	slices.Sort(routed)
	return fmt.Sprintf("no living worker has a route to %q; there are routes to %s", name, someOf(slices.Compact(routed)))
}
