package engine

import (
	"errors"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// selection is a SELECT statement.
type selection struct {
	unit *unit[*query]
}

func (b *builder) selectStatement(st *ast.SelectStatement) (node, error) {
	if st.Into != nil {
		return b.selectInto(st)
	}
	if st.On != nil {
		return nil, notModelled("SELECT INTO ON a filegroup")
	}
	hints, err := optimizerHints(st.OptimizerHints)
	if err != nil {
		return nil, err
	}
	parameterize := b.parameterize(st, hints)
	u := newUnit(b, lineOf(st), func(c *compiler) (*query, error) {
		c.parameterized, c.hints = parameterize(), hints
		if err := c.pushCTEs(st.WithCtesAndXmlNamespaces); err != nil {
			return nil, err
		}
		q, err := c.query(st.QueryExpression, &scope{})
		if err == nil {
			err = q.collated()
		}
		if err == nil && q.projection != nil {
			q.projection.reuse = true
		}
		return q, err
	})
	return &selection{u}, nil
}

// columns are a query's columns as the protocol sends them.
func (q *query) columns() []tds.Column {
	cols := make([]tds.Column, len(q.cols))
	for i, c := range q.cols {
		cols[i] = tds.Column{Name: c.name, Type: c.typ, Nullable: c.nullable, Identity: c.identity}
	}
	return cols
}

func (n *selection) run(x *exec) (signal, error) {
	q, e, err := n.unit.get(x)
	if err != nil {
		return goOn, err
	}
	if q.assign != nil {
		return goOn, x.assignSelect(q, e)
	}
	if x.s.set.fmtOnly {
		if err := x.w.Columns(q.columns()); err != nil {
			return goOn, err
		}
		return goOn, x.w.Done(0, false)
	}
	count := int64(0)
	sent := false
	limit := x.s.set.rowCount
	err = x.inTransaction(false, func(sc *statementScope) error {
		e.tx = sc.tx
		stop := new(stopSignal)
		err := q.each(e, func(row []sqltype.Value) error {
			if !sent {
				sent = true
				if err := x.w.Columns(q.columns()); err != nil {
					return err
				}
			}
			count++
			if err := x.w.Row(row); err != nil {
				return err
			}
			if count == limit {
				return stop
			}
			return nil
		})
		if errors.Is(err, stop) {
			return nil
		}
		return err
	})
	if sent && errors.Is(err, errStalePlan) { // too late to begin again
		se, _ := asSQLError(err)
		return goOn, se
	}
	if err != nil {
		return goOn, err
	}
	if !sent {
		if err := x.w.Columns(q.columns()); err != nil {
			return goOn, err
		}
	}
	return goOn, x.done(count)
}

// assignSelect is SELECT @v = …: each row assigns, so the last one stays.
func (x *exec) assignSelect(q *query, e *env) error {
	count := int64(0)
	err := x.inTransaction(false, func(sc *statementScope) error {
		e.tx = sc.tx
		return q.each(e, func(row []sqltype.Value) error {
			count++
			for i, target := range q.assign {
				x.vars[target] = row[i]
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return x.done(count)
}
