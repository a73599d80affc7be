package engine

import (
	"errors"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func errExists(name string) error {
	return raise(2714, 16, 6, "There is already an object named '%s' in the database.", name)
}

// createTable is CREATE TABLE.
func (x *exec) createTable(sc *statementScope, st *ast.CreateTableStatement) error {
	e := x.s.engine
	name := st.SchemaObjectName
	if err := onFilegroup(st.OnFileGroupOrPartitionScheme); err != nil {
		return err
	}
	if st.AsEdge || st.AsNode || st.AsFileTable || st.SelectStatement != nil || len(st.Options) > 0 || st.FederationScheme != nil {
		return notModelled("this form of CREATE TABLE")
	}
	if strings.HasPrefix(name.BaseIdentifier.Value, "#") {
		return x.createTempTable(sc, st)
	}
	owner, err := x.ownerSchema(name)
	if err != nil {
		return err
	}
	if err := x.mayCreate("CREATE TABLE", owner); err != nil {
		return err
	}
	if err := x.claimName(sc, owner, name.BaseIdentifier.Value); err != nil {
		return err
	}
	def, err := e.newTableDef(owner, name.BaseIdentifier.Value, st.Definition, x.s.set.ansiNullDefault)
	if err != nil {
		return err
	}
	if err := def.constrainedOnce(); err != nil {
		return err
	}
	if err := e.attach(x, sc, def); err != nil {
		return err
	}
	return e.catalog.change(sc.undo, func() (func(), error) {
		if e.catalog.taken(def) != "" {
			return nil, errExists(e.catalog.taken(def))
		}
		return e.catalog.put(def), nil
	})
}

// ownerSchema is the schema that a new object goes into; 2760 when there is
// none of that name.
func (e *Engine) ownerSchema(name *ast.SchemaObjectName) (string, error) {
	if err := e.local(partsOf(name)); err != nil {
		return "", err
	}
	s := e.catalog.schema(schemaOf(name))
	if s == nil {
		return "", raise(2760, 16, 1, "The specified schema name \"%s\" either does not exist or you do not have permission to use it.", schemaOf(name))
	}
	return s.name, nil
}

// createTempTable is CREATE TABLE #t: known to this session only.
func (x *exec) createTempTable(sc *statementScope, st *ast.CreateTableStatement) error {
	e := x.s.engine
	name := st.SchemaObjectName.BaseIdentifier.Value
	if strings.HasPrefix(name, "##") {
		return notModelled("global temporary tables")
	}
	if x.s.temp.find(name) != nil {
		return errExists(name)
	}
	def, err := e.newTableDef("dbo", name, st.Definition, x.s.set.ansiNullDefault)
	if err != nil {
		return err
	}
	def.temp = true
	def.fullName = "tempdb.dbo." + name
	if err := e.attach(x, sc, def); err != nil {
		return err
	}
	x.s.temp.put(def)
	temp := x.s.temp
	*sc.undo = append(*sc.undo, func() { temp.remove(name) })
	return nil
}

// newTableDef reads a table's definition. Nothing of it is in the catalog yet.
func (e *Engine) newTableDef(schema, name string, st *ast.TableDefinition, nullable bool) (*tableDef, error) {
	if st == nil {
		return nil, errSyntax(name)
	}
	if strings.HasPrefix(name, "#") && sqltype.UTF16Length(name) > 116 {
		return nil, raiseBatch(193, 15, 1, "The object or column name starting with '%s' is too long. The maximum length is 116 characters.", sqltype.CutUTF16(name, 116))
	}
	if st.SystemTimePeriod != nil {
		return nil, notModelled("temporal tables")
	}
	e.catalog.mu.Lock()
	def := &tableDef{objectHeader: e.catalog.newHeader(schema, name), nextColumnID: 1, nextIndexID: 2}
	e.catalog.mu.Unlock()
	def.fullName = e.config.Database + "." + schema + "." + name
	for _, c := range st.ColumnDefinitions {
		if err := e.addColumn(def, c, nullable); err != nil {
			return nil, err
		}
	}
	for _, c := range st.ColumnDefinitions {
		if err := e.columnConstraints(def, c); err != nil {
			return nil, err
		}
	}
	for _, c := range st.TableConstraints {
		if err := e.addConstraint(def, c); err != nil {
			return nil, err
		}
	}
	for _, ix := range st.Indexes {
		if err := e.inlineIndex(def, ix); err != nil {
			return nil, err
		}
	}
	if len(def.columns) == 0 {
		return nil, errSyntax(")")
	}
	return def, nil
}

// addColumn adds a column to a definition.
func (e *Engine) addColumn(def *tableDef, st *ast.ColumnDefinition, nullable bool) error {
	name := st.ColumnIdentifier.Value
	switch {
	case st.ComputedColumnExpression != nil:
		return notModelled("computed columns")
	case st.GeneratedAlways != "", st.IsMasked, st.Encryption != nil, st.IsHidden:
		return notModelled("generated, masked, hidden and encrypted columns")
	case st.StorageOptions != nil && (st.StorageOptions.IsFileStream || (st.StorageOptions.SparseOption != "" && st.StorageOptions.SparseOption != "None")):
		return notModelled("sparse and FILESTREAM columns")
	case def.column(name) >= 0:
		return raise(2705, 16, 3, "Column names in each table must be unique. Column name '%s' in table '%s' is specified more than once.", name, def.qualified())
	}
	t, err := e.dataType(st.DataType)
	if err != nil {
		return err
	}
	c := &columnDef{id: def.nextColumnID, name: name, typ: t, nullable: nullable, rowGUID: st.IsRowGuidCol}
	if st.Collation != nil {
		if !t.Kind.IsText() {
			return raise(449, 16, 1, "Collation conflict caused by collate clauses with different collation '%s' and '%s'.", st.Collation.Value, t.Name())
		}
		coll, err := e.collation(st.Collation.Value)
		if err != nil {
			return err
		}
		c.typ.Collation, c.collationNamed = coll, true
	}
	primary, saidNull := false, false
	if n := st.Nullable; n != nil {
		c.nullable, saidNull = n.Nullable, n.Nullable
	}
	for _, k := range st.Constraints {
		if n, ok := k.(*ast.NullableConstraintDefinition); ok {
			c.nullable, saidNull = n.Nullable, n.Nullable
		}
		if u, ok := k.(*ast.UniqueConstraintDefinition); ok && u.IsPrimaryKey {
			primary = true
		}
	}
	if primary && saidNull {
		return notConstrained(raise(8111, 16, 1, "Cannot define PRIMARY KEY constraint on nullable column in table '%s'.", def.name))
	}
	if primary {
		c.nullable = false
	}
	if st.IdentityOptions != nil {
		if saidNull {
			return raise(8147, 16, 1, "Could not create IDENTITY attribute on nullable column '%s', table '%s'.", name, def.name)
		}
		if err := def.addIdentity(c, st.IdentityOptions); err != nil {
			return err
		}
	}
	def.nextColumnID++
	def.columns = append(def.columns, c)
	return nil
}

func (t *tableDef) addIdentity(c *columnDef, o *ast.IdentityOptions) error {
	if t.identity != nil {
		return raise(2744, 16, 2, "Multiple identity columns specified for table '%s'. Only one identity column per table is allowed.", t.name)
	}
	if !c.typ.Kind.IsInteger() || c.typ.Kind == sqltype.Bit {
		return notModelled("IDENTITY of type %s", c.typ)
	}
	id := &identity{column: len(t.columns), seed: 1, increment: 1}
	for _, p := range []struct {
		x    ast.ScalarExpression
		into *int64
	}{{o.IdentitySeed, &id.seed}, {o.IdentityIncrement, &id.increment}} {
		if p.x == nil {
			continue
		}
		n, err := wholeNumber(p.x)
		if err != nil {
			return err
		}
		*p.into = n
	}
	id.next = id.seed
	c.identity, c.nullable = true, false
	t.identity = id
	return nil
}

// attach makes the rows of a new definition: the table and its indexes.
func (e *Engine) attach(x *exec, sc *statementScope, def *tableDef) error {
	var spec *storage.IndexSpec
	if cl := def.clustered(); cl != nil {
		s, err := e.indexSpec(def, cl)
		if err != nil {
			return err
		}
		spec = &s
	}
	def.store = e.db.CreateTable(len(def.columns), spec)
	if !def.temp {
		// nobody else gets at what may yet roll back
		if err := x.exclusively(sc, def); err != nil {
			return err
		}
	}
	for _, ix := range def.indexes {
		if err := x.declareKey(def, ix); err != nil {
			return err
		}
		if ix.clustered {
			ix.store = def.store.Clustered()
			continue
		}
		if err := e.attachIndex(x, sc, def, ix); err != nil {
			return err
		}
	}
	return nil
}

// attachIndex builds a nonclustered index; over equal keys a unique one is 1505.
func (e *Engine) attachIndex(x *exec, sc *statementScope, def *tableDef, ix *indexDef) error {
	spec, err := e.indexSpec(def, ix)
	if err != nil {
		return err
	}
	ix.store, err = def.store.CreateIndex(x.ctx, sc.tx, spec)
	var dup *storage.DuplicateKeyError
	if errors.As(err, &dup) {
		return raise(1505, 16, 1, "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '%s' and the index name '%s'. The duplicate key value is (%s).", def.qualified(), ix.name, keyText(dup.Key))
	}
	return err
}

// memDefinition is the definition of a table variable or table type.
func (e *Engine) memDefinition(name string, st *ast.TableDefinition) (*tableDef, error) {
	def, err := e.newTableDef("", name, st, true)
	if err != nil {
		return nil, err
	}
	def.fullName = "tempdb.dbo." + name
	return def, nil
}

func wholeNumber(x ast.ScalarExpression) (int64, error) {
	c := &compiler{vars: (&variables{}).now(), checking: true}
	s, err := c.expression(x, &scope{})
	if err != nil {
		return 0, err
	}
	v, err := s.eval(nil)
	if err != nil {
		return 0, err
	}
	v, err = sqltype.Convert(v, bigType, 0)
	return v.N, err
}
