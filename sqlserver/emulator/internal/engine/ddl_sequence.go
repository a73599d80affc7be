package engine

import (
	"cmp"
	"reflect"
	"strings"

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
	given := make(map[string]bool)
	once := func(kind string) error {
		if given[kind] {
			return raiseBatch(11712, 15, 1, "Argument '%s' can not be specified more than once.", strings.ToUpper(kind))
		}
		given[kind] = true
		return nil
	}
	for _, o := range options {
		switch o := o.(type) {
		case *ast.DataTypeSequenceOption:
		case *ast.SequenceOption:
			if err := once(o.OptionKind); err != nil {
				return err
			}
			switch o.OptionKind {
			case "Cycle":
				q.cycle = !o.NoValue
			case "Cache":
				q.cached = !o.NoValue
			case "MinValue", "MaxValue":
			case "Restart":
				return errRestart()
			default:
				return errSyntax(o.OptionKind)
			}
		case *ast.ScalarExpressionSequenceOption:
			if err := once(o.OptionKind); err != nil {
				return err
			}
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
			case "Restart":
				return errRestart()
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
		return raise(11705, 16, 1, "The minimum value for sequence object '%s' must be less than its maximum value.", name)
	case distance(q.increment, 0) > distance(q.min, q.max):
		return raise(11701, 16, 1, "The absolute value of the increment for sequence object '%s' must be less than or equal to the difference between the minimum and maximum value of the sequence object.", name)
	case q.start < q.min || q.start > q.max:
		return raise(11703, 16, 1, "The start value for sequence object '%s' must be between the minimum and maximum value of the sequence object.", name)
	}
	return nil
}

func errRestart() error {
	return raiseBatch(11709, 15, 1, "The 'RESTART WITH' argument cannot be used in a CREATE SEQUENCE statement.")
}

// drawnBy is the default constraint that takes from a sequence, "" for none. It
// runs within change.
func (c *catalog) drawnBy(q *sequence) string {
	for _, o := range c.objects {
		t, ok := o.(*tableDef)
		if !ok {
			continue
		}
		for _, col := range t.columns {
			if col.def == nil {
				continue
			}
			found := false
			walk(reflect.ValueOf(col.def.expr), func(n any) bool {
				if next, ok := n.(*ast.NextValueForExpression); ok {
					schema, base := splitName(objectText(next.SequenceName))
					found = found || c.objects[nameOf(cmp.Or(schema, "dbo"), base)] == q
				}
				return !found
			})
			if found {
				return col.def.name
			}
		}
	}
	return ""
}

// distance is that of two numbers, which may be more than an int64 holds.
func distance(a, b int64) uint64 { return uint64(max(a, b)) - uint64(min(a, b)) }

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
		return raise(11726, 16, 1, "Object '%s' is not a sequence object.", objectText(st.Name))
	}
	if len(st.SequenceOptions) == 0 {
		return raiseBatch(11715, 15, 1, "No properties specified for ALTER SEQUENCE.")
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
		case *ast.DataTypeSequenceOption:
			return raiseBatch(11711, 15, 1, "Argument 'AS' cannot be used in an ALTER SEQUENCE statement.")
		case *ast.ScalarExpressionSequenceOption:
			if o.OptionKind == "Start" {
				return raiseBatch(11710, 15, 1, "Argument 'START WITH' cannot be used in an ALTER SEQUENCE statement.")
			}
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
