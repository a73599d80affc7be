package engine

import (
	"sync/atomic"
)

// unit is a piece of a module that needs names bound: a query, an expression.
// It is compiled when it first runs, and again after the catalog has changed
// or for other SET options.
type unit[T any] struct {
	build func(c *compiler) (T, error)
	vars  visible
	line  int32
	plan  atomic.Pointer[compiled[T]]
	// last is the shape of the newest plan, kept or not.
	last atomic.Pointer[planShape]
}

type compiled[T any] struct {
	plan    T
	slots   int
	version int64
	options planOptions
	needs   []need
}

// binder lets a batch be bound before it runs.
type binder interface {
	bind(x *exec) error
	shape() *planShape
}

// newUnit registers a unit with its module, so that the whole batch is bound
// before its first statement runs.
func newUnit[T any](b *builder, line int32, build func(c *compiler) (T, error)) *unit[T] {
	u := &unit[T]{build: build, vars: b.mod.vars.now(), line: line}
	b.mod.units = append(b.mod.units, u)
	return u
}

// get is the unit's plan, and a fresh env to run it in. Who lacks a permission
// gets an error instead.
func (u *unit[T]) get(x *exec) (T, *env, error) {
	p, err := u.ready(x)
	if err != nil {
		var none T
		return none, nil, err
	}
	if err := x.allowed(p.needs); err != nil {
		return p.plan, nil, err
	}
	return p.plan, x.newEnv(p.slots, p.version), nil
}

// ready is the unit's plan for the catalog and the options of now.
func (u *unit[T]) ready(x *exec) (*compiled[T], error) {
	for {
		version := x.s.engine.catalog.version.Load()
		options := x.s.set.planOptions
		if p := u.plan.Load(); p != nil && p.version == version && p.options == options {
			return p, nil
		}
		c := &compiler{
			engine: x.s.engine, session: x.s, vars: u.vars, filterable: options.wrongForFilteredIndex() == "",
			nullsEqual: !options.ansiNulls, nullIsEmpty: !options.concatNull, firing: x.firing,
		}
		plan, err := u.compile(c)
		again, waitErr := x.settleNames(c.names)
		switch {
		case waitErr != nil:
			return nil, waitErr
		case again:
			continue
		case err != nil:
			return nil, u.failed(err)
		}
		c.readNeeds()
		p := &compiled[T]{plan, len(c.slots), version, options, c.needs}
		u.last.Store(c.shapeOf())
		if !c.sessionOnly {
			u.plan.Store(p)
		}
		return p, nil
	}
}

// failed marks an error of compiling.
func (u *unit[T]) failed(err error) error {
	if se, ok := err.(*sqlError); ok {
		se.compile = true
		if se.Line == 0 {
			se.Line = u.line
		}
	}
	return err
}

func (u *unit[T]) shape() *planShape { return u.last.Load() }

func (u *unit[T]) compile(c *compiler) (plan T, err error) {
	defer incomplete(&err)
	return u.build(c)
}

// bind compiles ahead. Names of objects may come into being while the batch
// runs, so a missing one is left for later (deferred name resolution), as is
// everything about a table that is not there yet.
func (u *unit[T]) bind(x *exec) error {
	_, err := u.ready(x)
	if se, ok := err.(*sqlError); ok {
		switch se.Number {
		case 208, 2812, 308, 4902, 1088:
			return nil
		}
	}
	return err
}

// bindAhead compiles a module that is only being created.
func (m *module) bindAhead(x *exec) error {
	for _, u := range m.units {
		if err := u.bind(x); err != nil {
			return err
		}
	}
	return nil
}

// boundFor is the catalog and the options that a module was bound for.
type boundFor struct {
	version int64
	options planOptions
}

// bindAll is the compile step of a batch: an error in any statement keeps the
// whole batch from running.
func (m *module) bindAll(x *exec) error {
	state := boundFor{x.s.engine.catalog.version.Load(), x.s.set.planOptions}
	if last := m.bound.Load(); last != nil && *last == state {
		return nil
	}
	for _, u := range m.units {
		if err := u.bind(x); err != nil {
			return err
		}
	}
	m.bound.Store(&state)
	return nil
}
