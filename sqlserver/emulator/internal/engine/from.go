package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// joinTree is the FROM clause before planning: leaves and joins.
type joinTree struct {
	// leaf is set for a table source.
	leaf *leaf
	// left and right for a join; outer for LEFT and OUTER APPLY.
	left, right *joinTree
	outer       bool
	// on are the join's conditions.
	on []*predicate
	// hinted keeps the order as written (INNER LOOP JOIN).
	hinted bool
	slots  slotSet
	// needs are the slots of outer sources that a correlated leaf reads.
	needs slotSet
}

// leaf is a table source to plan: a stored table, or rows that come whole.
type leaf struct {
	src   *source
	hints *tableHints
	// rows produces the source's rows; nil for a stored table.
	rows rowset
	// target: the statement changes this table.
	target bool
	// scan is the plan, once there is one.
	scan *scan
}

// rowset produces rows into its source's slot.
type rowset interface {
	each(e *env, next func() error) error
}

func leafTree(l *leaf, needs slotSet) *joinTree {
	return &joinTree{leaf: l, slots: 1 << l.src.slot, needs: needs}
}

// fromClause compiles the table references of a query, joined by commas.
func (c *compiler) fromClause(list []ast.TableReference, sc *scope) (*joinTree, error) {
	if len(list) == 0 { // what is left of one that the parser gave up on
		return nil, errSyntax("FROM")
	}
	var tree *joinTree
	for _, ref := range list {
		t, err := c.tableReference(ref, sc)
		if err != nil {
			return nil, err
		}
		tree = innerJoin(tree, t)
	}
	return tree, exposedOnce(sc.sources)
}

// exposedOnce: no two table sources of a FROM go by one name (sql-docs,
// from-transact-sql.md).
func exposedOnce(list []*source) error {
	for i, s := range list {
		for _, earlier := range list[:i] {
			switch {
			case s.alias == "" || !strings.EqualFold(s.alias, earlier.alias):
			case s.schema == "" && earlier.schema == "":
				return raiseBatch(1011, 16, 1, "The correlation name '%s' is specified multiple times in a FROM clause.", s.alias)
			case s.schema == "":
				return raiseBatch(1012, 16, 1, "The correlation name '%s' has the same exposed name as table '%s'.", s.alias, earlier.alias)
			case earlier.schema == "":
				return raiseBatch(1012, 16, 1, "The correlation name '%s' has the same exposed name as table '%s'.", earlier.alias, s.alias)
			default: // of other schemas too
				return raiseBatch(1013, 16, 1, "The objects \"%s\" and \"%s\" in the FROM clause have the same exposed names. Use correlation names to distinguish them.", s.alias, earlier.alias)
			}
		}
	}
	return nil
}

func innerJoin(a, b *joinTree) *joinTree {
	if a == nil {
		return b
	}
	return &joinTree{left: a, right: b, slots: a.slots | b.slots, needs: a.needs | b.needs}
}

// tableReference compiles one table reference and adds its sources to the
// scope.
func (c *compiler) tableReference(ref ast.TableReference, sc *scope) (*joinTree, error) {
	id, needed := aliasOf(ref)
	if err := unnamed(id); err != nil {
		return nil, err
	}
	if needed && id == nil {
		return nil, errSyntax(")") // a derived table has a name (sql-docs, from-transact-sql.md)
	}
	switch ref := ref.(type) {
	case *ast.NamedTableReference:
		return c.namedTable(ref, sc)
	case *ast.VariableTableReference:
		return c.variableTable(ref, sc)
	case *ast.QueryDerivedTable:
		return c.subquery(ref.QueryExpression, alias(ref.Alias), ref.Columns, c.lateral(sc), sc)
	case *ast.InlineDerivedTable:
		return c.inlineTable(ref, sc)
	case *ast.OpenJsonTableReference:
		return c.openJSON(ref, sc)
	case *ast.GlobalFunctionTableReference:
		return c.tableFunction(ref.Name.Value, ref.Parameters, alias(ref.Alias), ref.Columns, sc)
	case *ast.SchemaObjectFunctionTableReference:
		if strings.EqualFold(ref.SchemaObject.BaseIdentifier.Value, "OPENJSON") && ref.SchemaObject.Count == 1 && len(ref.Parameters) > 0 {
			return c.openJSON(&ast.OpenJsonTableReference{Variable: ref.Parameters[0], Alias: ref.Alias}, sc)
		}
		return c.tableFunction(objectText(ref.SchemaObject), ref.Parameters, alias(ref.Alias), ref.Columns, sc)
	case *ast.JoinParenthesisTableReference:
		return c.tableReference(ref.Join, sc)
	case *ast.QualifiedJoin:
		return c.qualifiedJoin(ref, sc)
	case *ast.UnqualifiedJoin:
		return c.unqualifiedJoin(ref, sc)
	}
	return nil, notModelled("the table reference %s", syntaxName(ref))
}

