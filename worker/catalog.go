package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// catalog knows which event types to ask for. Configured types, those with a
// route of their own, are always asked for; with discover on, those that a skip
// scan of the claim index finds join them, and leave again when nothing of them
// was pending for a while.
//
// A row's spelling is not always the route's: a collation may call two
// spellings equal, and a claim then takes both. So what a scan finds is
// translated into the configured spelling wherever the column calls them equal,
// or an event would take the default route past its own.
type catalog struct {
	configured []string // sorted, no duplicates
	discover   bool

	mu           sync.Mutex
	found        map[string]time.Time // when something of it was pending last
	spelling     map[string]string    // of found types, once the column was asked
	lastDiscover time.Time
	position     ScanPosition // where the next scan goes on
	unrouted     []string
	round        map[string]bool // unrouted ones of the scan that is not at its end yet
}

const (
	discoverEvery = time.Second
	forgetAfter   = 2 * time.Minute
	// learnAfter is above what a worker that claims leaves between two scans, and
	// below the time after which a backlog is counted again.
	learnAfter = 10 * time.Second
	// discoverLimit bounds what one skip scan costs. Where more types are pending,
	// the next one goes on behind the last: types that are not claimed, as of a pause
	// or an open breaker, would hide all that come after them for ever.
	discoverLimit = 1000
	// unroutedScans bounds one look for types without a route.
	unroutedScans = 10
)

func newCatalog(configured []string, discover bool) *catalog {
	types := slices.Clone(configured)
	slices.Sort(types)
	return &catalog{
		configured: slices.Compact(types), discover: discover,
		found: make(map[string]time.Time), spelling: make(map[string]string), round: make(map[string]bool),
	}
}

// check refuses configured types that the column cannot tell apart.
func (c *catalog) check(ctx context.Context, store Keeper) error {
	pairs, err := store.EqualTypes(ctx, c.configured)
	if err != nil {
		return err
	}
	if len(pairs) > 0 {
		return fmt.Errorf("the routes of the event types %q and %q cannot both be: the column event_type calls the two equal; keep one: %w",
			pairs[0][0], pairs[0][1], ErrPermanent)
	}
	return nil
}

// pending asks the store which types have something pending. A skip scan that
// sees all of them takes the place of asking for the known ones; it runs once a
// second, and always when sure is asked for. An answer of none, with sure, is one
// of a whole scan.
func (c *catalog) pending(ctx context.Context, store Store, sure bool) (types []string, err error) {
	now := time.Now()
	c.mu.Lock()
	known := c.known()
	scan := c.discover && (sure || len(known) == 0 || now.Sub(c.lastDiscover) >= discoverEvery)
	c.mu.Unlock()
	whole := false
	if scan {
		if types, whole, err = c.scan(ctx, store); err != nil {
			return nil, err
		}
	}
	if !whole {
		more, err := store.Pending(ctx, known)
		if err != nil {
			return nil, err
		}
		types = distinct(append(types, more...))
	}
	c.note(types, now, scan)
	return types, nil
}

// scan goes on where the last one stopped, and once more from the beginning where
// that brings it to the end. whole says that it has seen all types that were
// pending. Whoever looks for work calls it, and learn beside it: a position that
// both took is scanned twice.
func (c *catalog) scan(ctx context.Context, store Store) (types []string, whole bool, err error) {
	c.mu.Lock()
	from := c.position
	c.mu.Unlock()
	types, next, err := store.DiscoverPending(ctx, from, discoverLimit)
	if err == nil && from != nil && next == nil {
		var first []string
		from = nil
		first, next, err = store.DiscoverPending(ctx, nil, discoverLimit)
		types = append(types, first...)
	}
	if err == nil {
		types, err = c.translate(ctx, store, types)
	}
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	c.position = next
	c.mu.Unlock()
	return types, from == nil && next == nil, nil
}

