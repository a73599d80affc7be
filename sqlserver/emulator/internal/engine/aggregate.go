package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// aggregate is one aggregate function call of a grouped query.
type aggregate struct {
	name string
	// arg is nil for COUNT(*).
	arg      *scalar
	distinct bool
	typ      sqltype.Type
	// separator and order are STRING_AGG's.
	separator *scalar
	order     []sortKey
}

var aggregateNames = map[string]bool{
	"COUNT": true, "COUNT_BIG": true, "SUM": true, "MIN": true, "MAX": true, "AVG": true, "STRING_AGG": true,
}

func isAggregate(name string) bool { return aggregateNames[strings.ToUpper(name)] }

// aggregateCall compiles an aggregate; its value is a column of the group.
func (c *compiler) aggregateCall(x *ast.FunctionCall, sc *scope) (*scalar, error) {
	switch {
	case takesSequence(x.Parameters, false):
		return nil, errSequenceAggregate()
	case aggregates(x.Parameters), queries(x.Parameters):
		return nil, raiseBatch(130, 16, 1, "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.")
	}
	l := c.level
	if l == nil || l.group == nil || l.sc != sc || !l.grouped {
		return nil, raiseBatch(147, 15, 1, "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.")
	}
	a, err := c.newAggregate(x, sc)
	if err != nil {
		return nil, err
	}
	l.group.aggs = append(l.group.aggs, a)
	l.group.src.cols = append(l.group.src.cols, outCol{typ: a.typ, nullable: !strings.HasPrefix(a.name, "COUNT")})
	s := c.columnScalar(l.group.src, len(l.group.src.cols)-1)
	s.column = nil
	return s, nil
}

func (c *compiler) newAggregate(x *ast.FunctionCall, sc *scope) (*aggregate, error) {
	l := c.level
	l.grouped = false // the argument sees the rows, not the groups
	defer func() { l.grouped = true }()
	a := &aggregate{name: strings.ToUpper(x.FunctionName.Value), distinct: strings.EqualFold(x.UniqueRowFilter, "Distinct")}
	want := 1
	if a.name == "STRING_AGG" {
		want = 2
	}
	if len(x.Parameters) != want {
		return nil, raiseBatch(174, 15, 1, "The %s function requires %d argument(s).", strings.ToLower(a.name), want)
	}
	if col, ok := x.Parameters[0].(*ast.ColumnReferenceExpression); ok && col.ColumnType == "Wildcard" {
		if !strings.HasPrefix(a.name, "COUNT") || a.distinct {
			return nil, errSyntax("*")
		}
	} else {
		var err error
		if a.arg, err = c.expression(x.Parameters[0], sc); err != nil {
			return nil, err
		}
		if err := c.aggregated(l, a.arg); err != nil {
			return nil, err
		}
		if a.arg.typ.Kind == sqltype.Null {
			return nil, raiseBatch(8117, 16, 1, "Operand data type NULL is invalid for %s operator.", strings.ToLower(a.name))
		}
	}
	switch a.name {
	case "COUNT":
		a.typ = intType
	case "COUNT_BIG":
		a.typ = bigType
	case "MIN", "MAX":
		a.typ = a.arg.typ
		if a.typ.Kind == sqltype.Bit {
			return nil, raiseBatch(8117, 16, 1, "Operand data type bit is invalid for %s operator.", strings.ToLower(a.name))
		}
	case "SUM", "AVG":
		if !a.arg.typ.Kind.IsNumeric() || a.arg.typ.Kind == sqltype.Bit {
			return nil, raiseBatch(8117, 16, 1, "Operand data type %s is invalid for %s operator.", a.arg.typ.Name(), strings.ToLower(a.name))
		}
		a.typ = sumType(a.arg.typ, a.name == "AVG")
	case "STRING_AGG":
		return a, c.stringAgg(a, x, sc)
	}
	return a, nil
}

// aggregated refuses an aggregate of columns of the query around, which is that
// query's.
func (c *compiler) aggregated(l *queryLevel, arg *scalar) error {
	var own slotSet
	for _, src := range l.sc.sources {
		own |= 1 << src.slot
	}
	switch {
	case arg.deps.within(own):
		return nil
	case arg.deps&own != 0:
		return raiseBatch(8124, 16, 1, "Multiple columns are specified in an aggregated expression containing an outer reference. If an expression being aggregated contains an outer reference, then that outer reference must be the only column referenced in the expression.")
	case l.applied:
		return raiseBatch(4101, 15, 1, "Aggregates on the right side of an APPLY cannot reference columns from the left side.")
	}
	return notModelled("an aggregate of columns of the query around")
}

func (c *compiler) stringAgg(a *aggregate, x *ast.FunctionCall, sc *scope) (err error) {
	a.typ = a.arg.typ
	if !a.typ.Kind.IsText() {
		a.typ = nvarcharType(4000)
		a.arg = convertTo(a.arg, a.typ)
	}
	if a.typ.Length != sqltype.Max {
		a.typ.Length = 8000
		if a.typ.Kind.IsUnicode() {
			a.typ.Length = 4000
		}
	}
	if a.separator, err = c.expression(x.Parameters[1], sc); err != nil {
		return err
	}
	if k := a.separator.typ.Kind; !k.IsText() && k != sqltype.Null {
		return raiseBatch(8116, 16, 1, "Argument data type %s is invalid for argument 2 of string_agg function.", a.separator.typ.Name())
	}
	if x.WithinGroupClause != nil && x.WithinGroupClause.OrderByClause != nil {
		a.order, err = c.orderBy(x.WithinGroupClause.OrderByClause, nil, sc)
	}
	return err
}

