package engine

import "github.com/sqlc-dev/teesql/ast"

// moreDefinitions builds the rest of DDL.
func (b *builder) moreDefinitions(st ast.Statement) (node, bool, error) {
	switch st := st.(type) {
	case *ast.CreateSequenceStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.createSequence(sc, st) }), true, nil
	case *ast.AlterSequenceStatement:
		return ddl(func(x *exec, _ *statementScope) error { return x.alterSequence(st) }), true, nil
	case *ast.DropSequenceStatement:
		return b.drop("sequence object", st.Objects, st.IsIfExists, func(o object) bool { _, ok := o.(*sequence); return ok }), true, nil
	case *ast.CreateSchemaStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.createSchema(sc, st) }), true, nil
	case *ast.DropSchemaStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.dropSchema(sc, st) }), true, nil
	case *ast.CreateProcedureStatement:
		n, err := b.createProcedure(&procedureSyntax{reference: st.ProcedureReference, params: st.Parameters, body: st.StatementList, options: st.Options}, b.mod.text, lineOf(st))
		return n, true, err
	case *ast.CreateOrAlterProcedureStatement:
		n, err := b.createProcedure(&procedureSyntax{reference: st.ProcedureReference, params: st.Parameters, body: st.StatementList, options: st.Options, replace: true}, b.mod.text, lineOf(st))
		return n, true, err
	case *ast.AlterProcedureStatement:
		n, err := b.createProcedure(&procedureSyntax{reference: st.ProcedureReference, params: st.Parameters, body: st.StatementList, options: st.Options, alter: true}, b.mod.text, lineOf(st))
		return n, true, err
	case *ast.DropProcedureStatement:
		return b.drop("procedure", st.Objects, st.IsIfExists, func(o object) bool { _, ok := o.(*procedure); return ok }), true, nil
	case *ast.CreateTypeTableStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.createTableType(sc, st) }), true, nil
	case *ast.DropTypeStatement:
		return b.drop("type", []*ast.SchemaObjectName{st.Name}, st.IsIfExists, func(o object) bool { _, ok := o.(*tableTypeDef); return ok }), true, nil
	case *ast.AlterTableAddTableElementStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.alterTableAdd(sc, st) }), true, nil
	case *ast.AlterTableDropTableElementStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.alterTableDrop(sc, st) }), true, nil
	case *ast.AlterTableAlterColumnStatement:
		if st.DataType != nil && len(st.Options) > 0 {
			if err := b.onlyWords(&st.Fragment, "WITH", alterColumnWords); err != nil {
				return nil, true, err
			}
		}
		return ddl(func(x *exec, sc *statementScope) error { return x.alterColumn(sc, st) }), true, nil
	case *ast.AlterTableConstraintModificationStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.alterConstraint(sc, st) }), true, nil
	case *ast.AlterIndexStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.alterIndex(sc, st) }), true, nil
	case *ast.AlterDatabaseSetStatement:
		n, err := b.alterDatabase(st)
		return n, true, err
	case *ast.TruncateTableStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.truncate(sc, st) }), true, nil
	}
	return nil, false, nil
}

func (b *builder) drop(kind string, names []*ast.SchemaObjectName, ifExists bool, is func(object) bool) node {
	return ddl(func(x *exec, sc *statementScope) error { return x.dropObjects(sc, kind, names, ifExists, is) })
}

func (x *exec) createTableType(sc *statementScope, st *ast.CreateTypeTableStatement) error {
	e := x.s.engine
	owner, err := x.ownerSchema(st.Name)
	if err != nil {
		return err
	}
	name := st.Name.BaseIdentifier.Value
	if err := x.mayCreate("CREATE TYPE", owner); err != nil {
		return err
	}
	if err := x.claimName(sc, owner, name); err != nil {
		return err
	}
	if takesSequence(st.Definition, false) {
		return errSequenceNested()
	}
	def, err := e.memDefinition(name, st.Definition)
	if err != nil {
		return err
	}
	return e.catalog.change(sc.undo, func() (func(), error) {
		if _, ok := e.catalog.objects[nameOf(owner, name)]; ok {
			return nil, raise(219, 16, 1, "The type '%s.%s' already exists, or you do not have permission to create it.", owner, name)
		}
		return e.catalog.put(&tableTypeDef{e.catalog.newHeader(owner, name), def}), nil
	})
}

// truncate empties a table under Sch-M.
func (x *exec) truncate(sc *statementScope, st *ast.TruncateTableStatement) error {
	if len(st.PartitionRanges) > 0 {
		return notModelled("TRUNCATE of partitions")
	}
	def, err := x.lockForDDL(sc, func() (*tableDef, error) {
		def, err := x.tableForDDL(st.TableName, "TRUNCATE")
		if se, ok := err.(*sqlError); ok && se.Number == 1088 {
			return nil, raise(4701, 16, 1, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", objectText(st.TableName))
		}
		return def, err
	})
	if err != nil {
		return err
	}
	next := def.copy()
	if err := x.s.engine.attach(x, sc, next.withOwnIndexes()); err != nil {
		return err
	}
	if id := def.identity; id != nil {
		next.identity = &identity{column: id.column, seed: id.seed, increment: id.increment, next: id.seed}
	}
	return x.replaceTable(sc, next)
}

// withOwnIndexes gives a copied definition index definitions of its own, for a
// new store.
func (t *tableDef) withOwnIndexes() *tableDef {
	for i, ix := range t.indexes {
		n := *ix
		t.indexes[i] = &n
	}
	return t
}
