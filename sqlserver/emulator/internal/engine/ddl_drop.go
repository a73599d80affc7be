package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

func errCannotDrop(kind, name string) error {
	return raise(3701, 11, 5, "Cannot drop the %s '%s', because it does not exist or you do not have permission.", kind, name)
}

// dropTables is DROP TABLE.
func (x *exec) dropTables(sc *statementScope, st *ast.DropTableStatement) error {
	for _, name := range st.Objects {
		if strings.HasPrefix(name.BaseIdentifier.Value, "#") {
			if err := x.dropTempTable(sc, name.BaseIdentifier.Value, st.IsIfExists); err != nil {
				return err
			}
			continue
		}
		missing := errCannotDrop("table", objectText(name))
		def, err := x.lockForDDL(sc, func() (*tableDef, error) {
			if err := x.settleObject(name); err != nil {
				return nil, err
			}
			o, err := x.s.engine.lookup(name)
			def, ok := o.(*tableDef)
			switch {
			case err != nil || !ok:
				return nil, missing
			case x.inTriggerOf(def):
				return nil, errOwnTable()
			case !x.mayDrop(&def.objectHeader):
				return nil, missing
			}
			return def, nil
		})
		if err == missing && st.IsIfExists {
			continue
		}
		if err != nil {
			return err
		}
		for _, tr := range def.triggers {
			if err := x.removeObject(sc, tr); err != nil {
				return err
			}
		}
		if err := x.removeObject(sc, def); err != nil {
			return err
		}
	}
	return nil
}

func (x *exec) dropTempTable(sc *statementScope, name string, ifExists bool) error {
	temp := x.s.temp
	def := temp.find(name)
	if def == nil {
		if ifExists {
			return nil
		}
		return errCannotDrop("table", name)
	}
	temp.remove(name)
	*sc.undo = append(*sc.undo, func() { temp.put(def) })
	return nil
}

func (x *exec) removeObject(sc *statementScope, o object) error {
	c := x.s.engine.catalog
	if err := x.claimName(sc, o.header().schema, o.header().name); err != nil {
		return err
	}
	return c.change(sc.undo, func() (func(), error) {
		if q, ok := o.(*sequence); ok {
			if by := c.drawnBy(q); by != "" {
				return nil, raise(3729, 16, 1, "Cannot drop the sequence object '%s' because it is being referenced by object '%s'.", q.name, by)
			}
		}
		return c.remove(nameOf(o.header().schema, o.header().name)), nil
	})
}

// dropObjects drops objects of one kind; is says which.
func (x *exec) dropObjects(sc *statementScope, kind string, names []*ast.SchemaObjectName, ifExists bool, is func(object) bool) error {
	for _, name := range names {
		if err := x.settleObject(name); err != nil {
			return err
		}
		o, err := x.s.engine.lookup(name)
		if err != nil || !is(o) || !x.mayDrop(o.header()) {
			if ifExists {
				continue
			}
			if kind == "type" {
				return raise(218, 16, 1, "Could not find the type '%s'. Either it does not exist or you do not have the necessary permission.", objectText(name))
			}
			return errCannotDrop(kind, objectText(name))
		}
		if err := x.removeObject(sc, o); err != nil {
			return err
		}
	}
	return nil
}
