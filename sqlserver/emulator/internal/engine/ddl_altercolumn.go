package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// alterColumn is ALTER TABLE … ALTER COLUMN. What is not restated falls back to
// defaults: the collation to the database's, and the column to NULL, whatever
// the session's settings (sql-docs, "ALTER TABLE").
func (x *exec) alterColumn(sc *statementScope, st *ast.AlterTableAlterColumnStatement) error {
	e := x.s.engine
	def, err := x.lockForDDL(sc, func() (*tableDef, error) { return x.tableToAlter(st.SchemaObjectName) })
	if err != nil {
		return err
	}
	at := def.column(st.ColumnIdentifier.Value)
	if at < 0 {
		return raise(4924, 16, 1, "ALTER TABLE ALTER COLUMN failed because column '%s' does not exist in table '%s'.", st.ColumnIdentifier.Value, def.name)
	}
	if st.DataType == nil || st.IsMasked || st.Encryption != nil || st.GeneratedAlways != "" {
		return notModelled("ALTER COLUMN %s", st.AlterTableAlterColumnOption)
	}
	online, err := alterOnline(st.Options)
	if err != nil {
		return err
	}
	if err := e.online(st.Options); err != nil {
		return err
	}
	old := def.columns[at]
	col := *old
	if col.typ, err = e.dataType(st.DataType); err != nil {
		return err
	}
	col.collationNamed = st.Collation != nil
	if st.Collation != nil {
		if col.typ.Collation, err = e.collation(st.Collation.Value); err != nil {
			return err
		}
	}
	if err := implicitly(old.typ, col.typ); err != nil {
		return err
	}
	switch st.AlterTableAlterColumnOption {
	case "NotNull":
		col.nullable = false
	case "Null", "NoOptionDefined", "":
		col.nullable = true
	default:
		return notModelled("ALTER COLUMN %s", st.AlterTableAlterColumnOption)
	}
	if online && !old.nullable && col.nullable && def.heldByNonclustered(at) {
		return notModelled("the error of ALTER COLUMN from NOT NULL to NULL WITH (ONLINE = ON) for a column of a nonclustered index, which SQL Server does not do")
	}
	if list := def.blocks(at, old, &col, online); len(list) > 0 {
		return errDependents(list, old.name, "ALTER TABLE ALTER COLUMN")
	}
	next := def.copy()
	next.columns[at] = &col
	t := &target{def: next, variable: -1}
	err = def.store.Rewrite(x.ctx, sc.tx, len(def.columns), func(row []sqltype.Value) ([]sqltype.Value, error) {
		v, err := t.store(at, row[at])
		if err != nil {
			return nil, err
		}
		if v.IsNull() && !col.nullable {
			return nil, errNull(col.name, next.fullName, "UPDATE")
		}
		row = slices.Clone(row)
		row[at] = v
		return row, nil
	})
	if err != nil {
		return err
	}
	return x.replaceTable(sc, next)
}

// alterColumnWords are those of WITH (…): the parser passes over others.
var alterColumnWords = map[string]bool{
	"ONLINE": true, "ON": true, "OFF": true,
}

func alterOnline(options []ast.IndexOption) (online bool, err error) {
	for _, o := range options {
		on, ok := o.(*ast.OnlineIndexOption)
		if !ok {
			return false, errIndexOption(syntaxName(o))
		}
		online = on.OptionState == "On"
	}
	return online, nil
}

// dependent is what holds a column: an index, a constraint (an object),
// statistics.
type dependent struct{ kind, name string }

// errDependents is a 5074 for each of them, and 4922 or its like at the end,
// which is the one that CATCH sees.
func errDependents(list []dependent, column, statement string) error {
	last := raise(4922, 16, 9, "%s %s failed because one or more objects access this column.", statement, column)
	at := last
	for _, d := range slices.Backward(list) {
		at.before = raise(5074, 16, 1, "The %s '%s' is dependent on column '%s'.", d.kind, d.name, column)
		at = at.before
	}
	return last
}

// blocks lists what keeps a column from the change (sql-docs, "ALTER TABLE",
// ALTER COLUMN).
func (t *tableDef) blocks(at int, old, next *columnDef, online bool) []dependent {
	from, to := old.typ, next.typ
	same := from == to
	sameKind := from.Kind == to.Kind
	variable := from.Kind == sqltype.VarChar || from.Kind == sqltype.NVarChar || from.Kind == sqltype.VarBinary
	resized := sameKind && variable && from.Collation == to.Collation
	grows := same || (resized && to.Length >= from.Length && from.Length != sqltype.Max)
	var list []dependent
	for _, ix := range t.indexes {
		blocked := !grows || (old.nullable && !next.nullable)
		if ix.constraint == "PK" {
			blocked = blocked || next.nullable
		}
		if blocked && ix.holds(at) {
			list = append(list, dependent{ix.kind(), ix.name})
		}
	}
	for _, s := range t.statistics {
		inFilter := slices.ContainsFunc(s.conjuncts, func(f filterPart) bool { return f.column == at })
		blocked := !grows || (old.nullable && !next.nullable)
		if (blocked && !online && slices.Contains(s.columns, at)) || (blocked && inFilter) {
			list = append(list, dependent{"statistics", s.name})
		}
	}
	if !same && !resized {
		list = append(list, t.checksOf(at)...)
	}
	if old.def != nil && !sameKind {
		list = append(list, dependent{"object", old.def.name})
	}
	return list
}

// heldBy lists everything that names a column, for DROP COLUMN.
func (t *tableDef) heldBy(at int) []dependent {
	var list []dependent
	for _, ix := range t.indexes {
		if ix.holds(at) {
			list = append(list, dependent{ix.kind(), ix.name})
		}
	}
	for _, s := range t.statistics {
		if slices.Contains(s.columns, at) || slices.ContainsFunc(s.conjuncts, func(f filterPart) bool { return f.column == at }) {
			list = append(list, dependent{"statistics", s.name})
		}
	}
	list = append(list, t.checksOf(at)...)
	if col := t.columns[at]; col.def != nil {
		list = append(list, dependent{"object", col.def.name})
	}
	return list
}

// checksOf are the CHECK constraints that name a column.
func (t *tableDef) checksOf(at int) (list []dependent) {
	col := t.columns[at]
	for _, ck := range t.checks {
		if ck.column == col.id || strings.Contains(strings.ToLower(ck.text), "["+strings.ToLower(col.name)+"]") {
			list = append(list, dependent{"object", ck.name})
		}
	}
	return list
}

func (t *tableDef) heldByNonclustered(at int) bool {
	return slices.ContainsFunc(t.indexes, func(ix *indexDef) bool { return !ix.clustered && ix.holds(at) })
}

// holds: the index has the column in its key, its INCLUDE list or its filter.
func (ix *indexDef) holds(at int) bool {
	return slices.Contains(ix.include, at) ||
		slices.ContainsFunc(ix.key, func(k indexColumn) bool { return k.column == at }) ||
		slices.ContainsFunc(ix.conjuncts, func(f filterPart) bool { return f.column == at })
}

func (ix *indexDef) kind() string {
	if ix.constraint != "" {
		return "object"
	}
	return "index"
}
