package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// alterIndex is ALTER INDEX. Rebuilding changes options only: there are no pages
// here.
func (x *exec) alterIndex(sc *statementScope, st *ast.AlterIndexStatement) error {
	if st.Partition != nil && !st.Partition.All {
		return notModelled("ALTER INDEX of one partition")
	}
	switch st.AlterIndexType {
	case "Resume", "Pause", "Abort":
		return x.alterPaused(sc, st)
	}
	if x.resumes(st) {
		return x.alterPaused(sc, st)
	}
	def, how, err := x.lockForAlterIndex(sc, st)
	if err != nil {
		return err
	}
	next := def.copy().withOwnIndexes()
	found := false
	for _, ix := range next.indexes {
		if !st.All && !strings.EqualFold(ix.name, st.Name.Value) {
			continue
		}
		found = true
		if err := x.alterOneIndex(sc, next, ix, how, st); err != nil {
			return err
		}
	}
	if !found {
		return raise(2727, 11, 1, "Cannot find index '%s'.", st.Name.Value)
	}
	return x.replaceTable(sc, next)
}

// lockForAlterIndex: REORGANIZE is the one form that keeps nobody away.
func (x *exec) lockForAlterIndex(sc *statementScope, st *ast.AlterIndexStatement) (*tableDef, rebuildOptions, error) {
	var how rebuildOptions
	find := func() (*tableDef, error) { return x.tableForDDL(st.OnName, "ALTER INDEX") }
	switch st.AlterIndexType {
	case "Reorganize":
		def, err := find()
		return def, how, err
	case "Rebuild":
		var err error
		if how, err = readRebuild(st.IndexOptions, "ALTER INDEX REBUILD"); err != nil {
			return nil, how, err
		}
		if err := how.check(x, st); err != nil {
			return nil, how, err
		}
	}
	def, err := x.lockTable(sc, find, func(t *tableDef) error { return how.lock(x, sc, t) })
	return def, how, err
}

func (x *exec) alterOneIndex(sc *statementScope, next *tableDef, ix *indexDef, how rebuildOptions, st *ast.AlterIndexStatement) error {
	if ix.disabled && st.AlterIndexType != "Rebuild" && st.AlterIndexType != "Disable" {
		if st.All {
			return nil
		}
		return raise(1973, 16, 1, "Cannot perform the specified operation on disabled index '%s' on table '%s'.", ix.name, next.qualified())
	}
	switch st.AlterIndexType {
	case "Rebuild":
		if wrong := x.s.set.wrongForFilteredIndex(); ix.filter != nil && wrong != "" {
			return raise(1934, 16, 1, "ALTER INDEX failed because the following SET options have incorrect settings: '%s'. Verify that SET options are correct for use with indexed views and/or indexes on computed columns and/or filtered indexes and/or query notifications and/or XML data type methods and/or spatial index operations.", wrong)
		}
		if err := x.s.engine.online(st.IndexOptions); err != nil {
			return err
		}
		if how.resumable && !ix.disabled {
			trial := *ix // its options must be right before it stops
			if err := trial.setOptions(st.IndexOptions); err != nil {
				return err
			}
			if err := x.pause(next, ix, st.IndexOptions, how.maxDOP, st, nil); err != nil {
				return err
			}
		}
		return x.rebuild(sc, next, ix, st.IndexOptions)
	case "Set":
		if err := onlySettable(st.IndexOptions); err != nil {
			return err
		}
		return ix.setOptions(st.IndexOptions)
	case "Reorganize":
		if err := onlyReorganizing(st.IndexOptions); err != nil {
			return err
		}
		if ix.noPageLocks {
			return raise(1943, 16, 1, "The index \"%s\" on table \"%s\" cannot be reorganized because page level locking is disabled.", ix.name, next.name)
		}
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

// rebuild gives an index its new options, and its rows back where it was
// disabled.
func (x *exec) rebuild(sc *statementScope, next *tableDef, ix *indexDef, options []ast.IndexOption) error {
	if err := ix.setOptions(options); err != nil {
		return err
	}
	if !ix.disabled {
		return nil
	}
	ix.disabled = false
	return x.s.engine.attachIndex(x, sc, next, ix)
}

// settable are the options of ALTER INDEX … SET (sql-docs, "ALTER INDEX"); the
// others need a REBUILD.
var settable = map[string]bool{
	"AllowRowLocks": true, "AllowPageLocks": true, "OptimizeForSequentialKey": true, "IgnoreDupKey": true, "StatisticsNoRecompute": true,
}

func onlySettable(list []ast.IndexOption) error {
	for _, o := range list {
		name := syntaxName(o)
		switch o := o.(type) {
		case *ast.IndexStateOption:
			if settable[o.OptionKind] {
				continue
			}
			name = o.OptionKind
		case *ast.IndexExpressionOption:
			name = o.OptionKind
		}
		return raise(155, 15, 1, "'%s' is not a recognized ALTER INDEX SET option.", strings.ToUpper(name))
	}
	return nil
}

// onlyReorganizing refuses the options of a rebuild (sql-docs, "ALTER INDEX").
func onlyReorganizing(list []ast.IndexOption) error {
	for _, o := range list {
		name := syntaxName(o)
		switch o := o.(type) {
		case *ast.IndexStateOption:
			name = o.OptionKind
		case *ast.IndexExpressionOption:
			name = o.OptionKind
		case *ast.OnlineIndexOption:
			name = "Online"
		}
		if name != "LobCompaction" && name != "CompressAllRowGroups" {
			return raise(155, 15, 1, "'%s' is not a recognized ALTER INDEX REORGANIZE option.", strings.ToUpper(name))
		}
	}
	return nil
}
