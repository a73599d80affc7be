package claimbench

import (
	"maps"
	"slices"
	"strings"
	"testing"

	tsql "github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/statementtest"
)

var kinds = map[string]string{
	"updateOutputSQL":  "Update",
	"updateTopSQL":     "Update",
	"deleteOutputSQL":  "Delete",
	"createScratchSQL": "CreateTable",
	"createIndexSQL":   "CreateIndex",
	"fillScratchSQL":   "Insert",
	"dropScratchSQL":   "DropTable",
	"leftoversSQL":     "Select",
	"queryStatsSQL":    "Select",
	"logBytesSQL":      "Declare Select",
	"rightsSQL":        "Declare Select",
}

// columns are those of a table that odd types have been chosen for.
var oddColumns = []sqlserver.ColumnType{
	{Name: "id", Declaration: "INT"},
	{Name: "aggregate_type", Declaration: "NCHAR(10)", Collation: "Latin1_General_CI_AS"},
	{Name: "aggregate_id", Declaration: "VARCHAR(36)", Collation: "Latin1_General_CI_AS"},
	{Name: "event_type", Declaration: "INT"},
	{Name: "payload", Declaration: "NVARCHAR(MAX)", Collation: "Latin1_General_CI_AS"},
	{Name: "headers", Declaration: "VARCHAR(2000)", Collation: "Latin1_General_100_BIN2_UTF8"},
	{Name: "status", Declaration: "TINYINT"},
	{Name: "created_at", Declaration: "DATETIME2(7)"},
	{Name: "processed_at", Declaration: "DATETIME2(3)"},
	{Name: "retry_at", Declaration: "DATETIME"},
	{Name: "retry_count", Declaration: "SMALLINT"},
	{Name: "last_error", Declaration: "NVARCHAR(400)", Collation: "Latin1_General_CI_AS"},
}

// render fills in what the Store's rendering would, too.
func render(s *scratch, text string) string {
	return strings.NewReplacer("{payload_read_t}", "NVARCHAR(MAX)", "{headers_read_t}", "VARBINARY(8000)").Replace(s.render(text))
}

func TestEveryStatement(t *testing.T) {
	consts := statementtest.Constants(t, ".")
	if got, want := slices.Sorted(maps.Keys(consts)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("statements in the package:\n%v\nstatements this test knows:\n%v", got, want)
	}
	odd := sqlserver.Names{Schema: "my schema", Table: "it's ]odd[ \"table", ClaimIndex: "IX]a'b", RetryIndex: "IX c"}
	for name, text := range consts {
		for what, names := range map[string]sqlserver.Names{"default": {}, "odd": odd} {
			for _, index := range Indexes {
				t.Run(name+"/"+what+"/"+index, func(t *testing.T) {
					statementtest.Request(t, render(newScratch(names, oddColumns, index), text), kinds[name])
				})
			}
		}
	}
}

// Every statement that claims skips what others hold, by row locks, and returns
// the columns that the worker's claim returns.
func TestClaimingStatements(t *testing.T) {
	for name, text := range map[string]string{UpdateOutput: updateOutputSQL, UpdateTop: updateTopSQL, DeleteOutput: deleteOutputSQL} {
		script := statementtest.Parse(t, render(newScratch(sqlserver.Names{}, oddColumns, Slim), text))
		var hints []string
		outputs, tables := 0, 0
		statementtest.Visit(script, func(n any) {
			switch n := n.(type) {
			case *tsql.NamedTableReference:
				if h := statementtest.HintNames(n.TableHints); len(h) > 0 {
					hints = h
					tables++
				}
			case *tsql.OutputClause:
				outputs = len(n.SelectColumns)
			}
		})
		if tables != 1 || !slices.Contains(hints, "Rowlock") || !slices.Contains(hints, "ReadPast") || outputs != 8 {
			t.Errorf("%s: hints %v of %d tables, %d columns come back", name, hints, tables, outputs)
		}
	}
}

// No statement but those of the scratch table can be filled in with the name of
// the event table: what writes gets its name from scratchNames alone.
func TestScratchNames(t *testing.T) {
	long := strings.Repeat("ä", 120)
	for _, n := range []sqlserver.Names{{}, {Schema: "x", Table: "y"}, {Table: long}, {Table: "it's ]odd["}} {
		a, b := scratchNames(n), scratchNames(n)
		if a == b || a.Table == n.WithDefaults().Table || a.Schema != n.Schema || a.Validate() != nil {
			t.Errorf("%v gives %v and %v: %v", n, a, b, a.Validate())
		}
		begin := prefix(n.WithDefaults().Table)
		for _, name := range []string{a.Table, b.Table} {
			if !ours(name, begin) || len([]rune(keyPrefix+name)) > 128 || len([]rune("PK_"+name+"_claim")) > 128 {
				t.Errorf("%s is not taken for ours, or too long", name)
			}
		}
		for _, name := range []string{n.WithDefaults().Table, begin, begin + "results", a.Table + "_old", a.Table + "_claim", "x" + a.Table, begin + "0123456"} {
			if ours(name, begin) {
				t.Errorf("%s is taken for ours", name)
			}
		}
	}
	if prefix(long) == prefix(long+"a") {
		t.Error("two long names are the same")
	}
}
