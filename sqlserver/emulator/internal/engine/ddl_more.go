package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

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

func (x *exec) createSchema(sc *statementScope, st *ast.CreateSchemaStatement) error {
	if st.Name == nil || len(statements(st.StatementList)) > 0 {
		return notModelled("CREATE SCHEMA with objects")
	}
	c := x.s.engine.catalog
	name := st.Name.Value
	owner := x.s.userID()
	if err := x.claimName(sc, "", name); err != nil {
		return err
	}
	if !x.mayInDatabase("CREATE SCHEMA") {
		denied := raise(2759, 16, 0, "CREATE SCHEMA failed due to previous errors.")
		denied.before = raise(262, 14, 1, "CREATE SCHEMA permission denied in database '%s'.", x.s.engine.config.Database)
		return denied
	}
	if st.Owner != nil {
		if owner = c.userNamed(st.Owner.Value); owner < 0 || (owner != x.s.userID() && x.s.userID() != dboID) {
			return raise(15151, 16, 1, "Cannot find the user '%s', because it does not exist or you do not have permission.", st.Owner.Value)
		}
	}
	return c.change(sc.undo, func() (func(), error) {
		key := strings.ToLower(name)
		if _, ok := c.schemas[key]; ok {
			return nil, errExists(name)
		}
		id := int32(5)
		for _, s := range c.schemas {
			if s.id >= id && s.id < 16384 {
				id = s.id + 1
			}
		}
		c.schemas[key] = &schema{id, name, owner}
		return func() { delete(c.schemas, key) }, nil
	})
}

