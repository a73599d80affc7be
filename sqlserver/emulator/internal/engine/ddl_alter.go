package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func errNoTable(name *ast.SchemaObjectName) error {
	return raise(4902, 16, 1, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", objectText(name))
}

// tableToAlter finds the table of an ALTER TABLE.
func (x *exec) tableToAlter(name *ast.SchemaObjectName) (*tableDef, error) {
	def, err := x.tableForDDL(name, "ALTER TABLE")
	if se, ok := err.(*sqlError); ok && se.Number == 1088 {
		return nil, errNoTable(name)
	}
	return def, err
}

// alterTableAdd is ALTER TABLE … ADD of columns and constraints.
func (x *exec) alterTableAdd(sc *statementScope, st *ast.AlterTableAddTableElementStatement) error {
	e := x.s.engine
	if len(st.Definition.Indexes) > 0 {
		return notModelled("ALTER TABLE ADD INDEX")
	}
	def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableToAlter(st.SchemaObjectName) })
	if err != nil {
		return err
	}
	next := def.copy()
	for _, c := range st.Definition.ColumnDefinitions {
		if c.IdentityOptions != nil {
			return notModelled("ALTER TABLE ADD of an IDENTITY column")
		}
		if err := e.addColumn(next, c, x.s.set.ansiNullDefault); err != nil {
			return err
		}
	}
	var withValues []bool
	for _, c := range st.Definition.ColumnDefinitions {
		if err := e.columnConstraints(next, c); err != nil {
			return err
		}
		withValues = append(withValues, c.DefaultConstraint != nil && c.DefaultConstraint.WithValues)
	}
	for _, k := range st.Definition.TableConstraints {
		if err := e.addConstraint(next, k); err != nil {
			return err
		}
	}
	if err := x.uniqueConstraints(next, def); err != nil {
		return err
	}
	if len(next.columns) > len(def.columns) {
		if err := x.fillColumns(sc, def, next, withValues); err != nil {
			return err
		}
	}
	if st.ExistingRowsCheckEnforcement != "NoCheck" {
		if err := x.checkRows(sc, next, next.checks[len(def.checks):]); err != nil {
			return err
		}
	}
	for _, ix := range next.indexes {
		if slices.Contains(def.indexes, ix) {
			continue
		}
		if ix.clustered {
			return notModelled("adding a clustered constraint to a table that exists")
		}
		if err := x.declareKey(next, ix); err != nil {
			return notConstrained(err)
		}
		if err := e.attachIndex(x, sc, next, ix); err != nil {
			return notConstrained(err)
		}
	}
	return x.replaceTable(sc, next)
}

// uniqueConstraints refuses a constraint name that is taken in the schema.
func (x *exec) uniqueConstraints(next, old *tableDef) error {
	c := x.s.engine.catalog
	had := make(map[string]bool)
	for _, h := range old.constraints() {
		had[strings.ToLower(h.name)] = true
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	seen := make(map[string]bool)
	for _, h := range next.constraints() {
		key := strings.ToLower(h.name)
		if seen[key] || (!had[key] && c.hasConstraint(next.schema, h.name, old)) {
			return notConstrained(errExists(h.name))
		}
		seen[key] = true
	}
	return nil
}

// fillColumns gives every row its new columns: the default where the column is
// NOT NULL or asks for it WITH VALUES, else NULL.
func (x *exec) fillColumns(sc *statementScope, old, next *tableDef, withValues []bool) error {
	added := next.columns[len(old.columns):]
	c := &compiler{engine: x.s.engine, vars: (&variables{}).now(), filterable: true}
	t := &target{def: next, variable: -1}
	fill := make([]sqltype.Value, len(added))
	e := x.newEnv(0, x.s.engine.catalog.version.Load())
	e.tx = sc.tx
	for i, col := range added {
		if col.def == nil || (col.nullable && !withValues[i]) {
			continue
		}
		s, err := c.expression(col.def.expr, &scope{})
		if err != nil {
			return err
		}
		v, err := s.eval(e)
		if err != nil {
			return err
		}
		if fill[i], err = t.store(len(old.columns)+i, v); err != nil {
			return err
		}
	}
	for i, col := range added {
		if !col.nullable && fill[i].IsNull() && old.store.Rows() > 0 {
			return raise(4901, 16, 1, "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified, or the column being added is an identity or timestamp column, or alternatively if none of the previous conditions are satisfied the table must be empty to allow addition of this column. Column '%s' cannot be added to non-empty table '%s' because it does not satisfy these conditions.", col.name, next.name)
		}
	}
	return old.store.Rewrite(x.ctx, sc.tx, len(next.columns), func(row []sqltype.Value) ([]sqltype.Value, error) {
		return append(slices.Clip(slices.Clone(row)), fill...), nil
	})
}

// checkRows tests new CHECK constraints against what is there.
func (x *exec) checkRows(sc *statementScope, def *tableDef, checks []*checkDef) error {
	if len(checks) == 0 {
		return nil
	}
	c := &compiler{engine: x.s.engine, vars: (&variables{}).now(), filterable: true}
	src, err := c.newSource(def.name, def.schema, def.outCols())
	if err != nil {
		return err
	}
	probe := &tableDef{objectHeader: def.objectHeader, columns: def.columns, checks: checks, fullName: def.fullName}
	t, err := c.newTarget(probe, -1, src)
	if err != nil {
		return err
	}
	e := x.newEnv(len(c.slots), x.s.engine.catalog.version.Load())
	e.tx = sc.tx
	return def.store.Rewrite(x.ctx, sc.tx, len(def.columns), func(row []sqltype.Value) ([]sqltype.Value, error) {
		return row, t.check(e, row, "ALTER TABLE")
	})
}

// alterTableDrop is ALTER TABLE … DROP of constraints and columns.
func (x *exec) alterTableDrop(sc *statementScope, st *ast.AlterTableDropTableElementStatement) error {
	def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableToAlter(st.SchemaObjectName) })
	if err != nil {
		return err
	}
	next := def.copy()
	for _, el := range st.AlterTableDropTableElements {
		var found bool
		switch el.TableElementType {
		case "Constraint", "NotSpecified", "":
			found, err = x.dropConstraint(sc, next, el.Name.Value)
		case "Column":
			found, err = x.dropColumn(sc, next, el.Name.Value)
		default:
			return notModelled("ALTER TABLE DROP %s", el.TableElementType)
		}
		if err != nil {
			return err
		}
		if !found && !el.IsIfExists {
			if el.TableElementType == "Column" {
				return raise(4924, 16, 1, "ALTER TABLE DROP COLUMN failed because column '%s' does not exist in table '%s'.", el.Name.Value, def.name)
			}
			last := raise(3727, 16, 0, "Could not drop constraint. See previous errors.")
			last.before = raise(3728, 16, 1, "'%s' is not a constraint.", el.Name.Value)
			return last
		}
	}
	return x.replaceTable(sc, next)
}

