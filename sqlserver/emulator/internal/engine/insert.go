package engine

import (
	"errors"
	"slices"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// insertPlan is a compiled INSERT.
type insertPlan struct {
	target *target
	hints  *tableHints
	// columns are the ordinals that the source fills; defaults has an
	// expression for each other one that has a default. forNull are those that a
	// bulk load puts where it was sent NULL.
	columns           []int
	defaults, forNull []*scalar
	rows              rowFunc
	limit             *limit
	output            *outputClause
	// explicitIdentity: the statement names the IDENTITY column.
	explicitIdentity bool
}

type insertion struct{ unit *unit[*insertPlan] }

func (b *builder) insertStatement(st *ast.InsertStatement) (node, error) {
	hints, err := optimizerHints(st.OptimizerHints)
	if err != nil {
		return nil, err
	}
	if _, ok := st.InsertSpecification.InsertSource.(*ast.ExecuteInsertSource); ok {
		return nil, notModelled("INSERT … EXEC")
	}
	return &insertion{newUnit(b, lineOf(st), func(c *compiler) (*insertPlan, error) {
		c.hints = hints
		if err := c.pushCTEs(st.WithCtesAndXmlNamespaces); err != nil {
			return nil, err
		}
		return c.insert(st.InsertSpecification)
	})}, nil
}

func (c *compiler) insert(spec *ast.InsertSpecification) (*insertPlan, error) {
	t, err := c.writeTarget(spec.Target)
	if err != nil {
		return nil, err
	}
	c.writeNeed(t.def, "INSERT", 0)
	c.reads = true
	t.usage = c.engine.usage.updates(t.def, nil)
	p := &insertPlan{target: t, hints: &tableHints{indexID: -1}}
	if named, ok := spec.Target.(*ast.NamedTableReference); ok {
		if p.hints, err = c.targetHints(named.TableHints, "INSERT"); err != nil {
			return nil, err
		}
	}
	if p.columns, err = insertColumns(t.def, spec.Columns); err != nil {
		return nil, err
	}
	for _, col := range p.columns {
		p.explicitIdentity = p.explicitIdentity || (t.def.columns[col].identity && len(spec.Columns) > 0)
	}
	if err := c.insertSource(p, spec); err != nil {
		return nil, err
	}
	source := c.draws
	if p.defaults, err = c.defaults(t.def, p.columns); err != nil {
		return nil, err
	}
	if err := c.defaultDraws(spec, source); err != nil {
		return nil, err
	}
	if spec.TopRowFilter != nil {
		if p.limit, err = c.limit(spec.TopRowFilter, nil, &scope{}); err != nil {
			return nil, err
		}
	}
	p.output, err = c.output(spec.OutputClause, spec.OutputIntoClause, t, onInsert, nil)
	return p, err
}

// writeTarget is the table of an INSERT.
func (c *compiler) writeTarget(ref ast.TableReference) (*target, error) {
	switch ref := ref.(type) {
	case *ast.VariableTableReference:
		i, v, ok := c.vars.table(ref.Variable.Name)
		if !ok {
			return nil, errUndeclaredTable(ref.Variable.Name)
		}
		if v.readOnly {
			return nil, raiseBatch(10700, 16, 1, "The table-valued parameter \"%s\" is READONLY and cannot be modified.", v.name)
		}
		src, err := c.newSource(v.name, "", v.def.outCols())
		if err != nil {
			return nil, err
		}
		return c.newTarget(v.def, i, src)
	case *ast.NamedTableReference:
		if c.isTransition(ref.SchemaObject) {
			return nil, errTransition()
		}
		if c.engine.exists(viewKey(ref.SchemaObject)) {
			return nil, errSystemCatalog()
		}
		def, err := c.table(ref.SchemaObject)
		if err != nil {
			return nil, err
		}
		src, err := c.newSource(def.name, def.schema, def.outCols())
		if err != nil {
			return nil, err
		}
		return c.newTarget(def, -1, src)
	}
	return nil, notModelled("INSERT into %s", syntaxName(ref))
}

func errSystemCatalog() error {
	return raiseBatch(259, 16, 1, "Ad hoc updates to system catalogs are not allowed.")
}

// insertColumns are the ordinals that a column list names, or all that can be
// filled.
func insertColumns(def *tableDef, list []*ast.ColumnReferenceExpression) ([]int, error) {
	var cols []int
	if len(list) == 0 {
		for i, c := range def.columns {
			if !c.identity {
				cols = append(cols, i)
			}
		}
		return cols, nil
	}
	seen := make(map[int]bool)
	for _, ref := range list {
		ids := ref.MultiPartIdentifier.Identifiers
		name := ids[len(ids)-1].Value
		i := def.column(name)
		if i < 0 {
			return nil, errNoColumn(name)
		}
		if seen[i] {
			return nil, errColumnTwice(name)
		}
		seen[i] = true
		cols = append(cols, i)
	}
	return cols, nil
}

func errColumnTwice(name string) error {
	return raiseBatch(264, 16, 1, "The column name '%s' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once. If this statement updates or inserts columns into a view, column aliasing can conceal the duplication in your code.", name)
}

// defaults compiles the defaults of the columns that are not filled.
func (c *compiler) defaults(def *tableDef, filled []int) ([]*scalar, error) {
	c.draws, c.defaulting = nil, true
	defer func() { c.defaulting = false }()
	out := make([]*scalar, len(def.columns))
	for i, col := range def.columns {
		if col.def == nil || slices.Contains(filled, i) {
			continue
		}
		level := c.level
		c.level = nil
		before := len(c.needs)
		s, err := c.expression(col.def.expr, &scope{})
		c.level = level
		c.chainDefault(before, &def.objectHeader)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

func (c *compiler) defaultOf(def *tableDef, col *columnDef) (*scalar, error) {
	if col.def == nil {
		return literal(col.typ, sqltype.Value{}), nil
	}
	before := len(c.needs)
	s, err := c.expression(col.def.expr, &scope{})
	c.chainDefault(before, &def.objectHeader)
	return s, err
}

// build makes a whole row of the source's values and the defaults.
func (t *target) build(e *env, columns []int, values []sqltype.Value, defaults []*scalar) ([]sqltype.Value, error) {
	row := make([]sqltype.Value, len(t.def.columns))
	for i, col := range columns {
		v, err := t.store(col, values[i])
		if err != nil {
			return nil, err
		}
		row[col] = v
	}
	for i, d := range defaults {
		if d == nil {
			continue
		}
		v, err := d.eval(e)
		if err != nil {
			return nil, err
		}
		if row[i], err = t.store(i, v); err != nil {
			return nil, err
		}
	}
	return row, nil
}

func (n *insertion) run(x *exec) (signal, error) {
	for {
		err := n.insert(x)
		if !errors.Is(err, errStalePlan) {
			return goOn, err
		}
	}
}

func (n *insertion) insert(x *exec) error {
	p, e, err := n.unit.get(x)
	if err != nil {
		return err
	}
	if err := p.target.writable(x, "INSERT"); err != nil {
		return err
	}
	res := &results{clause: p.output}
	count, err := x.change(p.target, onInsert, nil, res, func(sc *statementScope) (int64, error) {
		e.tx = sc.tx
		mode := storage.IX
		if p.hints.tableLock != 0 {
			mode = storage.X // TABLOCK too, in an INSERT
		}
		if err := p.target.claim(e, mode); err != nil {
			return 0, err
		}
		p.target.count()
		rows, err := p.collect(e)
		if err != nil {
			return 0, err
		}
		for _, values := range rows {
			if err := p.insertRow(e, values, res); err != nil {
				return 0, err
			}
		}
		return int64(len(rows)), nil
	})
	if err != nil {
		return err
	}
	return res.finish(x, count)
}

// collect reads the whole source before the first row is written, so that the
// statement does not read its own rows.
func (p *insertPlan) collect(e *env) ([][]sqltype.Value, error) {
	var rows [][]sqltype.Value
	count := int64(-1)
	if p.limit != nil {
		var err error
		if _, count, err = p.limit.bounds(e); err != nil {
			return nil, err
		}
	}
	stop := new(stopSignal)
	err := p.rows(e, func(row []sqltype.Value) error {
		if count == 0 {
			return stop
		}
		count--
		rows = append(rows, row)
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return rows, err
}

func (p *insertPlan) insertRow(e *env, values []sqltype.Value, res *results) error {
	def := p.target.def
	row, err := p.target.build(e, p.columns, values, p.defaults)
	if err != nil {
		return err
	}
	if def.identity != nil {
		if err := p.identity(e, row); err != nil {
			return err
		}
	}
	if err := p.target.check(e, row, "INSERT"); err != nil {
		return err
	}
	if err := p.target.insert(e, row); err != nil {
		return err
	}
	return res.add(e, row, nil)
}
