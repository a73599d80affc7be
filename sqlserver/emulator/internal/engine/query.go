package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// query is a compiled SELECT.
type query struct {
	cols []outCol
	// refs say which columns are plain columns of a slot.
	refs []columnRef
	// each calls emit for every row. The row is the caller's to keep.
	each func(e *env, emit func(row []sqltype.Value) error) error
	// projection is what each runs where nothing is behind the select list.
	projection *projection
	// deps are the slots outside the query that it reads.
	deps slotSet
	// assign are the targets of SELECT @v = …; nil for a query that returns
	// rows.
	assign []int
}

// stopSignal ends an iteration early. Each one that stops has its own, so that
// a TOP inside another does not end both.
type stopSignal struct{ _ byte }

func (*stopSignal) Error() string { return "stop" }

// query compiles a query expression. parent is the scope that a correlated
// query sees; asked is set for the outermost SELECT of a statement.
func (c *compiler) query(x ast.QueryExpression, parent *scope) (*query, error) {
	outer := c.touched
	c.touched = 0
	lo := len(c.slots)
	q, err := c.queryExpression(x, parent)
	if err != nil {
		return nil, err
	}
	own := slotSet(0)
	for i := lo; i < len(c.slots); i++ {
		own |= 1 << i
	}
	q.deps = c.touched &^ own
	c.touched = outer | q.deps
	return q, nil
}

func (c *compiler) queryExpression(x ast.QueryExpression, parent *scope) (*query, error) {
	switch x := x.(type) {
	case *ast.QuerySpecification:
		return c.querySpecification(x, parent)
	case *ast.QueryParenthesisExpression:
		return c.queryExpression(x.QueryExpression, parent)
	case *ast.BinaryQueryExpression:
		return c.setOperation(x, parent)
	}
	return nil, notModelled("the query %s", syntaxName(x))
}

// output is an element of the select list.
type output struct {
	name  string
	value *scalar
	// variable is the ordinal that SELECT @v = … assigns, -1 otherwise.
	variable int
	typ      sqltype.Type
}

func (c *compiler) querySpecification(x *ast.QuerySpecification, parent *scope) (*query, error) {
	if x.ForClause != nil {
		return nil, notModelled("FOR JSON, FOR XML and FOR BROWSE")
	}
	if x.WindowClause != nil {
		return nil, notModelled("the WINDOW clause")
	}
	if x.OffsetClause != nil && x.OrderByClause == nil {
		return nil, errSyntax("OFFSET")
	}
	if err := sequenceRules(x); err != nil {
		return nil, err
	}
	lo := len(c.slots)
	sc := &scope{parent: parent}
	level := &queryLevel{parent: c.level, sc: sc, applied: c.applied}
	c.applied = false
	c.level = level
	defer func() { c.level = level.parent }()

	var tree *joinTree
	var conds []*predicate
	var err error
	if x.FromClause != nil {
		if tree, err = c.fromClause(x.FromClause.TableReferences, sc); err != nil {
			return nil, err
		}
	}
	if x.WhereClause != nil {
		if conds, err = c.conjuncts(x.WhereClause.SearchCondition, sc); err != nil {
			return nil, err
		}
	}
	if err := c.startGrouping(x, level); err != nil {
		return nil, err
	}
	level.windowsAllowed = true
	outs, err := c.selectList(x.SelectElements, sc)
	if err != nil {
		return nil, err
	}
	level.clause = "HAVING"
	having, err := c.having(x, level)
	if err != nil {
		return nil, err
	}
	level.clause = "ORDER BY"
	sorts, err := c.orderBy(x.OrderByClause, outs, sc)
	if err != nil {
		return nil, err
	}
	level.windowsAllowed = false
	limit, err := c.limit(x.TopRowFilter, x.OffsetClause, sc)
	if err != nil {
		return nil, err
	}
	distinct := strings.EqualFold(x.UniqueRowFilter, "Distinct")

	p := &planner{c: c, topped: limit != nil}
	if level.group == nil && level.window == nil && !distinct {
		p.order = orderKeys(sorts)
	}
	s, rest, err := p.plan(tree, conds, c.outerSlots(parent))
	if err != nil {
		return nil, err
	}
	s = filterStep(s, rest)
	s = level.steps(s, having)
	own := slotRange{lo, len(c.slots)}
	q := newQuery(outs)
	switch {
	case distinct:
		q.each = distinctRows(s, outs, sorts, limit)
		return q, nil
	case len(sorts) > 0 && !p.ordered:
		s = &sortStep{s, sorts, own}
	}
	if limit != nil {
		s = limit.over(s)
	}
	q.projection = newProjection(s, outs)
	q.each = q.projection.each
	return q, nil
}

// outerSlots are the slots of the queries around, whose rows are there before
// this one starts.
func (c *compiler) outerSlots(parent *scope) slotSet {
	var set slotSet
	for s := parent; s != nil; s = s.parent {
		for _, src := range s.sources {
			set |= 1 << src.slot
		}
	}
	for l := c.level; l != nil; l = l.parent {
		if l.group != nil {
			set |= 1 << l.group.src.slot
		}
	}
	return set
}

