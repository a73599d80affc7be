package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// addUnique adds a PRIMARY KEY or UNIQUE constraint.
func (e *Engine) addUnique(def *tableDef, st *ast.UniqueConstraintDefinition) error {
	prefix, kind := "UQ", "UQ"
	if st.IsPrimaryKey {
		prefix, kind = "PK", "PK"
		for _, ix := range def.indexes {
			if ix.constraint == "PK" {
				if def.store == nil {
					return raise(8110, 16, 0, "Cannot add multiple PRIMARY KEY constraints to table '%s'.", def.name)
				}
				return raise(1779, 16, 0, "Table '%s' already has a primary key defined on it.", def.name)
			}
		}
	}
	h, _ := e.constraintHeader(def, st.ConstraintIdentifier, prefix)
	ix := &indexDef{name: h.name, unique: true, constraint: kind, object: h}
	clustered := st.Clustered
	if st.IndexType != nil && st.IndexType.IndexTypeKind != "" {
		clustered = st.IndexType.IndexTypeKind == "Clustered"
	} else if st.IsPrimaryKey && !clustered {
		clustered = def.clustered() == nil
	}
	ix.clustered = clustered
	if err := ix.setKey(def, st.Columns); err != nil {
		return err
	}
	if st.IsPrimaryKey {
		for _, k := range ix.key {
			c := def.columns[k.column]
			if c.nullable && def.store != nil {
				return raise(8111, 16, 1, "Cannot define PRIMARY KEY constraint on nullable column in table '%s'.", def.name)
			}
			if c.nullable {
				col := *c
				col.nullable = false
				def.columns[k.column] = &col
			}
		}
	}
	if err := e.online(st.IndexOptions); err != nil {
		return err
	}
	if err := ix.setOptions(st.IndexOptions); err != nil {
		return err
	}
	return def.addIndex(ix)
}

// inlineIndex is INDEX within CREATE TABLE.
func (e *Engine) inlineIndex(def *tableDef, st *ast.IndexDefinition) error {
	clustered := st.IndexType != nil && st.IndexType.IndexTypeKind == "Clustered"
	if st.IndexType != nil && st.IndexType.IndexTypeKind != "" && st.IndexType.IndexTypeKind != "NonClustered" && !clustered {
		return notModelled("%s indexes", st.IndexType.IndexTypeKind)
	}
	ix, err := e.newIndex(def, &indexSyntax{st.Name.Value, st.Unique, clustered, st.Columns, st.IncludeColumns, st.FilterPredicate, st.IndexOptions})
	if err != nil {
		return err
	}
	return def.addIndex(ix)
}

// indexSyntax is what the forms of index definition have in common.
type indexSyntax struct {
	name      string
	unique    bool
	clustered bool
	columns   []*ast.ColumnWithSortOrder
	include   []*ast.ColumnReferenceExpression
	filter    ast.BooleanExpression
	options   []ast.IndexOption
}

func (e *Engine) newIndex(def *tableDef, st *indexSyntax) (*indexDef, error) {
	ix := &indexDef{name: st.name, unique: st.unique, clustered: st.clustered}
	if err := ix.setKey(def, st.columns); err != nil {
		return nil, err
	}
	for _, ref := range st.include {
		name := lastIdentifier(ref)
		at := def.column(name)
		if at < 0 {
			return nil, raise(1911, 16, 1, "Column name '%s' does not exist in the target table or view.", name)
		}
		if ix.clustered {
			return nil, raise(10601, 16, 1, "Cannot specify included columns for a clustered index.")
		}
		if slices.ContainsFunc(ix.key, func(k indexColumn) bool { return k.column == at }) || slices.Contains(ix.include, at) {
			return nil, raise(1909, 16, 1, "Cannot use duplicate column names in index. Column name '%s' listed more than once.", name)
		}
		ix.include = append(ix.include, at)
	}
	if err := e.online(st.options); err != nil {
		return nil, err
	}
	if err := ix.setOptions(st.options); err != nil {
		return nil, err
	}
	if st.filter != nil {
		ix.filter, ix.filterText = st.filter, conditionText(st.filter)
		parts, err := e.filterParts(def, st.filter)
		if err != nil {
			return nil, err
		}
		ix.conjuncts = parts
	}
	return ix, nil
}

func lastIdentifier(ref *ast.ColumnReferenceExpression) string {
	ids := ref.MultiPartIdentifier.Identifiers
	return ids[len(ids)-1].Value
}

// maxKeyColumns is SQL Server's bound.
const maxKeyColumns = 32

