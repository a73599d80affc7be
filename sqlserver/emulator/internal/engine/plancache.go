package engine

import (
	"sync"
)

// maxCachedBytes bounds the text held by the plan cache. A full cache is
// emptied: what is used comes back at once.
const maxCachedBytes = 32 << 20

// planCache keeps parsed batches by their text.
type planCache struct {
	mu      sync.RWMutex
	modules map[planKey]*module
	bytes   int
}

type planKey struct {
	text string
	// params is the declaration of sp_executesql.
	params string
	// quotedIdentifier changes what "…" means.
	quotedIdentifier bool
}

func newPlanCache() *planCache { return &planCache{modules: make(map[planKey]*module)} }

func (c *planCache) get(k planKey) *module {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.modules[k]
}

func (c *planCache) put(k planKey, m *module) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes > maxCachedBytes {
		clear(c.modules)
		c.bytes = 0
	}
	c.modules[k] = m
	c.bytes += len(k.text) + len(k.params)
}