func newQuery(outs []output) *query {
	q := &query{}
	for _, o := range outs {
		if o.variable >= 0 {
			q.assign = append(q.assign, o.variable)
		}
		col := outCol{name: o.name, typ: o.value.typ, nullable: !o.value.notNull, strength: o.value.strength, conflict: o.value.conflict}
		if col.typ.Kind == sqltype.Null {
			col.typ, col.untyped = intType, true // SELECT NULL is an int to the client
		}
		ref := columnRef{}
		if o.value.column != nil {
			ref = *o.value.column
		}
		q.cols, q.refs = append(q.cols, col), append(q.refs, ref)
	}
	return q
}

// selectList expands stars and compiles the rest.
func (c *compiler) selectList(list []ast.SelectElement, sc *scope) ([]output, error) {
	var outs []output
	for _, el := range list {
		switch el := el.(type) {
		case *ast.SelectStarExpression:
			more, err := c.star(el, sc)
			if err != nil {
				return nil, err
			}
			outs = append(outs, more...)
		case *ast.SelectScalarExpression:
			if el.ColumnName != nil {
				if err := unnamed(el.ColumnName.Identifier); err != nil {
					return nil, err
				}
			}
			s, err := c.expression(el.Expression, sc)
			if err != nil {
				return nil, err
			}
			outs = append(outs, output{name: outputName(el), value: s, variable: -1})
		case *ast.SelectSetVariable:
			o, err := c.assignVariable(el.Variable.Name, el.AssignmentKind, el.Expression, sc)
			if err != nil {
				return nil, err
			}
			outs = append(outs, o)
		default:
			return nil, notModelled("the select element %s", syntaxName(el))
		}
	}
	assigns := 0
	for _, o := range outs {
		if o.variable >= 0 {
			assigns++
		}
	}
	if assigns > 0 && assigns < len(outs) {
		return nil, raiseBatch(141, 15, 1, "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.")
	}
	return outs, nil
}

// assignVariable compiles @v = x and its compound forms.
func (c *compiler) assignVariable(name, kind string, x ast.ScalarExpression, sc *scope) (output, error) {
	i, t, ok := c.vars.scalar(name)
	if !ok {
		return output{}, errUndeclared(name)
	}
	s, err := c.expression(x, sc)
	if err != nil {
		return output{}, err
	}
	if op, compound := compoundOperators[kind]; compound {
		v, err := c.variable(name)
		if err != nil {
			return output{}, err
		}
		if s, err = c.operate(op, v, s); err != nil {
			return output{}, err
		}
	}
	if err := implicitly(s.typ, t); err != nil {
		return output{}, err
	}
	return output{value: convertTo(s, t), variable: i, typ: t}, nil
}

var compoundOperators = map[string]string{
	"AddEquals": "Add", "SubtractEquals": "Subtract", "MultiplyEquals": "Multiply",
	"DivideEquals": "Divide", "ModEquals": "Modulo", "BitwiseAndEquals": "BitwiseAnd",
	"BitwiseOrEquals": "BitwiseOr", "BitwiseXorEquals": "BitwiseXor", "ConcatEquals": "Add",
}

func outputName(el *ast.SelectScalarExpression) string {
	if el.ColumnName != nil {
		if el.ColumnName.Identifier != nil {
			return el.ColumnName.Identifier.Value
		}
		if s, ok := el.ColumnName.ValueExpression.(*ast.StringLiteral); ok {
			return s.Value
		}
		return el.ColumnName.Value
	}
	if col, ok := el.Expression.(*ast.ColumnReferenceExpression); ok && col.MultiPartIdentifier != nil {
		ids := col.MultiPartIdentifier.Identifiers
		return ids[len(ids)-1].Value
	}
	return ""
}

func (c *compiler) star(el *ast.SelectStarExpression, sc *scope) ([]output, error) {
	var outs []output
	for _, src := range sc.sources {
		if el.Qualifier != nil && !src.called(identifiers(el.Qualifier)) {
			continue
		}
		for i, col := range src.cols {
			s, err := c.groupedColumn(src, i, []string{col.name})
			if err != nil {
				return nil, err
			}
			outs = append(outs, output{name: col.name, value: s, variable: -1})
		}
	}
	if len(outs) == 0 {
		if el.Qualifier != nil {
			return nil, raiseBatch(107, 15, 1, "The column prefix '%s' does not match with a table name or alias name used in the query.", strings.Join(identifiers(el.Qualifier), "."))
		}
		return nil, raiseBatch(263, 16, 1, "Must specify table to select from.")
	}
	return outs, nil
}

// projection evaluates the select list for each row.
type projection struct {
	from  step
	evals []func(*env) (sqltype.Value, error)
	// reuse gives every row in the same slice: its reader keeps none.
	reuse bool
}

func newProjection(s step, outs []output) *projection {
	p := &projection{from: s, evals: make([]func(*env) (sqltype.Value, error), len(outs))}
	for i, o := range outs {
		p.evals[i] = o.value.eval
	}
	return p
}

func project(s step, outs []output) rowFunc { return newProjection(s, outs).each }

func (p *projection) each(e *env, emit func([]sqltype.Value) error) error {
	var row []sqltype.Value
	return p.from.each(e, func() error {
		if row == nil || !p.reuse {
			row = make([]sqltype.Value, len(p.evals))
		}
		for i, eval := range p.evals {
			v, err := eval(e)
			if err != nil {
				return err
			}
			row[i] = v
		}
		return emit(row)
	})
}
