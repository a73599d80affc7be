package engine

import (
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// createSequence is CREATE SEQUENCE.
func (x *exec) createSequence(sc *statementScope, st *ast.CreateSequenceStatement) error {
	e := x.s.engine
	owner, err := x.ownerSchema(st.Name)
	if err != nil {
		return err
	}
	if err := x.mayCreate("CREATE SEQUENCE", owner); err != nil {
		return err
	}
	if err := x.claimName(sc, owner, st.Name.BaseIdentifier.Value); err != nil {
		return err
	}
	q, err := e.newSequence(st.SequenceOptions, st.Name.BaseIdentifier.Value)
	if err != nil {
		return err
	}
	return e.catalog.change(sc.undo, func() (func(), error) {
		if _, ok := e.catalog.objects[nameOf(owner, st.Name.BaseIdentifier.Value)]; ok {
			return nil, errExists(st.Name.BaseIdentifier.Value)
		}
		q.objectHeader = e.catalog.newHeader(owner, st.Name.BaseIdentifier.Value)
		return e.catalog.put(q), nil
	})
}

// sequenceLimits are the whole range of a type.
func sequenceLimits(t sqltype.Type) (lo, hi int64) {
	switch t.Kind {
	case sqltype.TinyInt:
		return 0, 255
	case sqltype.SmallInt:
		return -1 << 15, 1<<15 - 1
	case sqltype.Int:
		return -1 << 31, 1<<31 - 1
	}
	return -1 << 63, 1<<63 - 1
}

func (e *Engine) newSequence(options []any, name string) (*sequence, error) {
	q := &sequence{typ: bigType, increment: 1, cached: true}
	for _, o := range options {
		if d, ok := o.(*ast.DataTypeSequenceOption); ok {
			t, err := e.dataType(d.DataType)
			if err != nil {
				return nil, err
			}
			if !t.Kind.IsInteger() || t.Kind == sqltype.Bit {
				return nil, notModelled("sequences of type %s", t)
			}
			q.typ = t
		}
	}
	q.min, q.max = sequenceLimits(q.typ)
	q.start = q.min
	if err := e.readSequence(q, options, name); err != nil {
		return nil, err
	}
	q.next, q.last = q.start, q.start
	return q, nil
}

// readSequence applies options to a sequence and checks what comes of it.
func (e *Engine) readSequence(q *sequence, options []any, name string) error {
	started, unbounded := false, q.start == q.min
	for _, o := range options {
		switch o := o.(type) {
		case *ast.DataTypeSequenceOption:
		case *ast.SequenceOption:
			switch o.OptionKind {
			case "Cycle":
				q.cycle = !o.NoValue
			case "Cache":
				q.cached = !o.NoValue
			case "MinValue", "MaxValue":
			default:
				return errSyntax(o.OptionKind)
			}
		case *ast.ScalarExpressionSequenceOption:
			if o.NoValue {
				continue
			}
			n, err := wholeNumber(o.OptionValue)
			if err != nil {
				return err
			}
			switch o.OptionKind {
			case "Start":
				q.start, started = n, true
			case "Increment":
				q.increment = n
			case "MinValue":
				q.min = n
			case "MaxValue":
				q.max = n
			case "Cache":
				q.cacheSize, q.cached = n, true
			default:
				return errSyntax(o.OptionKind)
			}
		default:
			return notModelled("the sequence option %s", syntaxName(o))
		}
	}
	if !started && unbounded {
		q.start = q.min
		if q.increment < 0 {
			q.start = q.max
		}
	}
	switch {
	case q.increment == 0:
		return raise(11700, 16, 1, "The increment for sequence object '%s' cannot be zero.", name)
	case q.min >= q.max:
		return raise(11701, 16, 1, "The minimum value for sequence object '%s' must be less than its maximum value.", name)
	case q.start < q.min || q.start > q.max:
		return raise(11703, 16, 1, "The start value for sequence object '%s' must be between the minimum and maximum value of the sequence object.", name)
	}
	return nil
}

// alterSequence is ALTER SEQUENCE: RESTART, and another increment, bounds,
// cycle or cache. It does not roll back, as taken numbers do not.
func (x *exec) alterSequence(st *ast.AlterSequenceStatement) error {
	if err := x.settleObject(st.Name); err != nil {
		return err
	}
	o, err := x.s.engine.lookup(st.Name)
	if err != nil {
		return err
	}
	q, ok := o.(*sequence)
	if ok && !x.mayOn("ALTER", &q.objectHeader) {
		return raise(15151, 16, 1, "Cannot alter the sequence object '%s', because it does not exist or you do not have permission.", objectText(st.Name))
	}
	if !ok {
		return raise(11729, 16, 1, "Object '%s' is not a sequence object.", objectText(st.Name))
	}
	var restart *int64
	var options []any
	for _, o := range st.SequenceOptions {
		switch o := o.(type) {
		case *ast.SequenceOption:
			if o.OptionKind == "Restart" {
				restart = &q.start
				continue
			}
		case *ast.ScalarExpressionSequenceOption:
			if o.OptionKind == "Restart" {
				n, err := wholeNumber(o.OptionValue)
				if err != nil {
					return err
				}
				restart = &n
				continue
			}
		}
		options = append(options, o)
	}
	return q.alter(restart, func(now *sequence) error {
		return x.s.engine.readSequence(now, options, q.name)
	})
}
