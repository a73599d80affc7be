package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// alterIndex is ALTER INDEX REBUILD, SET, DISABLE and REORGANIZE. Rebuilding
// changes options only: there are no pages here.
func (x *exec) alterIndex(sc *statementScope, st *ast.AlterIndexStatement) error {
	def, err := x.tableForDDL(st.OnName, "ALTER INDEX")
	if err != nil {
		return err
	}
	if st.Partition != nil && !st.Partition.All {
		return notModelled("ALTER INDEX of one partition")
	}
	next := def.copy().withOwnIndexes()
	found := false
	for _, ix := range next.indexes {
		if !st.All && !strings.EqualFold(ix.name, st.Name.Value) {
			continue
		}
		found = true
		if err := x.alterOneIndex(sc, next, ix, st); err != nil {
			return err
		}
	}
	if !found {
		return raise(2727, 11, 1, "Cannot find index '%s'.", st.Name.Value)
	}
	return x.replaceTable(sc, next)
}

func (x *exec) alterOneIndex(sc *statementScope, next *tableDef, ix *indexDef, st *ast.AlterIndexStatement) error {
	switch st.AlterIndexType {
	case "Rebuild":
		if err := ix.setOptions(st.IndexOptions); err != nil {
			return err
		}
		if !ix.disabled {
			return nil
		}
		ix.disabled = false
		return x.s.engine.attachIndex(x, sc, next, ix)
	case "Set":
		return ix.setOptions(st.IndexOptions)
	case "Reorganize":
		return nil
	case "Disable":
		if ix.clustered {
			return notModelled("disabling a clustered index")
		}
		if ix.disabled {
			return nil
		}
		if err := next.store.DropIndex(x.ctx, sc.tx, ix.store); err != nil {
			return err
		}
		ix.disabled, ix.store = true, nil
		return nil
	}
	return notModelled("ALTER INDEX %s", st.AlterIndexType)
}