func alias(id *ast.Identifier) string {
	if id == nil {
		return ""
	}
	return id.Value
}

func (c *compiler) qualifiedJoin(ref *ast.QualifiedJoin, sc *scope) (*joinTree, error) {
	first, second := ref.FirstTableReference, ref.SecondTableReference
	outer := false
	switch ref.QualifiedJoinType {
	case "Inner":
	case "LeftOuter":
		outer = true
	case "RightOuter":
		outer = true
		first, second = second, first
	default:
		return nil, notModelled("%s joins", ref.QualifiedJoinType)
	}
	switch ref.JoinHint {
	case "", "None", "Loop", "Hash", "Merge":
	default:
		return nil, errSyntax(ref.JoinHint)
	}
	left, err := c.tableReference(first, sc)
	if err != nil {
		return nil, err
	}
	right, err := c.tableReference(second, sc)
	if err != nil {
		return nil, err
	}
	switch {
	case takesSequence(ref.SearchCondition, false):
		return nil, errSequenceClause()
	case aggregates(ref.SearchCondition):
		return nil, raiseBatch(1015, 15, 1, "An aggregate cannot appear in an ON clause unless it is in a subquery contained in a HAVING clause or select list, and the column being aggregated is an outer reference.")
	}
	on, err := c.conjuncts(ref.SearchCondition, sc)
	if err != nil {
		return nil, err
	}
	if ref.SearchCondition == nil {
		return nil, errSyntax("JOIN")
	}
	if err := c.joinable(ref.JoinHint, ref.SearchCondition); err != nil {
		return nil, err
	}
	t := innerJoin(left, right)
	t.outer, t.on = outer, on
	t.hinted = ref.JoinHint != "" && ref.JoinHint != "None"
	return t, nil
}

// equates says whether a condition compares two columns for equality, without
// which there is no hash or merge join.
func equates(x ast.BooleanExpression) bool {
	switch x := x.(type) {
	case *ast.BooleanParenthesisExpression:
		return equates(x.Expression)
	case *ast.BooleanBinaryExpression:
		return x.BinaryExpressionType == "And" && (equates(x.FirstExpression) || equates(x.SecondExpression))
	case *ast.BooleanComparisonExpression:
		_, a := x.FirstExpression.(*ast.ColumnReferenceExpression)
		_, b := x.SecondExpression.(*ast.ColumnReferenceExpression)
		return x.ComparisonType == "Equals" && a && b
	}
	return false
}

func (c *compiler) unqualifiedJoin(ref *ast.UnqualifiedJoin, sc *scope) (*joinTree, error) {
	left, err := c.tableReference(ref.FirstTableReference, sc)
	if err != nil {
		return nil, err
	}
	// the right side of APPLY sees the left one's columns
	outer := c.applying
	c.applying = outer || ref.UnqualifiedJoinType != "CrossJoin"
	right, err := c.tableReference(ref.SecondTableReference, sc)
	c.applying = outer
	if err != nil {
		return nil, err
	}
	t := innerJoin(left, right)
	switch ref.UnqualifiedJoinType {
	case "CrossJoin":
	case "CrossApply":
		t.hinted = true
	case "OuterApply":
		t.outer = true
	default:
		return nil, notModelled("the join %s", ref.UnqualifiedJoinType)
	}
	return t, nil
}

// conjuncts splits a condition at its ANDs, so that each part can be tested as
// early as its columns are there.
func (c *compiler) conjuncts(x ast.BooleanExpression, sc *scope) ([]*predicate, error) {
	switch y := x.(type) {
	case nil:
		return nil, nil
	case *ast.BooleanParenthesisExpression:
		return c.conjuncts(y.Expression, sc)
	case *ast.BooleanBinaryExpression:
		if y.BinaryExpressionType == "And" {
			a, err := c.conjuncts(y.FirstExpression, sc)
			if err != nil {
				return nil, err
			}
			b, err := c.conjuncts(y.SecondExpression, sc)
			return append(a, b...), err
		}
	}
	before := make([]columnSet, len(c.slots))
	for i, src := range c.slots {
		before[i] = src.used
	}
	p, err := c.condition(x, sc)
	if err != nil {
		return nil, err
	}
	if len(p.sargs) == 1 && p.sargs[0].op == "=" && p.sargs[0].value.constant {
		at := p.sargs[0].column
		src := c.slots[at.slot]
		src.used = before[at.slot]
		src.fixed.add(at.column)
	}
	return []*predicate{p}, nil
}

