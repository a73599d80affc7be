package worker

import (
	"context"
	"slices"
	"sync"
	"time"
)

// catalog knows which event types to ask for. Configured types are always
// asked for; with discover on, those that a skip scan of the claim index finds
// join them, and leave again when nothing of them was pending for a while.
type catalog struct {
	configured []string
	discover   bool

	mu           sync.Mutex
	found        map[string]time.Time // when something of it was pending last
	lastDiscover time.Time
	unrouted     []string
}

const (
	discoverEvery = time.Second
	forgetAfter   = 2 * time.Minute
	// discoverLimit bounds what one skip scan brings; a table with more types
	// than that at once gets the rest in later scans.
	discoverLimit = 1000
)

func newCatalog(configured []string, discover bool) *catalog {
	types := slices.Clone(configured)
	slices.Sort(types)
	return &catalog{configured: slices.Compact(types), discover: discover, found: make(map[string]time.Time)}
}

// pending asks the store which types have something pending. A skip scan finds
// them all, known or not, so it takes the place of asking for the known ones;
// it runs once a second, and always when sure is asked for.
func (c *catalog) pending(ctx context.Context, store Claimer, sure bool) ([]string, error) {
	now := time.Now()
	c.mu.Lock()
	known := c.known()
	scan := c.discover && (sure || len(known) == 0 || now.Sub(c.lastDiscover) >= discoverEvery)
	c.mu.Unlock()
	var types []string
	var err error
	if scan {
		types, err = store.DiscoverPending(ctx, discoverLimit)
	} else {
		types, err = store.Pending(ctx, known)
	}
	if err != nil || !c.discover {
		return types, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if scan {
		c.lastDiscover = now
	}
	for _, t := range types {
		c.found[t] = now
	}
	for t, seen := range c.found {
		if now.Sub(seen) > forgetAfter {
			delete(c.found, t)
		}
	}
	return types, nil
}

func (c *catalog) known() []string {
	types := slices.Clone(c.configured)
	for t := range c.found {
		if _, ok := slices.BinarySearch(c.configured, t); !ok {
			types = append(types, t)
		}
	}
	return types
}

// findUnrouted returns the types that have something pending but no route, and
// whether that differs from the last time.
func (c *catalog) findUnrouted(ctx context.Context, store Claimer) (types []string, news bool, err error) {
	if c.discover {
		return nil, false, nil
	}
	all, err := store.DiscoverPending(ctx, discoverLimit)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	types = slices.DeleteFunc(all, func(t string) bool {
		_, routed := slices.BinarySearch(c.configured, t)
		return routed
	})
	slices.Sort(types)
	news = !slices.Equal(types, c.unrouted)
	c.unrouted = types
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