func (ix *indexDef) setKey(def *tableDef, cols []*ast.ColumnWithSortOrder) error {
	if len(cols) == 0 {
		return errSyntax(")")
	}
	if len(cols) > maxKeyColumns {
		return raise(1904, 16, 1, "The index '%s' on table '%s' has %d columns in the key list. The maximum limit for index key column list is 32.", ix.name, def.name, len(cols))
	}
	for _, c := range cols {
		name := lastIdentifier(c.Column)
		at := def.column(name)
		if at < 0 {
			return raise(1911, 16, 1, "Column name '%s' does not exist in the target table or view.", name)
		}
		if slices.ContainsFunc(ix.key, func(k indexColumn) bool { return k.column == at }) {
			return raise(1909, 16, 1, "Cannot use duplicate column names in index. Column name '%s' listed more than once.", name)
		}
		if t := def.columns[at].typ; (isLong(t) && t.Length == sqltype.Max) || t.Kind == sqltype.XML {
			return raise(1919, 16, 1, "Column '%s' in table '%s' is of a type that is invalid for use as a key column in an index.", name, def.qualified())
		}
		ix.key = append(ix.key, indexColumn{at, c.SortOrder == ast.SortOrderDescending})
	}
	return nil
}

// setOptions reads WITH (…). What has no meaning in memory is accepted when it
// is spelled right.
func (ix *indexDef) setOptions(list []ast.IndexOption) error {
	for _, o := range list {
		switch o := o.(type) {
		case *ast.IndexStateOption:
			if o.OptionState != "On" && o.OptionState != "Off" {
				return errSyntax(o.OptionState)
			}
			on := o.OptionState == "On"
			switch o.OptionKind {
			case "OptimizeForSequentialKey":
				ix.sequential = on
			case "PadIndex":
				ix.padIndex = on
			case "AllowPageLocks":
				ix.noPageLocks = !on
			case "IgnoreDupKey":
				if on {
					return notModelled("IGNORE_DUP_KEY")
				}
			case "SortInTempDB", "StatisticsNoRecompute", "StatisticsIncremental", "DropExisting", "AllowRowLocks", "Resumable", "XmlCompression", "Online":
				if o.OptionKind == "DropExisting" && on {
					return notModelled("DROP_EXISTING = ON")
				}
				if o.OptionKind == "AllowRowLocks" && !on {
					return notModelled("ALLOW_ROW_LOCKS = OFF")
				}
				if o.OptionKind == "Resumable" && on && ix.filter != nil {
					return raise(155, 15, 1, "'RESUMABLE' is not a recognized option for a filtered index.")
				}
			default:
				return errIndexOption(o.OptionKind)
			}
		case *ast.IndexExpressionOption:
			n, err := wholeNumber(o.Expression)
			if err != nil {
				return err
			}
			switch o.OptionKind {
			case "FillFactor":
				if n < 1 || n > 100 {
					return raise(129, 15, 1, "Fillfactor %d is not a valid percentage; fillfactor must be between 1 and 100.", n)
				}
				ix.fillFactor = int(n)
			case "MaxDop":
			default:
				return errIndexOption(o.OptionKind)
			}
		case *ast.OnlineIndexOption:
			if o.OptionState != "On" && o.OptionState != "Off" {
				return errSyntax(o.OptionState)
			}
		case *ast.MaxDurationOption, *ast.DataCompressionOption, *ast.WaitAtLowPriorityOption:
		default:
			return notModelled("the index option %s", syntaxName(o))
		}
	}
	return nil
}

func errIndexOption(name string) error {
	return raise(155, 15, 1, "'%s' is not a recognized CREATE INDEX option.", name)
}

// addIndex adds an index to a definition.
func (t *tableDef) addIndex(ix *indexDef) error {
	if t.index(ix.name) != nil || t.statistic(ix.name) != nil {
		return raise(1913, 16, 1, "The operation failed because an index or statistics with name '%s' already exists on table '%s'.", ix.name, t.qualified())
	}
	if ix.clustered {
		if cl := t.clustered(); cl != nil {
			return raise(1902, 16, 3, "Cannot create more than one clustered index on table '%s'. Drop the existing clustered index '%s' before creating another.", t.qualified(), cl.name)
		}
		if ix.filter != nil {
			return raise(10611, 16, 1, "Filtered index '%s' cannot be created on table '%s' because it is clustered.", ix.name, t.name)
		}
		ix.id = 1
		t.indexes = append([]*indexDef{ix}, t.indexes...)
		return nil
	}
	if ix.id == 0 {
		ix.id = t.nextIndexID
		t.nextIndexID++
	}
	t.indexes = append(t.indexes, ix)
	return nil
}

// indexSpec is what storage needs to know. The filter is compiled against a
// row alone: filters hold no variables.
func (e *Engine) indexSpec(def *tableDef, ix *indexDef) (storage.IndexSpec, error) {
	spec := storage.IndexSpec{Name: ix.name, Unique: ix.unique, Include: ix.include, Fits: ix.fits(def)}
	for _, k := range ix.key {
		t := def.columns[k.column].typ
		spec.Key = append(spec.Key, storage.KeyPart{
			Column: k.column, Desc: k.desc, Compare: sqltype.Comparer(t), ByNumber: t.Kind.IsInteger() || t.Kind.IsTemporal(),
		})
	}
	if len(ix.conjuncts) > 0 {
		parts := ix.conjuncts
		spec.Filter = func(row []sqltype.Value) bool {
			for i := range parts {
				if !parts[i].test(row[parts[i].column]) {
					return false
				}
			}
			return true
		}
	}
	return spec, nil
}