func (x *exec) dropConstraint(sc *statementScope, next *tableDef, name string) (bool, error) {
	for i, ck := range next.checks {
		if strings.EqualFold(ck.name, name) {
			next.checks = slices.Delete(next.checks, i, i+1)
			return true, nil
		}
	}
	for i, c := range next.columns {
		if c.def != nil && strings.EqualFold(c.def.name, name) {
			col := *c
			col.def = nil
			next.columns[i] = &col
			return true, nil
		}
	}
	for i, ix := range next.indexes {
		if ix.constraint != "" && strings.EqualFold(ix.name, name) {
			if ix.clustered {
				return false, notModelled("dropping a clustered constraint")
			}
			if err := next.store.DropIndex(x.ctx, sc.tx, ix.store); err != nil {
				return false, err
			}
			next.indexes = slices.Delete(next.indexes, i, i+1)
			return true, nil
		}
	}
	return false, nil
}

// dropColumn takes a column away. It must be the last one: storage keeps
// indexes by position.
func (x *exec) dropColumn(sc *statementScope, next *tableDef, name string) (bool, error) {
	at := next.column(name)
	if at < 0 {
		return false, nil
	}
	if list := next.heldBy(at); len(list) > 0 {
		return false, errDependents(list, next.columns[at].name, "ALTER TABLE DROP COLUMN")
	}
	if at != len(next.columns)-1 {
		return false, notModelled("dropping a column that is not the last")
	}
	err := next.store.Rewrite(x.ctx, sc.tx, at, func(row []sqltype.Value) ([]sqltype.Value, error) {
		return slices.Clip(row[:at:at]), nil
	})
	next.columns = next.columns[:at]
	return true, err
}

// alterConstraint is ALTER TABLE … CHECK and NOCHECK CONSTRAINT.
func (x *exec) alterConstraint(sc *statementScope, st *ast.AlterTableConstraintModificationStatement) error {
	def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableToAlter(st.SchemaObjectName) })
	if err != nil {
		return err
	}
	next := def.copy()
	enable := st.ConstraintEnforcement == "Check"
	found := st.All
	for i, ck := range next.checks {
		named := slices.ContainsFunc(st.ConstraintNames, func(id *ast.Identifier) bool { return strings.EqualFold(id.Value, ck.name) })
		if !st.All && !named {
			continue
		}
		found = true
		n := *ck
		n.disabled = !enable
		n.notTrusted = st.ExistingRowsCheckEnforcement != "Check"
		next.checks[i] = &n
		if enable && st.ExistingRowsCheckEnforcement == "Check" {
			if err := x.checkRows(sc, def, []*checkDef{&n}); err != nil {
				return err
			}
		}
	}
	if !found {
		return raise(4917, 16, 0, "Constraint '%s' does not exist.", st.ConstraintNames[0].Value)
	}
	return x.replaceTable(sc, next)
}
