package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

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
