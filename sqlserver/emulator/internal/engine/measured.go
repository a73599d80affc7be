package engine

import (
	"errors"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"
)

// measured is a statement with a plan, which counts what its executions cost:
// a row of sys.dm_exec_query_stats.
type measured struct {
	node
	mod  *module
	unit binder
	// kind is StatementType of showplan.
	kind string
	// start and length are where the statement is in the module's text, in UTF-16
	// units; length -1 is to its end.
	start, length int

	mu         sync.Mutex
	shape      *planShape
	generation int64
	count      int64
	last       time.Time
	// worker and elapsed are in microseconds.
	worker, elapsed, reads, rows tally
}

// tally is one figure over the executions of a plan.
type tally struct{ total, last, min, max int64 }

func (t *tally) add(n int64, first bool) {
	t.total += n
	t.last = n
	if first || n < t.min {
		t.min = n
	}
	t.max = max(t.max, n)
}

// measure builds a statement and has it counted.
func (b *builder) measure(st ast.Statement, kind string, build func() (node, error)) (node, error) {
	before := len(b.mod.units)
	n, err := build()
	if err != nil || len(b.mod.units) == before {
		return n, err
	}
	m := &measured{node: n, mod: b.mod, unit: b.mod.units[before], kind: kind, length: -1}
	if f, ok := st.(interface{ Frag() *ast.Fragment }); ok && b.parsed == b.mod.text {
		// the parser quotes some words for itself, and positions are off then
		m.start, m.length = f.Frag().StartOffset, f.Frag().FragmentLength
	}
	b.mod.statements = append(b.mod.statements, m)
	return m, nil
}

// run executes the statement. One that fails is not counted: the view holds
// finished queries (sql-docs, sys.dm_exec_query_stats).
func (m *measured) run(x *exec) (signal, error) {
	s := x.s
	outer := s.running.Swap(m)
	defer s.running.Store(outer)
	rows, waited, began := s.rowsTouched, s.store.Waited(), time.Now()
	sig, err := m.node.run(x)
	for errors.Is(err, errStalePlan) && x.ctx.Err() == nil {
		sig, err = m.node.run(x)
	}
	if err != nil {
		return sig, err
	}
	elapsed := time.Since(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recompiled()
	first := m.count == 0
	m.count++
	m.last = began
	// Go does not tell what one goroutine had of a CPU: what was not spent in
	// waiting for locks counts as work.
	m.worker.add((elapsed - (s.store.Waited() - waited)).Microseconds(), first)
	m.elapsed.add(elapsed.Microseconds(), first)
	m.reads.add(s.rowsTouched-rows, first)
	m.rows.add(s.rowCountVar, first)
	return sig, nil
}

// recompiled begins to count anew when there is a new plan.
func (m *measured) recompiled() {
	shape := m.unit.shape()
	if m.shape == shape || (m.shape != nil && !shape.kept) {
		return
	}
	m.shape = shape
	m.generation++
	m.count = 0
	m.worker, m.elapsed, m.reads, m.rows = tally{}, tally{}, tally{}, tally{}
}

// offsets are the statement's first and last byte in the module's full text.
func (m *measured) offsets() (start, end int) {
	if m.length < 0 {
		return 0, -1
	}
	before := len(utf16.Encode([]rune(m.mod.prefix())))
	start = 2 * (before + m.start)
	return start, start + 2*(m.length-1)
}

// text is the statement alone.
func (m *measured) text() string {
	units := utf16.Encode([]rune(m.mod.text))
	if m.length < 0 || m.start+m.length > len(units) {
		return m.mod.text
	}
	return string(utf16.Decode(units[m.start : m.start+m.length]))
}
