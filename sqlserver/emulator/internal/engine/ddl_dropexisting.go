package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// dropExisting takes DROP_EXISTING = ON out of the options of CREATE INDEX.
func dropExisting(list []ast.IndexOption) (rest []ast.IndexOption, on bool) {
	for _, o := range list {
		if s, ok := o.(*ast.IndexStateOption); ok && s.OptionKind == "DropExisting" {
			on = s.OptionState == "On"
			continue
		}
		rest = append(rest, o)
	}
	return rest, on
}

// dropReplaced drops the index that CREATE INDEX … WITH (DROP_EXISTING = ON)
// replaces, and returns its id, which the new one keeps.
func (x *exec) dropReplaced(sc *statementScope, next *tableDef, name string) (int, error) {
	old := next.index(name)
	switch {
	case old == nil:
		return 0, raise(7999, 16, 9, "Could not find any index named '%s' for table '%s'.", name, next.qualified())
	case old.constraint != "" || old.clustered:
		return 0, notModelled("DROP_EXISTING of a clustered index or of a constraint's")
	}
	if old.store != nil {
		if err := next.store.DropIndex(x.ctx, sc.tx, old.store); err != nil {
			return 0, err
		}
	}
	next.indexes = slices.DeleteFunc(next.indexes, func(ix *indexDef) bool { return ix == old })
	return old.id, nil
}

// onFilegroup: a database on Azure has the filegroup PRIMARY alone.
func onFilegroup(on *ast.FileGroupOrPartitionScheme) error {
	if on == nil || on.Name == nil {
		return nil
	}
	name := on.Name.Value
	switch {
	case len(on.PartitionSchemeColumns) > 0:
		return notModelled("partition schemes")
	case strings.EqualFold(name, "PRIMARY"), strings.EqualFold(name, "default"):
		return nil
	}
	return raise(1921, 16, 1, "Invalid filegroup '%s' specified.", name)
}