// sumType: sums of small integers are int, and so on (sql-docs, "SUM").
func sumType(t sqltype.Type, average bool) sqltype.Type {
	switch t.Kind {
	case sqltype.TinyInt, sqltype.SmallInt, sqltype.Int:
		return intType
	case sqltype.Decimal:
		t.Precision = 38
		if average {
			t.Scale = max(t.Scale, 6)
		}
	case sqltype.Real:
		return floatType
	}
	return t
}

// aggregateState collects one group's rows.
type aggregateState interface {
	add(v sqltype.Value) error
	result() (sqltype.Value, error)
}

func (a *aggregate) start() aggregateState {
	var s aggregateState
	switch a.name {
	case "COUNT", "COUNT_BIG":
		s = &counter{kind: a.typ.Kind}
	case "MIN", "MAX":
		s = &extreme{compare: sqltype.Comparer(a.typ), max: a.name == "MAX"}
	case "SUM", "AVG":
		s = &sum{typ: a.typ, average: a.name == "AVG"}
	default:
		return &joinedText{agg: a}
	}
	if a.distinct {
		s = &distinctState{s, newRowKeys([]outCol{{typ: a.arg.typ}})}
	}
	return s
}

// feed adds the current row to a state. NULLs do not count.
func (a *aggregate) feed(e *env, s aggregateState) error {
	if a.arg == nil {
		return s.add(intValue(1))
	}
	v, err := a.arg.eval(e)
	if err != nil || v.IsNull() {
		return err
	}
	if t, ok := s.(*joinedText); ok {
		return t.addOrdered(e, v)
	}
	return s.add(v)
}

type counter struct {
	kind sqltype.Kind
	n    int64
}

func (c *counter) add(sqltype.Value) error { c.n++; return nil }
func (c *counter) result() (sqltype.Value, error) {
	return sqltype.Value{Kind: c.kind, N: c.n}, nil
}

type extreme struct {
	compare func(a, b sqltype.Value) int
	max     bool
	best    sqltype.Value
}

func (x *extreme) add(v sqltype.Value) error {
	if x.best.IsNull() || (x.compare(v, x.best) > 0) == x.max && x.compare(v, x.best) != 0 {
		x.best = v
	}
	return nil
}
func (x *extreme) result() (sqltype.Value, error) { return x.best, nil }

type sum struct {
	typ     sqltype.Type
	average bool
	total   sqltype.Value
	n       int64
}

func (s *sum) add(v sqltype.Value) (err error) {
	s.n++
	wide := s.typ
	if wide.Kind == sqltype.Int && s.average {
		wide = bigType
	}
	if v, err = sqltype.Convert(v, wide, 0); err != nil {
		return err
	}
	if s.n == 1 {
		s.total = v
		return nil
	}
	s.total, err = arithmetic("Add", wide, s.total, v)
	return err
}

func (s *sum) result() (sqltype.Value, error) {
	if s.n == 0 {
		return sqltype.Value{}, nil
	}
	if !s.average {
		return s.total, nil
	}
	v, err := arithmetic("Divide", wideOf(s.typ), s.total, bigValue(s.n))
	if err != nil {
		return v, err
	}
	return sqltype.Convert(v, s.typ, 0)
}

func wideOf(t sqltype.Type) sqltype.Type {
	if t.Kind == sqltype.Int {
		return bigType
	}
	return t
}

type distinctState struct {
	aggregateState
	keys *rowKeys
}

func (d *distinctState) add(v sqltype.Value) error {
	if !d.keys.add([]sqltype.Value{v}) {
		return nil
	}
	return d.aggregateState.add(v)
}

// joinedText is STRING_AGG.
type joinedText struct {
	agg   *aggregate
	sep   string
	parts []textPart
}

type textPart struct {
	text string
	keys []sqltype.Value
}

func (t *joinedText) add(sqltype.Value) error { return nil }

func (t *joinedText) addOrdered(e *env, v sqltype.Value) error {
	sep, err := t.agg.separator.eval(e)
	if err != nil {
		return err
	}
	t.sep = sep.S
	keys, err := evalKeys(e, t.agg.order)
	t.parts = append(t.parts, textPart{sqltype.Format(v), keys})
	return err
}

func (t *joinedText) result() (sqltype.Value, error) {
	if len(t.parts) == 0 {
		return sqltype.Value{}, nil
	}
	slices.SortStableFunc(t.parts, func(a, b textPart) int { return compareKeys(t.agg.order, a.keys, b.keys) })
	texts := make([]string, len(t.parts))
	for i, p := range t.parts {
		texts[i] = p.text
	}
	v, err := sqltype.Assign(sqltype.Value{Kind: t.agg.typ.Kind, S: strings.Join(texts, t.sep)}, t.agg.typ)
	if err != nil {
		return v, raise(9829, 16, 1, "STRING_AGG aggregation result exceeded the limit of 8000 bytes. Use LOB types to avoid result truncation.")
	}
	return v, nil
}
