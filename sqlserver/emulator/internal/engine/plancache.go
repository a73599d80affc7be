package engine

import (
	"sync"
)

// A tree takes some fifty times the memory of its text. A full cache is emptied:
// what is used comes back at once. Texts that are very long are not kept: they
// hold their values and do not come again.
const (
	maxCachedBytes = 8 << 20
	maxCachedText  = 256 << 10
)

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
	if len(k.text) > maxCachedText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes > maxCachedBytes {
		clear(c.modules)
		c.bytes = 0
	}
	c.modules[k] = m
	c.bytes += len(k.text) + len(k.params)
}
