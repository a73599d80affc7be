package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A tree takes some fifty times the memory of its text. A full cache is emptied:
// what is used comes back at once. Texts that are very long are not kept: they
// hold their values and do not come again.
const (
	maxCachedBytes = 8 << 20
	maxCachedText  = 256 << 10
)

// planCache keeps parsed batches, with their plans and what these have done.
type planCache struct {
	mu      sync.RWMutex
	modules map[planKey]*module
	// byHandle has them by plan handle, and one of each text by sql handle.
	byHandle map[string]*module
	bytes    int
	last     atomic.Int64
}

// planKey is what must be the same for a plan to be used again: the text and the
// SET options, as in SQL Server.
type planKey struct {
	text string
	// params is the declaration of sp_executesql.
	params string
	// prepared tells sp_executesql and sp_prepare from a batch.
	prepared bool
	options  int32
}

func newPlanCache() *planCache {
	return &planCache{modules: make(map[planKey]*module), byHandle: make(map[string]*module)}
}

func (c *planCache) get(k planKey) *module {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.modules[k]
}

// put keeps a module, or returns the one that another session was faster with.
func (c *planCache) put(k planKey, m *module) *module {
	if len(k.text) > maxCachedText {
		return m
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.modules[k]; first != nil {
		return first
	}
	if c.bytes > maxCachedBytes {
		c.clear()
	}
	c.modules[k] = m
	c.byHandle[plan{module: m}.planHandle()] = m
	c.byHandle[plan{module: m}.sqlHandle()] = m
	c.bytes += len(k.text) + len(k.params)
	return m
}

func (c *planCache) empty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

func (c *planCache) clear() {
	clear(c.modules)
	clear(c.byHandle)
	c.bytes = 0
}

func (c *planCache) find(handle string) *module {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byHandle[handle]
}

// list is what is cached, oldest first.
func (c *planCache) list() []*module {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]*module, 0, len(c.modules))
	for _, m := range c.modules {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return int(a.cached.id - b.cached.id) })
	return all
}

// cachedPlan is a module as the plan cache's views show it.
type cachedPlan struct {
	id      int64
	key     planKey
	created time.Time
	uses    atomic.Int64
}

// setOptions are a plan's set_options (sql-docs, sys.dm_exec_plan_attributes).
// ParallelPlan (2) is never among them: nothing here runs in parallel.
func (s *settings) setOptions(forced bool) int32 {
	bits := int32(0)
	for _, o := range [...]struct {
		on  bool
		bit int32
	}{
		{s.ansiPadding, 1},
		{s.concatNull, 8},
		{s.ansiWarnings, 16},
		{s.ansiNulls, 32},
		{s.quotedIdentifier, 64},
		{s.ansiNullDefault, 128},
		{s.arithAbort, 4096},
		{s.numericRoundAbort, 8192},
		{forced, 131072},
		{s.rowCount != 0, 262144},
	} {
		if o.on {
			bits |= o.bit
		}
	}
	return bits
}
