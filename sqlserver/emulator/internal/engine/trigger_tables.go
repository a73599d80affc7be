package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// isTransition: within a trigger, inserted and deleted are its statement's rows
// (sql-docs, "Use the inserted and deleted tables").
func (c *compiler) isTransition(name *ast.SchemaObjectName) bool {
	return c.firing != nil && name.Count == 1 &&
		(strings.EqualFold(name.BaseIdentifier.Value, "inserted") || strings.EqualFold(name.BaseIdentifier.Value, "deleted"))
}

func (c *compiler) transitionTable(name, as string, sc *scope) (*joinTree, error) {
	src, err := c.newSource(as, "", c.firing.def.outCols())
	if err != nil {
		return nil, err
	}
	if as == "" {
		src.alias = name
	}
	sc.sources = append(sc.sources, src)
	deleted := strings.EqualFold(name, "deleted")
	rows := stepFunc(func(e *env, next func() error) error {
		list := e.x.firing.rows.inserted
		if deleted {
			list = e.x.firing.rows.deleted
		}
		for _, row := range list {
			e.rows[src.slot] = row
			if err := next(); err != nil {
				return err
			}
		}
		return nil
	})
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: rows}, 0), nil
}

func errTransition() error {
	return raiseBatch(286, 16, 1, "The logical tables INSERTED and DELETED cannot be updated.")
}

// updateCall is UPDATE(column): the statement assigns the column, or inserts.
func (c *compiler) updateCall(x *ast.UpdateCall) (*predicate, error) {
	if c.firing == nil {
		return nil, raiseBatch(140, 15, 1, "Can only use IF UPDATE within a CREATE TRIGGER statement.")
	}
	at := c.firing.def.column(x.Identifier.Value)
	if at < 0 {
		return nil, errNoColumn(x.Identifier.Value)
	}
	return &predicate{eval: func(e *env) (tri, error) {
		f := e.x.firing
		return truth(f.event == onInsert || slices.Contains(f.columns, at)), nil
	}}, nil
}

var _ = register(map[string]function{
	"TRIGGER_NESTLEVEL": {0, 3, func(_ *compiler, args []*scalar) (*scalar, error) {
		if len(args) > 0 {
			return nil, notModelled("TRIGGER_NESTLEVEL of one trigger")
		}
		return &scalar{typ: intType, eval: func(e *env) (sqltype.Value, error) { return intValue(e.x.triggerNesting()), nil }}, nil
	}},
	"COLUMNS_UPDATED": {0, 0, func(*compiler, []*scalar) (*scalar, error) { return nil, notModelled("COLUMNS_UPDATED") }},
	"EVENTDATA":       {0, 0, func(*compiler, []*scalar) (*scalar, error) { return nil, notModelled("EVENTDATA") }},
})
