package engine

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// statisticsDef is CREATE STATISTICS: a name for columns, which ALTER COLUMN
// and DROP COLUMN respect. There are no histograms here: plans come from rules.
// Nor does the engine make any of its own.
type statisticsDef struct {
	id         int
	name       string
	columns    []int
	filterText string
	conjuncts  []filterPart
	noCompute  bool
}

// statisticsStatement builds the statements about statistics.
func (b *builder) statisticsStatement(st ast.Statement) (n node, ok bool, err error) {
	switch st := st.(type) {
	case *ast.CreateStatisticsStatement:
		if err := b.onlyWords(&st.Fragment, "WITH", statisticsWords); err != nil {
			return nil, true, err
		}
		return ddl(func(x *exec, sc *statementScope) error { return x.createStatistics(sc, st) }), true, nil
	case *ast.UpdateStatisticsStatement:
		if err := b.onlyWords(&st.Fragment, "WITH", statisticsWords); err != nil {
			return nil, true, err
		}
		return ddl(func(x *exec, sc *statementScope) error { return x.updateStatistics(st) }), true, nil
	case *ast.DropStatisticsStatement:
		return ddl(func(x *exec, sc *statementScope) error { return x.dropStatistics(sc, st) }), true, nil
	}
	return nil, false, nil
}

// statisticsWords are those of the options of sql-docs, "CREATE STATISTICS" and
// "UPDATE STATISTICS".
var statisticsWords = map[string]bool{
	"FULLSCAN": true, "SAMPLE": true, "PERCENT": true, "ROWS": true, "PERSIST_SAMPLE_PERCENT": true, "NORECOMPUTE": true, "INCREMENTAL": true,
	"MAXDOP": true, "AUTO_DROP": true, "RESAMPLE": true, "ALL": true, "COLUMNS": true, "INDEX": true, "ON": true, "OFF": true,
}

// onlyWords refuses a word that a list of options does not have; the parser
// passes over those that it does not know. The list begins behind the last word
// after of the statement.
func (b *builder) onlyWords(f *ast.Fragment, after string, words map[string]bool) error {
	units := utf16.Encode([]rune(b.parsed))
	if f.StartOffset+f.FragmentLength > len(units) {
		return nil
	}
	text := string(utf16.Decode(units[f.StartOffset:])) // the fragment may end before such a word
	within := false
	for g := (&guard{text: text}); g.next(); {
		word := strings.ToUpper(g.token)
		switch {
		case word == ";":
			return nil
		case word == after:
			within = true
		case within && isWordByte(word[0]) && (word[0] < '0' || word[0] > '9') && !words[word]:
			if beginsStatement[word] {
				return nil
			}
			return errSyntax(g.token)
		}
	}
	return nil
}

// beginsStatement are words that begin the next statement of a batch.
var beginsStatement = map[string]bool{
	"SELECT": true, "INSERT": true, "UPDATE": true, "DELETE": true, "CREATE": true, "ALTER": true, "DROP": true, "EXEC": true, "EXECUTE": true,
	"SET": true, "DECLARE": true, "IF": true, "WHILE": true, "BEGIN": true, "END": true, "COMMIT": true, "ROLLBACK": true, "PRINT": true, "THROW": true, "ELSE": true,
	"RETURN": true, "RAISERROR": true, "SAVE": true, "WAITFOR": true, "USE": true, "GRANT": true, "DENY": true, "REVOKE": true, "TRUNCATE": true, "WITH": true,
}

func (x *exec) createStatistics(sc *statementScope, st *ast.CreateStatisticsStatement) error {
	def, err := x.tableForDDL(st.OnName, "CREATE STATISTICS")
	if err != nil {
		return err
	}
	name := st.Name.Value
	if def.index(name) != nil || def.statistic(name) != nil {
		return raise(1927, 16, 1, "There are already statistics on table '%s' named '%s'.", def.qualified(), name)
	}
	s := &statisticsDef{name: name}
	for _, ref := range st.Columns {
		at := def.column(lastIdentifier(ref))
		if at < 0 {
			return raise(1911, 16, 1, "Column name '%s' does not exist in the target table or view.", lastIdentifier(ref))
		}
		if slices.Contains(s.columns, at) {
			return raise(1909, 16, 1, "Cannot use duplicate column names in statistics. Column name '%s' listed more than once.", lastIdentifier(ref))
		}
		s.columns = append(s.columns, at)
	}
	if st.FilterPredicate != nil {
		s.filterText = conditionText(st.FilterPredicate)
		if s.conjuncts, err = x.s.engine.filterParts(def, st.FilterPredicate); err != nil {
			return err
		}
	}
	for _, o := range st.StatisticsOptions {
		if simple, ok := o.(*ast.SimpleStatisticsOption); ok && simple.OptionKind == "NoRecompute" {
			s.noCompute = true
		}
	}
	next := def.copy()
	s.id = next.nextIndexID
	next.nextIndexID++
	next.statistics = append(slices.Clone(def.statistics), s)
	return x.replaceTable(sc, next)
}