// createIndex is CREATE INDEX.
func (x *exec) createIndex(sc *statementScope, st *ast.CreateIndexStatement) error {
	def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableForDDL(st.OnName, "CREATE INDEX") })
	if err != nil {
		return err
	}
	if st.FilterPredicate != nil || def.filtered() {
		if wrong := x.s.set.wrongForFilteredIndex(); wrong != "" {
			return raise(1934, 16, 1, "CREATE INDEX failed because the following SET options have incorrect settings: '%s'. Verify that SET options are correct for use with indexed views and/or indexes on computed columns and/or filtered indexes and/or query notifications and/or XML data type methods and/or spatial index operations.", wrong)
		}
	}
	clustered := st.Clustered != nil && *st.Clustered
	if err := onFilegroup(st.OnFileGroupOrPartitionScheme); err != nil {
		return err
	}
	next := def.copy()
	options, replaces := dropExisting(st.IndexOptions)
	ix, err := x.s.engine.newIndex(next, &indexSyntax{st.Name.Value, st.Unique, clustered, st.Columns, st.IncludeColumns, st.FilterPredicate, options})
	if err != nil {
		return err
	}
	if replaces {
		if ix.id, err = x.dropReplaced(sc, next, ix.name); err != nil {
			return err
		}
	}
	if err := next.addIndex(ix); err != nil {
		return err
	}
	if clustered {
		return notModelled("CREATE CLUSTERED INDEX on a table that exists")
	}
	if err := x.declareKey(next, ix); err != nil {
		return err
	}
	if err := x.s.engine.attachIndex(x, sc, next, ix); err != nil {
		return err
	}
	return x.replaceTable(sc, next)
}

// tableForDDL finds the table that a DDL statement names.
func (x *exec) tableForDDL(name *ast.SchemaObjectName, statement string) (*tableDef, error) {
	if err := x.settleObject(name); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name.BaseIdentifier.Value, "#") {
		if t := x.s.temp.find(name.BaseIdentifier.Value); t != nil {
			return t, nil
		}
	} else if o, err := x.s.engine.lookup(name); err == nil {
		if t, ok := o.(*tableDef); ok {
			if x.inTriggerOf(t) {
				return nil, errOwnTable()
			}
			if x.mayOn("ALTER", &t.objectHeader) {
				return t, nil
			}
		}
	}
	return nil, raise(1088, 16, 12, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", objectText(name))
}

// replaceTable puts an edited definition in place.
func (x *exec) replaceTable(sc *statementScope, next *tableDef) error {
	if next.temp {
		temp, old := x.s.temp, x.s.temp.find(next.name)
		temp.put(next)
		*sc.undo = append(*sc.undo, func() { temp.put(old) })
		x.s.engine.catalog.version.Add(1)
		return nil
	}
	c := x.s.engine.catalog
	return c.change(sc.undo, func() (func(), error) { return c.put(next), nil })
}

// dropIndexes is DROP INDEX.
func (x *exec) dropIndexes(sc *statementScope, st *ast.DropIndexStatement) error {
	for _, cl := range st.DropIndexClauses {
		if cl.Object == nil || cl.Index == nil {
			return notModelled("DROP INDEX table.index")
		}
		missing := raise(3701, 11, 6, "Cannot drop the index '%s.%s', because it does not exist or you do not have permission.", objectText(cl.Object), cl.Index.Value)
		def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableForDDL(cl.Object, "DROP INDEX") })
		if err != nil {
			if se, ok := err.(*sqlError); !ok || se.Number != 1088 {
				return err
			}
			if st.IsIfExists {
				continue
			}
			return missing
		}
		ix := def.index(cl.Index.Value)
		if ix == nil {
			if st.IsIfExists {
				continue
			}
			return missing
		}
		if ix.constraint != "" {
			return raise(3723, 16, 4, "An explicit DROP INDEX is not allowed on index '%s.%s'. It is being used for %s constraint enforcement.", def.qualified(), ix.name, map[string]string{"PK": "PRIMARY KEY", "UQ": "UNIQUE KEY"}[ix.constraint])
		}
		if err := x.dropIndex(sc, def, ix); err != nil {
			return err
		}
	}
	return nil
}

func (x *exec) dropIndex(sc *statementScope, def *tableDef, ix *indexDef) error {
	if ix.clustered {
		return notModelled("dropping a clustered index")
	}
	if ix.store != nil {
		if err := def.store.DropIndex(x.ctx, sc.tx, ix.store); err != nil {
			return err
		}
	}
	next := def.copy()
	next.indexes = slices.DeleteFunc(next.indexes, func(o *indexDef) bool { return o == ix })
	return x.replaceTable(sc, next)
}