// namedTable is a table, a CTE, a catalog view or inserted/deleted.
func (c *compiler) namedTable(ref *ast.NamedTableReference, sc *scope) (*joinTree, error) {
	if ref.TableSampleClause != nil || ref.TemporalClause != nil {
		return nil, notModelled("TABLESAMPLE and FOR SYSTEM_TIME")
	}
	name := ref.SchemaObject
	as := alias(ref.Alias)
	if name.Count == 1 {
		if t := c.findCTE(name.BaseIdentifier.Value); t != nil {
			if as == "" {
				as = t.name
			}
			// the CTE's own query sees only the ones before it
			outer, within := c.ctes, c.within
			c.ctes, c.within = c.ctes[:t.depth], append(c.within[:len(c.within):len(c.within)], t.name)
			defer func() { c.ctes, c.within = outer, within }()
			return c.subquery(t.query, as, t.columns, nil, sc)
		}
	}
	if name.Count == 1 && slices.ContainsFunc(c.within, func(cte string) bool { return strings.EqualFold(cte, name.BaseIdentifier.Value) }) {
		return nil, notModelled("recursive common table expressions")
	}
	hints, err := c.tableHints(ref.TableHints)
	if err != nil {
		return nil, err
	}
	if c.isTransition(name) {
		return c.transitionTable(name.BaseIdentifier.Value, as, sc)
	}
	switch v, err := c.engine.systemView(name); {
	case err != nil:
		return nil, err
	case v != nil:
		return c.catalogView(v, name.BaseIdentifier.Value, as, sc)
	}
	def, err := c.table(name)
	if err != nil {
		return nil, err
	}
	c.reads = true
	src, err := c.tableSource(def, as)
	if err != nil {
		return nil, err
	}
	sc.sources = append(sc.sources, src)
	l := &leaf{src: src, hints: hints}
	if c.leaves == nil {
		c.leaves = make(map[int]*leaf)
	}
	c.leaves[src.slot] = l
	return leafTree(l, 0), nil
}

// tableSource gives a stored table a slot.
func (c *compiler) tableSource(def *tableDef, as string) (*source, error) {
	schema := ""
	if as == "" {
		as, schema = def.name, def.schema
	}
	src, err := c.newSource(as, schema, def.outCols())
	if err != nil {
		return nil, err
	}
	src.table = def
	src.columnOf = make([]columnRef, len(src.cols))
	for i := range src.cols {
		src.columnOf[i] = columnRef{src.slot, i, true}
	}
	return src, nil
}

func (t *tableDef) outCols() []outCol {
	cols := make([]outCol, len(t.columns))
	for i, col := range t.columns {
		cols[i] = outCol{name: col.name, typ: col.typ, nullable: col.nullable, identity: col.identity}
	}
	return cols
}

// table finds a stored table by its name; 208 when there is none.
func (c *compiler) table(name *ast.SchemaObjectName) (*tableDef, error) {
	if strings.HasPrefix(name.BaseIdentifier.Value, "#") {
		c.sessionOnly = true
		if t := c.session.temp.find(name.BaseIdentifier.Value); t != nil {
			return t, nil
		}
		return nil, errNoObject(name.BaseIdentifier.Value)
	}
	o, err := c.lookup(name)
	if err != nil {
		return nil, err
	}
	t, ok := o.(*tableDef)
	if !ok {
		return nil, errNoObject(objectText(name))
	}
	return t, nil
}

// lookup finds an object by a name of one to three parts.
func (e *Engine) lookup(name *ast.SchemaObjectName) (object, error) {
	if err := e.reach(partsOf(name)); err != nil {
		return nil, err
	}
	if e.isOther(partsOf(name)) {
		return nil, errNoObject(objectText(name))
	}
	if o := e.catalog.find(nameOf(schemaOf(name), name.BaseIdentifier.Value)); o != nil {
		return o, nil
	}
	return nil, errNoObject(objectText(name))
}

// schemaOf is the name's schema; dbo is everybody's default.
func schemaOf(name *ast.SchemaObjectName) string {
	if name.SchemaIdentifier == nil || name.SchemaIdentifier.Value == "" {
		return "dbo"
	}
	return name.SchemaIdentifier.Value
}

func objectText(name *ast.SchemaObjectName) string { return strings.Join(partsOf(name), ".") }

func partsOf(name *ast.SchemaObjectName) []string {
	parts := make([]string, len(name.Identifiers))
	for i, id := range name.Identifiers {
		parts[i] = id.Value
	}
	return parts
}
