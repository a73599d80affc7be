package engine

import (
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// block is BEGIN … END.
type block struct{ body []node }

func (n *block) run(x *exec) (signal, error) { return x.runList(n.body) }

// conditional is IF … ELSE.
type conditional struct {
	test       *unit[*predicate]
	then, alse []node
}

func (n *conditional) run(x *exec) (signal, error) {
	ok, err := x.test(n.test)
	switch {
	case err != nil:
		return goOn, err
	case ok:
		return x.runList(n.then)
	}
	return x.runList(n.alse)
}

// test evaluates a condition outside a query. It may hold subqueries, so it
// runs as a statement.
func (x *exec) test(u *unit[*predicate]) (bool, error) {
	p, e, err := u.get(x)
	if err != nil {
		return false, err
	}
	var result tri
	err = x.reading(e, p.reads, func() (err error) {
		result, err = p.eval(e)
		return err
	})
	return result == isTrue, err
}

// value evaluates an expression outside a query.
func (x *exec) value(u *unit[*scalar]) (sqltype.Value, error) {
	p, e, err := u.get(x)
	if err != nil {
		return sqltype.Value{}, err
	}
	var v sqltype.Value
	err = x.reading(e, p.reads, func() (err error) {
		v, err = p.eval(e)
		return err
	})
	return v, err
}

// reading gives an expression a transaction when it holds a subquery.
func (x *exec) reading(e *env, reads bool, f func() error) error {
	if !reads {
		return f()
	}
	return x.inTransaction(false, func(sc *statementScope) error {
		e.tx = sc.tx
		return f()
	})
}

// loop is WHILE.
type loop struct {
	test *unit[*predicate]
	body []node
}

func (n *loop) run(x *exec) (signal, error) {
	for {
		if err := x.ctx.Err(); err != nil {
			return goOn, err
		}
		ok, err := x.test(n.test)
		if err != nil || !ok {
			return goOn, err
		}
		sig, err := x.runList(n.body)
		switch {
		case err != nil:
			return goOn, err
		case sig == breakLoop:
			return goOn, nil
		case sig == leaveModule:
			return sig, nil
		}
	}
}

type jump struct{ to signal }

func (n jump) run(x *exec) (signal, error) { return n.to, nil }

// leave is RETURN.
type leave struct{ status *unit[*scalar] }

func (n *leave) run(x *exec) (signal, error) {
	if n.status == nil {
		return leaveModule, nil
	}
	v, err := x.value(n.status)
	if err != nil {
		return goOn, err
	}
	if v.IsNull() {
		v = sqltype.Value{Kind: sqltype.Int}
	}
	v, err = sqltype.Convert(v, intType, 0)
	x.status = int32(v.N)
	return leaveModule, err
}

// try is BEGIN TRY … END TRY BEGIN CATCH … END CATCH.
type try struct{ body, handler []node }

func (n *try) run(x *exec) (signal, error) {
	x.tries++
	sig, err := x.runList(n.body)
	x.tries--
	if err == nil {
		return sig, nil
	}
	se, ok := err.(*sqlError)
	if !ok || !catchable(se) {
		return goOn, err
	}
	outer := x.caught
	x.caught = se
	defer func() { x.caught = outer }()
	return x.runList(n.handler)
}

// catchable: errors of severity 20 and more that end the connection are not,
// and neither are those of compiling the module that TRY itself stands in.
func catchable(se *sqlError) bool { return se.Class < 20 && !se.compile }

// assignment is SET @v = …, and DECLARE @v = ….
type assignment struct {
	target int
	typ    sqltype.Type
	value  *unit[*scalar]
	// reset is a DECLARE without a value.
	reset bool
}

func (n *assignment) run(x *exec) (signal, error) {
	if n.reset {
		return goOn, nil
	}
	v, err := x.value(n.value)
	if err != nil {
		return goOn, err
	}
	if x.vars[n.target], err = sqltype.Convert(v, n.typ, 0); err != nil {
		return goOn, err
	}
	x.quiet(1)
	return goOn, nil
}

// delay is WAITFOR DELAY.
type delay struct{ value *unit[*scalar] }

func (n *delay) run(x *exec) (signal, error) {
	v, err := x.value(n.value)
	if err != nil {
		return goOn, err
	}
	v, err = sqltype.Convert(v, sqltype.Type{Kind: sqltype.Time, Scale: 7}, 0)
	if err != nil {
		return goOn, raise(148, 15, 1, "Incorrect time syntax in time string '%s' used with WAITFOR.", sqltype.Format(v))
	}
	timer := time.NewTimer(time.Duration(v.N) * 100)
	defer timer.Stop()
	select {
	case <-timer.C:
		x.quiet(0)
		return goOn, nil
	case <-x.ctx.Done():
		return goOn, x.ctx.Err()
	}
}

// tranNode is BEGIN, COMMIT, ROLLBACK or SAVE TRANSACTION.
type tranNode struct {
	do   func(s *session, w writer, name string) error
	name *unit[*scalar]
	text string
}

func (n *tranNode) run(x *exec) (signal, error) {
	name := n.text
	if n.name != nil {
		v, err := x.value(n.name)
		if err != nil {
			return goOn, err
		}
		name = sqltype.CutUTF16(v.S, maxTransactionName)
	}
	if err := n.do(x.s, x.w, name); err != nil {
		return goOn, err
	}
	x.quiet(0)
	return goOn, nil
}

// action is a statement that needs nothing bound.
type action func(x *exec) error

func (f action) run(x *exec) (signal, error) {
	if err := f(x); err != nil {
		return goOn, err
	}
	x.quiet(0)
	return goOn, nil
}
