package engine

import (
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// outputClause is OUTPUT, to the client or INTO a table, or both.
type outputClause struct {
	client *query
	into   *outputInto
	// inserted and deleted are the slots of the pseudo tables.
	inserted, deleted int
}

type outputInto struct {
	target  *target
	columns []int
	rows    *query
	// defaults fill the columns that are not named.
	defaults []*scalar
}

// output compiles the OUTPUT clauses of a statement. sources are those of its
// FROM; inserted and deleted are added as the statement has them.
func (c *compiler) output(out *ast.OutputClause, into *ast.OutputIntoClause, t *target, event triggerEvents, sources []*source) (*outputClause, error) {
	if out == nil && into == nil {
		return nil, nil
	}
	def := t.def
	if out != nil && t.variable < 0 && def.fires(event) {
		return nil, raiseBatch(334, 16, 1, "The target table '%s' of the DML statement cannot have any enabled triggers if the statement contains an OUTPUT clause without INTO clause.", def.name)
	}
	o := &outputClause{inserted: -1, deleted: -1}
	sc := &scope{qualified: true}
	pseudo := func(name string) (int, error) {
		src, err := c.newSource(name, "", def.outCols())
		if err != nil {
			return -1, err
		}
		sc.sources = append(sc.sources, src)
		if t.variable < 0 {
			c.pseudo = append(c.pseudo, pseudoTable{src, def})
		}
		return src.slot, nil
	}
	var err error
	if event != onDelete {
		if o.inserted, err = pseudo("inserted"); err != nil {
			return nil, err
		}
	}
	if event != onInsert {
		if o.deleted, err = pseudo("deleted"); err != nil {
			return nil, err
		}
	}
	sc.sources = append(sc.sources, sources...)
	if out != nil {
		if o.client, err = c.outputList(out.SelectColumns, sc); err != nil {
			return nil, err
		}
	}
	if into != nil {
		if o.into, err = c.outputInto(into, sc); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (c *compiler) outputList(list []ast.SelectElement, sc *scope) (*query, error) {
	switch {
	case takesSequence(list, false):
		return nil, errSequenceClause()
	case aggregates(list):
		return nil, raiseBatch(158, 15, 1, "An aggregate may not appear in the OUTPUT clause.")
	case queries(list):
		return nil, raiseBatch(10705, 15, 1, "Subqueries are not allowed in the OUTPUT clause.")
	}
	outs, err := c.selectList(list, sc)
	if err != nil {
		return nil, err
	}
	q := newQuery(outs)
	q.each = project(once{}, outs)
	return q, nil
}

func (c *compiler) outputInto(into *ast.OutputIntoClause, sc *scope) (*outputInto, error) {
	rows, err := c.outputList(into.SelectColumns, sc)
	if err != nil {
		return nil, err
	}
	t, err := c.writeTarget(into.IntoTable)
	if err != nil {
		return nil, err
	}
	c.writeNeed(t.def, "INSERT", 0)
	if err := t.mayTakeOutput(); err != nil {
		return nil, err
	}
	cols, err := insertColumns(t.def, into.IntoTableColumns)
	if err != nil {
		return nil, err
	}
	if len(cols) != len(rows.cols) {
		return nil, raiseBatch(213, 16, 7, "Column name or number of supplied values does not match table definition.")
	}
	if err := rows.assignable(t.def, cols); err != nil {
		return nil, err
	}
	o := &outputInto{target: t, columns: cols, rows: rows}
	o.defaults, err = c.defaults(t.def, cols)
	return o, err
}

// mayTakeOutput: the target of OUTPUT INTO has no enabled triggers and no CHECK
// constraints (sql-docs, "OUTPUT clause").
func (t *target) mayTakeOutput() error {
	if t.variable >= 0 {
		return nil
	}
	if t.def.fires(onInsert | onUpdate | onDelete) {
		return raiseBatch(331, 16, 1, "The target table '%s' of the OUTPUT INTO clause cannot have any enabled triggers.", t.def.name)
	}
	if len(t.checks) > 0 {
		return raiseBatch(333, 16, 1, "The target table '%s' of the OUTPUT INTO clause cannot have any enabled check constraints or any enabled rules. Found check constraint or rule '%s'.", t.def.name, t.checks[0].def.name)
	}
	return nil
}

// results collects a statement's OUTPUT rows, and for its triggers what it has
// changed.
type results struct {
	clause  *outputClause
	rows    [][]sqltype.Value
	changed *transition
}

// add evaluates the clauses for one changed row.
func (r *results) add(e *env, inserted, deleted []sqltype.Value) error {
	if r.changed != nil {
		r.changed.add(inserted, deleted)
	}
	o := r.clause
	if o == nil {
		return nil
	}
	if o.inserted >= 0 {
		e.rows[o.inserted] = inserted
	}
	if o.deleted >= 0 {
		e.rows[o.deleted] = deleted
	}
	if o.client != nil {
		if err := o.client.each(e, func(row []sqltype.Value) error {
			r.rows = append(r.rows, row)
			return nil
		}); err != nil {
			return err
		}
	}
	if o.into == nil {
		return nil
	}
	return o.into.rows.each(e, func(row []sqltype.Value) error {
		full, err := o.into.target.build(e, o.into.columns, row, o.into.defaults)
		if err != nil {
			return err
		}
		if err := o.into.target.check(e, full, "INSERT"); err != nil {
			return err
		}
		return o.into.target.insert(e, full)
	})
}

// finish sends the rows and ends the statement.
func (r *results) finish(x *exec, count int64) error {
	if r.clause != nil && r.clause.client != nil {
		if err := x.w.Columns(r.clause.client.columns()); err != nil {
			return err
		}
		for _, row := range r.rows {
			if err := x.w.Row(row); err != nil {
				return err
			}
		}
	}
	return x.done(count)
}
