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
	if p.Scope == worker.ScopeAll || known {
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

// doubt says why a name may be none that a worker has in its routes, which the
// database does not know; empty where it looks right.
func (s Status) doubt(scope worker.Scope, name string) string {
	var known []string
	if scope == worker.ScopeEntity {
		for _, w := range s.Workers {
			for _, b := range w.Breakers {
				if strings.EqualFold(b.Destination, name) { // as a worker compares them
					return ""
				}
			}
		}
		return fmt.Sprintf("whether a route leads to %q cannot be seen in the database, where workers name only the entities that they cannot send to: compare it with the routes", name)
	}
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
		const some = 10
		more := ""
		if len(known) > some {
			known, more = known[:some], ", …"
		}
		text += fmt.Sprintf("; there are %q", known) + more
	}
	return text
}