// updateStatistics has nothing to bring up to date; the names must be right.
func (x *exec) updateStatistics(st *ast.UpdateStatisticsStatement) error {
	if err := x.s.engine.reach(partsOf(st.SchemaObjectName)); err != nil {
		return err
	}
	def, err := x.tableForDDL(st.SchemaObjectName, "UPDATE STATISTICS")
	if err != nil {
		return raise(2706, 16, 6, "Table '%s' does not exist.", objectText(st.SchemaObjectName))
	}
	for _, id := range st.SubElements {
		if def.index(id.Value) == nil && def.statistic(id.Value) == nil {
			return raise(2767, 16, 1, "Could not locate statistics '%s' in the system catalogs.", id.Value)
		}
	}
	return nil
}

// dropStatistics is DROP STATISTICS table.name.
func (x *exec) dropStatistics(sc *statementScope, st *ast.DropStatisticsStatement) error {
	for _, full := range st.Objects {
		missing := errCannotDrop("statistics", objectText(full))
		n := len(full.Identifiers)
		if n < 2 {
			return missing
		}
		table := &ast.SchemaObjectName{Count: n - 1, Identifiers: full.Identifiers[:n-1], BaseIdentifier: full.Identifiers[n-2]}
		if n > 2 {
			table.SchemaIdentifier = full.Identifiers[n-3]
		}
		def, err := x.tableForDDL(table, "DROP STATISTICS")
		if err != nil {
			return missing
		}
		name := full.BaseIdentifier.Value
		if def.index(name) != nil {
			return raise(3739, 11, 1, "Cannot DROP the index '%s' because it is not a statistics collection.", objectText(full))
		}
		if def.statistic(name) == nil {
			return missing
		}
		next := def.copy()
		next.statistics = slices.DeleteFunc(slices.Clone(def.statistics), func(s *statisticsDef) bool { return strings.EqualFold(s.name, name) })
		if err := x.replaceTable(sc, next); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableDef) statistic(name string) *statisticsDef {
	for _, s := range t.statistics {
		if strings.EqualFold(s.name, name) {
			return s
		}
	}
	return nil
}

var _ = registerViews(map[string]*view{
	"sys.stats":         {statCols, statRows},
	"sys.stats_columns": {statColumnCols, statColumnRows},
})

var (
	statCols = []outCol{
		vInt("object_id"), vName("name"), vInt("stats_id"), vBit("auto_created"), vBit("user_created"), vBit("no_recompute"), vBit("has_filter"), vText("filter_definition"),
		vBit("is_temporary"), vBit("is_incremental"),
	}
	statColumnCols = []outCol{vInt("object_id"), vInt("stats_id"), vInt("stats_column_id"), vInt("column_id")}
)

func statRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	add := func(t *tableDef, name string, id int, user, noCompute, filtered bool, text string) {
		var filter any
		if filtered {
			filter = text
		}
		rows = append(rows, catalogRow(statCols, t.id, name, id, false, user, noCompute, filtered, filter, false, false))
	}
	for _, t := range s.engine.catalog.tables() {
		for _, ix := range t.indexes {
			add(t, ix.name, ix.id, false, false, ix.filter != nil, ix.filterText)
		}
		for _, st := range t.statistics {
			add(t, st.name, st.id, true, st.noCompute, st.filterText != "", st.filterText)
		}
	}
	return rows
}

// statColumnRows: an index's statistics are those of its key.
func statColumnRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, t := range s.engine.catalog.tables() {
		for _, ix := range t.indexes {
			for i, k := range ix.key {
				rows = append(rows, catalogRow(statColumnCols, t.id, ix.id, i+1, t.columns[k.column].id))
			}
		}
		for _, st := range t.statistics {
			for i, c := range st.columns {
				rows = append(rows, catalogRow(statColumnCols, t.id, st.id, i+1, t.columns[c].id))
			}
		}
	}
	return rows
}
