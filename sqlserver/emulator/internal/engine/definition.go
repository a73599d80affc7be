package engine

import (
	"github.com/sqlc-dev/teesql/ast"
)

// ddl is a statement that changes the catalog. It runs in a transaction and
// rolls back with it.
type ddl func(x *exec, sc *statementScope) error

func (f ddl) run(x *exec) (signal, error) {
	if x.s.engine.database.readOnly.Load() {
		return goOn, raise(3906, 16, 1, "Failed to update database \"%s\" because the database is read-only.", x.s.engine.config.Database)
	}
	if err := x.inTransaction(true, func(sc *statementScope) (err error) {
		defer incomplete(&err)
		return f(x, sc)
	}); err != nil {
		return goOn, err
	}
	x.quiet(0)
	return goOn, x.w.Done(0, false)
}

// definition builds DDL; ok is false for other statements.
func (b *builder) definition(st ast.Statement) (n node, ok bool, err error) {
	switch st := st.(type) {
	case *ast.CreateTableStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.createTable(sc, st) }), true, nil
	case *ast.CreateIndexStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.createIndex(sc, st) }), true, nil
	case *ast.DropTableStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.dropTables(sc, st) }), true, nil
	case *ast.DropIndexStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.dropIndexes(sc, st) }), true, nil
	}
	if n, ok, err := b.triggerStatement(st); ok || err != nil {
		return n, ok, err
	}
	if n, ok, err := b.statisticsStatement(st); ok || err != nil {
		return n, ok, err
	}
	if n, ok, err := b.securityStatement(st); ok || err != nil {
		return n, ok, err
	}
	return b.moreDefinitions(st)
}
