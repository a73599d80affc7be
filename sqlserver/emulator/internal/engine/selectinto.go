package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// selectInto is SELECT … INTO #t: a new heap with the query's columns.
func (b *builder) selectInto(st *ast.SelectStatement) (node, error) {
	name := st.Into.BaseIdentifier.Value
	if !strings.HasPrefix(name, "#") || strings.HasPrefix(name, "##") {
		return nil, notModelled("SELECT INTO a permanent table")
	}
	u := newUnit(b, lineOf(st), func(c *compiler) (*query, error) {
		if err := c.pushCTEs(st.WithCtesAndXmlNamespaces); err != nil {
			return nil, err
		}
		q, err := c.query(st.QueryExpression, &scope{})
		switch {
		case err != nil:
			return nil, err
		case q.assign != nil:
			return nil, raiseBatch(194, 15, 1, "A SELECT INTO statement cannot contain a SELECT statement that assigns values to a variable.")
		}
		if err := q.collated(); err != nil {
			return nil, err
		}
		return q, nameColumns(q.cols, nil, name)
	})
	return &intoTable{u, name}, nil
}

type intoTable struct {
	unit *unit[*query]
	name string
}

func (n *intoTable) run(x *exec) (signal, error) {
	q, e, err := n.unit.get(x)
	if err != nil {
		return goOn, err
	}
	if x.s.temp.find(n.name) != nil {
		return goOn, errExists(n.name)
	}
	eng := x.s.engine
	eng.catalog.mu.Lock()
	def := &tableDef{objectHeader: eng.catalog.newHeader("dbo", n.name), temp: true, fullName: "tempdb.dbo." + n.name, nextIndexID: 2}
	eng.catalog.mu.Unlock()
	for i, c := range q.cols {
		def.columns = append(def.columns, &columnDef{id: i + 1, name: c.name, typ: c.typ, nullable: c.nullable})
	}
	def.nextColumnID = len(def.columns) + 1
	count := int64(0)
	err = x.inTransaction(true, func(sc *statementScope) error {
		e.tx = sc.tx
		if err := eng.attach(x, sc, def); err != nil {
			return err
		}
		temp := x.s.temp
		temp.put(def)
		*sc.undo = append(*sc.undo, func() { temp.remove(n.name) })
		return q.each(e, func(row []sqltype.Value) error {
			count++
			return sc.tx.Insert(x.ctx, def.store, row)
		})
	})
	if err != nil {
		return goOn, err
	}
	return goOn, x.done(count)
}
