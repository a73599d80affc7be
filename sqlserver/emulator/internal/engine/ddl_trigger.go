package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// dropTriggers is DROP TRIGGER.
func (x *exec) dropTriggers(sc *statementScope, st *ast.DropTriggerStatement) error {
	if st.TriggerScope != "" && st.TriggerScope != "Normal" {
		return notModelled("DDL and logon triggers")
	}
	for _, name := range st.Objects {
		if err := x.settleObject(name); err != nil {
			return err
		}
		o, err := x.s.engine.lookup(name)
		tr, ok := o.(*trigger)
		if err != nil || !ok || !x.mayAlterParent(tr) {
			if st.IsIfExists {
				continue
			}
			return errCannotDrop("trigger", objectText(name))
		}
		def, err := x.ownTable(sc, tr)
		if err != nil {
			return err
		}
		if err := x.claimName(sc, tr.schema, tr.name); err != nil {
			return err
		}
		if err := x.setTriggers(sc, def, slices.DeleteFunc(slices.Clone(def.triggers), func(o *trigger) bool { return o.id == tr.id })); err != nil {
			return err
		}
	}
	return nil
}

// ownTable locks a trigger's table and finds its definition.
func (x *exec) ownTable(sc *statementScope, tr *trigger) (*tableDef, error) {
	return x.lockForDDL(sc, func() (*tableDef, error) {
		def, ok := x.s.engine.catalog.find(tr.parent).(*tableDef)
		switch {
		case !ok:
			return nil, errCannotDrop("trigger", tr.name)
		case x.inTriggerOf(def):
			return nil, errOwnTable()
		}
		return def, nil
	})
}

// switchTriggers is ENABLE TRIGGER and DISABLE TRIGGER.
func (x *exec) switchTriggers(sc *statementScope, st *ast.EnableDisableTriggerStatement) error {
	if st.TriggerObject.TriggerScope != "" && st.TriggerObject.TriggerScope != "Normal" {
		return notModelled("DDL and logon triggers")
	}
	names := make([]string, len(st.TriggerNames))
	for i, n := range st.TriggerNames {
		names[i] = n.BaseIdentifier.Value
	}
	return x.enableTriggers(sc, st.TriggerObject.Name, names, st.All, st.TriggerEnforcement == "Enable")
}

// alterTableTriggers is ALTER TABLE … ENABLE TRIGGER and DISABLE TRIGGER.
func (x *exec) alterTableTriggers(sc *statementScope, st *ast.AlterTableTriggerModificationStatement) error {
	names := make([]string, len(st.TriggerNames))
	for i, n := range st.TriggerNames {
		names[i] = n.Value
	}
	return x.enableTriggers(sc, st.SchemaObjectName, names, st.All, st.TriggerEnforcement == "Enable")
}

func (x *exec) enableTriggers(sc *statementScope, table *ast.SchemaObjectName, names []string, all, enable bool) error {
	def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableForDDL(table, "ENABLE TRIGGER") })
	if err != nil {
		return err
	}
	list := slices.Clone(def.triggers)
	if all {
		names = nil
		for _, tr := range list {
			names = append(names, tr.name)
		}
	}
	for _, name := range names {
		at := slices.IndexFunc(list, func(tr *trigger) bool { return strings.EqualFold(tr.name, name) })
		if at < 0 {
			return raise(4920, 16, 1, "ALTER TABLE failed because trigger '%s' on table '%s' does not exist.", name, def.name)
		}
		next := *list[at]
		next.disabled = !enable
		list[at] = &next
	}
	return x.setTriggers(sc, def, list)
}

// errOwnTable: most DDL is not allowed in a trigger against the table that it
// fires for (sql-docs, "CREATE TRIGGER", trigger limitations), with a number
// that is not documented.
func errOwnTable() error {
	return notModelled("DDL on a table within its own trigger")
}