func (x *exec) dropSchema(sc *statementScope, st *ast.DropSchemaStatement) error {
	c := x.s.engine.catalog
	name := st.Schema.BaseIdentifier.Value
	key := strings.ToLower(name)
	if err := x.claimName(sc, "", name); err != nil {
		return err
	}
	if s := c.schema(name); s == nil || s.id < 5 || !x.mayInSchema("CONTROL", name) {
		if st.IsIfExists && s == nil {
			return nil
		}
		return raise(15151, 16, 1, "Cannot drop the schema '%s', because it does not exist or you do not have permission.", name)
	}
	return c.change(sc.undo, func() (func(), error) {
		for n, o := range c.objects {
			if n.schema == key {
				return nil, raise(3729, 16, 1, "Cannot drop schema '%s' because it is being referenced by object '%s'.", name, o.header().name)
			}
		}
		old := c.schemas[key]
		delete(c.schemas, key)
		return func() { c.schemas[key] = old }, nil
	})
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

// ignoredDatabaseOptions are accepted by ALTER DATABASE … SET and mean nothing
// here.
var ignoredDatabaseOptions = map[string]bool{
	"AllowSnapshotIsolation": true, "AutoUpdateStatistics": true, "AutoUpdateStatisticsAsync": true,
	"AutoShrink": true, "AutoClose": true, "TornPageDetection": true, "QueryStore": true, "AutoCreateStatistics": true,
}

// alterDatabase is ALTER DATABASE … SET for a few options.
func (b *builder) alterDatabase(st *ast.AlterDatabaseSetStatement) (node, error) {
	if b.inTrigger {
		return nil, notModelled("ALTER DATABASE in a trigger, where it is not allowed")
	}
	if !st.UseCurrent && st.DatabaseName != nil && !strings.EqualFold(st.DatabaseName.Value, b.engine.config.Database) {
		return nil, raiseBatch(5011, 14, 5, "User does not have permission to alter database '%s', the database does not exist, or the database is not in a state that allows access checks.", st.DatabaseName.Value)
	}
	var sets []func()
	db := b.engine.database
	for _, o := range st.Options {
		switch o := o.(type) {
		case *ast.OnOffDatabaseOption:
			on := o.OptionState == "On"
			switch o.OptionKind {
			case "ReadCommittedSnapshot":
				sets = append(sets, func() { db.readCommittedSnapshot.Store(on) })
			default:
				if !ignoredDatabaseOptions[o.OptionKind] {
					return nil, notModelled("ALTER DATABASE SET %s", o.OptionKind)
				}
			}
		case *ast.SimpleDatabaseOption:
			switch o.OptionKind {
			case "ReadOnly":
				sets = append(sets, func() { db.readOnly.Store(true) })
			case "ReadWrite":
				sets = append(sets, func() { db.readOnly.Store(false) })
			default:
				return nil, notModelled("ALTER DATABASE SET %s", o.OptionKind)
			}
		case *ast.LiteralDatabaseOption:
			if o.OptionKind != "CompatibilityLevel" {
				return nil, notModelled("ALTER DATABASE SET %s", o.OptionKind)
			}
			n, err := wholeNumber(o.Value)
			if err != nil {
				return nil, err
			}
			sets = append(sets, func() { db.compatibility.Store(int32(n)) })
		default:
			kind := syntaxName(o)
			if p, ok := parameterization(o); ok {
				sets = append(sets, func() { db.forcedParameters.Store(p) })
				continue
			}
			return nil, notModelled("ALTER DATABASE SET %s", kind)
		}
	}
	return action(func(x *exec) error {
		if !x.mayInDatabase("ALTER") {
			return raise(5011, 14, 5, "User does not have permission to alter database '%s', the database does not exist, or the database is not in a state that allows access checks.", x.s.engine.config.Database)
		}
		if x.s.tran != nil {
			return raise(226, 16, 6, "ALTER DATABASE statement not allowed within multi-statement transaction.")
		}
		for _, set := range sets {
			set()
		}
		x.s.engine.catalog.version.Add(1) // plans depend on some of them
		return nil
	}), nil
}

// parameterization reads PARAMETERIZATION FORCED or SIMPLE.
func parameterization(o ast.DatabaseOption) (forced, ok bool) {
	p, ok := o.(*ast.ParameterizationDatabaseOption)
	if !ok {
		return false, false
	}
	return !p.IsSimple, true
}

// createSequence is CREATE SEQUENCE.
func (x *exec) createSequence(sc *statementScope, st *ast.CreateSequenceStatement) error {
	e := x.s.engine
	owner, err := x.ownerSchema(st.Name)
	if err != nil {
		return err
	}
	if err := x.mayCreate("CREATE SEQUENCE", owner); err != nil {
		return err
	}
	if err := x.claimName(sc, owner, st.Name.BaseIdentifier.Value); err != nil {
		return err
	}
	q, err := e.newSequence(st.SequenceOptions, st.Name.BaseIdentifier.Value)
	if err != nil {
		return err
	}
	return e.catalog.change(sc.undo, func() (func(), error) {
		if _, ok := e.catalog.objects[nameOf(owner, st.Name.BaseIdentifier.Value)]; ok {
			return nil, errExists(st.Name.BaseIdentifier.Value)
		}
		q.objectHeader = e.catalog.newHeader(owner, st.Name.BaseIdentifier.Value)
		return e.catalog.put(q), nil
	})
}

// sequenceLimits are the whole range of a type.
func sequenceLimits(t sqltype.Type) (lo, hi int64) {
	switch t.Kind {
	case sqltype.TinyInt:
		return 0, 255
	case sqltype.SmallInt:
		return -1 << 15, 1<<15 - 1
	case sqltype.Int:
		return -1 << 31, 1<<31 - 1
	}
	return -1 << 63, 1<<63 - 1
}

func (e *Engine) newSequence(options []any, name string) (*sequence, error) {
	q := &sequence{typ: bigType, increment: 1, cached: true}
	for _, o := range options {
		if d, ok := o.(*ast.DataTypeSequenceOption); ok {
			t, err := e.dataType(d.DataType)
			if err != nil {
				return nil, err
			}
			if !t.Kind.IsInteger() || t.Kind == sqltype.Bit {
				return nil, notModelled("sequences of type %s", t)
			}
			q.typ = t
		}
	}
	q.min, q.max = sequenceLimits(q.typ)
	q.start = q.min
	if err := e.readSequence(q, options, name); err != nil {
		return nil, err
	}
	q.next, q.last = q.start, q.start
	return q, nil
}

// readSequence applies options to a sequence and checks what comes of it.
func (e *Engine) readSequence(q *sequence, options []any, name string) error {
	started, unbounded := false, q.start == q.min
	for _, o := range options {
		switch o := o.(type) {
		case *ast.DataTypeSequenceOption:
		case *ast.SequenceOption:
			switch o.OptionKind {
			case "Cycle":
				q.cycle = !o.NoValue
			case "Cache":
				q.cached = !o.NoValue
			case "MinValue", "MaxValue":
			default:
				return errSyntax(o.OptionKind)
			}
		case *ast.ScalarExpressionSequenceOption:
			if o.NoValue {
				continue
			}
			n, err := wholeNumber(o.OptionValue)
			if err != nil {
				return err
			}
			switch o.OptionKind {
			case "Start":
				q.start, started = n, true
			case "Increment":
				q.increment = n
			case "MinValue":
				q.min = n
			case "MaxValue":
				q.max = n
			case "Cache":
				q.cacheSize, q.cached = n, true
			default:
				return errSyntax(o.OptionKind)
			}
		default:
			return notModelled("the sequence option %s", syntaxName(o))
		}
	}
	if !started && unbounded {
		q.start = q.min
		if q.increment < 0 {
			q.start = q.max
		}
	}
	switch {
	case q.increment == 0:
		return raise(11700, 16, 1, "The increment for sequence object '%s' cannot be zero.", name)
	case q.min >= q.max:
		return raise(11701, 16, 1, "The minimum value for sequence object '%s' must be less than its maximum value.", name)
	case q.start < q.min || q.start > q.max:
		return raise(11703, 16, 1, "The start value for sequence object '%s' must be between the minimum and maximum value of the sequence object.", name)
	}
	return nil
}

// alterSequence is ALTER SEQUENCE: RESTART, and another increment, bounds,
// cycle or cache. It does not roll back, as taken numbers do not.
func (x *exec) alterSequence(st *ast.AlterSequenceStatement) error {
	if err := x.settleObject(st.Name); err != nil {
		return err
	}
	o, err := x.s.engine.lookup(st.Name)
	if err != nil {
		return err
	}
	q, ok := o.(*sequence)
	if ok && !x.mayOn("ALTER", &q.objectHeader) {
		return raise(15151, 16, 1, "Cannot alter the sequence object '%s', because it does not exist or you do not have permission.", objectText(st.Name))
	}
	if !ok {
		return raise(11729, 16, 1, "Object '%s' is not a sequence object.", objectText(st.Name))
	}
	var restart *int64
	var options []any
	for _, o := range st.SequenceOptions {
		switch o := o.(type) {
		case *ast.SequenceOption:
			if o.OptionKind == "Restart" {
				restart = &q.start
				continue
			}
		case *ast.ScalarExpressionSequenceOption:
			if o.OptionKind == "Restart" {
				n, err := wholeNumber(o.OptionValue)
				if err != nil {
					return err
				}
				restart = &n
				continue
			}
		}
		options = append(options, o)
	}
	return q.alter(restart, func(now *sequence) error {
		return x.s.engine.readSequence(now, options, q.name)
	})
}