// distinct keeps the first of each.
func distinct(types []string) []string {
	seen := make(map[string]bool, len(types))
	return slices.DeleteFunc(types, func(t string) bool {
		was := seen[t]
		seen[t] = true
		return was
	})
}

// learn scans for types where nothing else has for so long: while all is paused,
// or settling is refused, nobody looks for work.
func (c *catalog) learn(ctx context.Context, store Store) error {
	c.mu.Lock()
	due := c.discover && time.Since(c.lastDiscover) >= learnAfter
	c.mu.Unlock()
	if !due {
		return nil
	}
	_, err := c.pending(ctx, store, true)
	return err
}

// note remembers what was pending and forgets what was not for long.
func (c *catalog) note(types []string, now time.Time, scanned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.discover {
		return
	}
	if scanned {
		c.lastDiscover = now
	}
	for _, t := range types {
		if !c.routed(t) {
			c.found[t] = now
		}
	}
	for t, seen := range c.found {
		if now.Sub(seen) > forgetAfter {
			delete(c.found, t)
			delete(c.spelling, t)
		}
	}
}

// translate puts the configured spelling in the place of every type that the
// column calls equal to it. The column is asked once for each type.
func (c *catalog) translate(ctx context.Context, store Keeper, types []string) ([]string, error) {
	if len(c.configured) == 0 {
		return distinct(types), nil
	}
	c.mu.Lock()
	var unknown []string
	for _, t := range types {
		if _, ok := c.spelling[t]; !ok && !c.routed(t) {
			unknown = append(unknown, t)
		}
	}
	c.mu.Unlock()
	var pairs [][2]string
	if len(unknown) > 0 {
		var err error
		if pairs, err = store.EqualTypes(ctx, append(slices.Clone(c.configured), unknown...)); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range unknown {
		c.spelling[t] = t
	}
	for _, p := range pairs {
		if c.routed(p[0]) {
			c.spelling[p[1]] = p[0]
		}
	}
	out := make([]string, 0, len(types))
	for _, t := range types {
		if s, ok := c.spelling[t]; ok {
			t = s
		}
		out = append(out, t)
	}
	return distinct(out), nil
}

// routed says whether a type has a route of its own, by this spelling.
func (c *catalog) routed(t string) bool {
	_, ok := slices.BinarySearch(c.configured, t)
	return ok
}

func (c *catalog) known() []string {
	types := slices.Clone(c.configured)
	for t := range c.found {
		types = append(types, t)
	}
	return types
}

// findUnrouted returns the types that have something pending but no route, and
// whether that differs from the last time. Where there are more types than one look
// may scan, the next look goes on, and those of the last whole scan stay until it
// has come to the end again.
func (c *catalog) findUnrouted(ctx context.Context, store Store) (types []string, news bool, err error) {
	for range unroutedScans {
		found, next, err := store.DiscoverPending(ctx, c.position, discoverLimit)
		if err == nil {
			found, err = c.translate(ctx, store, found)
		}
		if err != nil {
			return nil, false, err
		}
		for _, t := range found {
			if !c.routed(t) {
				c.round[t] = true
			}
		}
		if c.position = next; next == nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	types = slices.AppendSeq(make([]string, 0, len(c.round)), maps.Keys(c.round))
	if c.position == nil {
		clear(c.round)
	} else {
		types = distinct(append(types, c.unrouted...))
	}
	slices.Sort(types)
	news = !slices.Equal(types, c.unrouted)
	c.unrouted = types
	// They are not asked for, so nothing else keeps this list short.
	for t, s := range c.spelling {
		if _, pending := slices.BinarySearch(types, s); !pending && !c.routed(s) {
			delete(c.spelling, t)
		}
	}
	return types, news, nil
}

func (c *catalog) unroutedTypes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unrouted)
}

// types are the types that are asked for at the moment.
func (c *catalog) types() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	types := c.known()
	slices.Sort(types)
	return types
}
