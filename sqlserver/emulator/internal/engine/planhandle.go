package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// plan is a module as the views of the plan cache show it: a cached text, or
// a procedure's body.
type plan struct {
	*module
	// proc is nil for a text.
	proc *procedure
}

func (p plan) options() int32 {
	if p.proc != nil {
		return p.proc.options
	}
	return p.cached.key.options
}

// objectType is objtype of sys.dm_exec_cached_plans.
func (p plan) objectType() string {
	switch {
	case p.proc != nil:
		return "Proc"
	case p.cached.key.prepared:
		return "Prepared"
	}
	return "Adhoc"
}

// objectID is nil for a text.
func (p plan) objectID() any {
	if p.proc == nil {
		return nil
	}
	return p.proc.id
}

// Handles are opaque and 44 bytes long. Those of a text begin with 2 and 6,
// those of a procedure with 3 and 5.
const handleBytes = 44

func handle(kind byte, seed []byte) string {
	sum := sha256.Sum256(seed)
	h := make([]byte, handleBytes)
	h[0] = kind
	copy(h[4:], sum[:])
	return string(h)
}

// sqlHandle is the same for every plan of a text.
func (p plan) sqlHandle() string {
	if p.proc != nil {
		return handle(3, binary.LittleEndian.AppendUint32(nil, uint32(p.proc.id)))
	}
	return handle(2, []byte(p.fullText()))
}

// planHandle is one plan's own.
func (p plan) planHandle() string {
	seed := binary.LittleEndian.AppendUint64(nil, uint64(p.cached.id))
	if p.proc != nil {
		return handle(5, seed)
	}
	return handle(6, seed)
}

// fullText is the text as sys.dm_exec_sql_text shows it: sp_executesql's
// parameters stand before the statement.
func (m *module) fullText() string { return m.prefix() + m.text }

func (m *module) prefix() string {
	if m.cached.key.params == "" {
		return ""
	}
	return "(" + m.cached.key.params + ")"
}

// allPlans are the cached texts, oldest first, and the procedures that have run.
func (e *Engine) allPlans() []plan {
	var all []plan
	for _, m := range e.plans.list() {
		all = append(all, plan{module: m})
	}
	return append(all, e.procedurePlans()...)
}

func (e *Engine) procedurePlans() []plan {
	var all []plan
	for _, o := range e.catalog.sorted() {
		if p, ok := o.(*procedure); ok && p.mod.cached.uses.Load() > 0 {
			all = append(all, plan{p.mod, p})
		}
	}
	return all
}

// planOf finds a plan by its handle, or some plan by the handle of its text.
func (e *Engine) planOf(h string) (plan, bool) {
	if m := e.plans.find(h); m != nil {
		return plan{module: m}, true
	}
	for _, p := range e.procedurePlans() {
		if p.planHandle() == h || p.sqlHandle() == h {
			return p, true
		}
	}
	return plan{}, false
}
