package sqlserver

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	tsql "github.com/sqlc-dev/teesql/ast"
	tsqlparser "github.com/sqlc-dev/teesql/parser"

	"azsqloutbox/scripts"
)

// shapes are tables that render the statements in every way there is.
var shapes = map[string]*table{
	"default":           shape("varchar", 100, "Latin1_General_CI_AS", "varchar", 2000, "Latin1_General_100_BIN2_UTF8"),
	"max":               shape("nvarchar", 200, "Latin1_General_CI_AS", "varchar", -1, "Latin1_General_100_BIN2_UTF8"),
	"nvarchar":          shape("varchar", 100, "Latin1_General_100_CI_AS_SC_UTF8", "nvarchar", -1, "Latin1_General_CI_AS"),
	"int and code page": shape("int", 4, "", "varchar", 8000, "SQL_Latin1_General_CP1_CI_AS"),
}

func shape(eventType string, eventTypeBytes int, collation, payload string, payloadBytes int, payloadCollation string) *table {
	columns := map[string]column{
		"id":           {kind: "bigint", bytes: 8},
		"status":       {kind: "tinyint", bytes: 1},
		"retry_count":  {kind: "int", bytes: 4},
		"event_type":   {kind: eventType, bytes: eventTypeBytes, collation: collation},
		"payload":      {kind: payload, bytes: payloadBytes, collation: payloadCollation},
		"headers":      {kind: payload, bytes: payloadBytes, collation: payloadCollation},
		"created_at":   {kind: "datetime2", bytes: 7, scale: 3},
		"processed_at": {kind: "datetime2", bytes: 7, scale: 3},
		"retry_at":     {kind: "datetime2", bytes: 7, scale: 3},
	}
	for _, name := range []string{"aggregate_type", "aggregate_id", "last_error"} {
		columns[name] = column{kind: "varchar", bytes: 100, collation: "Latin1_General_100_CI_AS_SC_UTF8"}
	}
	for name, c := range columns {
		c.name = name
		columns[name] = c
	}
	return &table{columns: columns, receiptType: column{name: "event_type", kind: "varchar", bytes: 100}}
}

var names = map[string]Names{
	"default": {},
	"odd":     {Schema: "my schema", Table: "it's ]odd[ \"table", ClaimIndex: "IX]a'b", RetryIndex: "IX c"},
}

// statementConsts finds every constant of this package that is a statement, so
// that a new one cannot be forgotten here.
func statementConsts(t *testing.T) map[string]string {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasSuffix(spec.Names[0].Name, "SQL") {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: %s is no literal", entry.Name(), spec.Names[0].Name)
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[0].Name] = text
			return true
		})
	}
	return found
}

// kinds are the statements of each text, in order: a misspelled option, a
// missing END or a trailing word shows as a statement more or less.
var kinds = map[string]string{
	"claimEventsSQL":        "Select",
	"flipClaimSQL":          "Declare Declare Declare Update Set Insert Select",
	"findClaimSQL":          "Select",
	"settleSentSQL":         "Declare Delete Set Select",
	"settleSQL":             "Declare Declare Declare Select If(Begin(Delete Set Update Set Update Set)) Select",
	"openJSONSQL":           "Declare Select",
	"openReceiptsSQL":       "Select",
	"overdueClaimsSQL":      "Declare Select",
	"reapClaimSQL":          "SetCommand Declare Declare Declare Select If(Begin(Delete Set Select Update Set Update Set)) Select",
	"retryDueSQL":           "Declare Declare Update Set Select",
	"pendingSQL":            "Select",
	"discoverPendingSQL":    "Declare Select While(Begin(Set Set Select Set Set If(Select Select))) Select",
	"backlogTotalSQL":       "Select",
	"backlogTypesSQL":       "Select",
	"heartbeatSQL":          "Declare Update If(Insert) Delete",
	"equalKeysSQL":          "Select",
	"lostKeysSQL":           "Select",
	"tableColumnsSQL":       "Select",
	"tableIndexesSQL":       "Select",
	"statusChecksSQL":       "Select",
	"tableRowsSQL":          "Select",
	"countUnknownStatusSQL": "Select",
	"databaseStateSQL":      "Declare Select",
	"enqueueSQL":            "PredicateSet Declare Select If(Throw) Set Execute Set If(Throw) Insert If(Throw)",
	"enqueueIdentitySQL":    "PredicateSet Insert If(Throw)",
	"fitsCollationSQL":      "Select",
	"sessionSetupSQL":       "PredicateSet PredicateSet PredicateSet SetTransactionIsolationLevel SetCommand",
}

func TestEveryStatement(t *testing.T) {
	consts := statementConsts(t)
	if got, want := slices.Sorted(maps.Keys(consts)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("statements in the package:\n%v\nstatements this test knows:\n%v", got, want)
	}
	seen := make(map[string]string)
	for name, text := range consts {
		first, _, _ := strings.Cut(text, "\n")
		if !regexp.MustCompile(`^-- outbox:[A-Z][A-Za-z]+$`).MatchString(first) {
			t.Errorf("%s begins with %q, not with its name", name, first)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("%s and %s have the same name", name, other)
		}
		seen[first] = name
		for shape, table := range shapes {
			for what, n := range names {
				t.Run(fmt.Sprintf("%s/%s/%s", name, shape, what), func(t *testing.T) {
					rendered := n.renderer(table).Replace(text)
					if name == "sessionSetupSQL" {
						rendered = newSessions(nil, 5e9).setup
					}
					if strings.ContainsAny(rendered, "{}") || strings.Contains(rendered, "%d") {
						t.Errorf("something is left to fill in:\n%s", rendered)
					}
					script := parse(t, rendered)
					if len(script.Batches) != 1 {
						t.Fatalf("%d batches", len(script.Batches))
					}
					if got := outline(script.Batches[0].Statements); got != kinds[name] {
						t.Errorf("statements are %s, want %s", got, kinds[name])
					}
					checkTree(t, script, rendered)
				})
			}
		}
	}
}

func TestEveryScript(t *testing.T) {
	for name, render := range map[string]func(scripts.Options) (string, error){"001": scripts.Outbox, "010": scripts.Enqueue} {
		for what, o := range map[string]scripts.Options{
			"default": {},
			"other":   {Schema: "my schema", Table: "it's ]odd[", EventType: "INT", Payload: "NVARCHAR(MAX)", Collation: "database_default", SlimClaimIndex: true},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				text, err := render(o)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, batch := range scripts.Batches(text) {
					script := parse(t, batch)
					for _, b := range script.Batches {
						got = append(got, outline(b.Statements))
					}
					checkScript(t, script)
				}
				want := map[string][]string{
					"001": {
						"PredicateSet PredicateSet", "If(Begin(If(If(Throw)) CreateSequence))", "If(CreateTable)",
						"If(CreateIndex)", "If(CreateIndex)", "If(CreateTable)", "If(CreateTable)",
					},
					"010": {"PredicateSet PredicateSet", "CreateOrAlterProcedure"},
				}[name]
				if !slices.Equal(got, want) {
					t.Errorf("batches are %q, want %q", got, want)
				}
			})
		}
	}
}

func parse(t *testing.T, text string) *tsql.Script {
	t.Helper()
	script, err := tsqlparser.Parse(context.Background(), strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return script
}

// outline names the statements, with what stands inside them.
func outline(list []tsql.Statement) string {
	var out []string
	for _, s := range list {
		kind := strings.TrimSuffix(reflect.TypeOf(s).Elem().Name(), "Statement")
		switch s := s.(type) {
		case *tsql.IfStatement:
			inner := outline([]tsql.Statement{s.ThenStatement})
			if s.ElseStatement != nil {
				inner += " " + outline([]tsql.Statement{s.ElseStatement})
			}
			out = append(out, "If("+inner+")")
		case *tsql.WhileStatement:
			out = append(out, "While("+outline([]tsql.Statement{s.Statement})+")")
		case *tsql.BeginEndBlockStatement:
			out = append(out, "Begin("+outline(s.StatementList.Statements)+")")
		case *tsql.DeclareVariableStatement:
			out = append(out, "Declare")
		case *tsql.SetVariableStatement:
			out = append(out, "Set")
		default:
			out = append(out, kind)
		}
	}
	return strings.Join(out, " ")
}

// checkTree holds a statement to the rules that all share.
func checkTree(t *testing.T, script *tsql.Script, text string) {
	t.Helper()
	checkScript(t, script)
	variables, recompiles, sets := 0, false, 0
	visit(script, func(n any) {
		switch n := n.(type) {
		case *tsql.VariableReference:
			variables++
		case *tsql.DeclareVariableStatement:
			variables++
		case *tsql.PredicateSetStatement:
			sets++
		case *tsql.OptimizerHint:
			recompiles = recompiles || n.HintKind == "Recompile"
		case *tsql.IntegerLiteral:
			if v, err := strconv.Atoi(n.Value); err != nil || v > 50000 {
				t.Errorf("the number %s is in the text: ids travel as parameters", n.Value)
			}
		}
	})
	if variables == 0 && !recompiles && sets == 0 {
		t.Errorf("no variable and no RECOMPILE: forced parameterization would take its literals\n%s", text)
	}
}

func checkScript(t *testing.T, script *tsql.Script) {
	t.Helper()
	visit(script, func(n any) {
		switch n := n.(type) {
		case *tsql.SelectStarExpression:
			t.Error("SELECT *")
		case *tsql.BooleanComparisonExpression:
			for _, pair := range [][2]tsql.ScalarExpression{{n.FirstExpression, n.SecondExpression}, {n.SecondExpression, n.FirstExpression}} {
				if isColumn(pair[0], "status") && !isStatusLiteral(pair[1]) {
					t.Errorf("status is compared with a %T", pair[1])
				}
			}
		case *tsql.BooleanInExpression:
			for _, v := range n.Values {
				if isColumn(n.Expression, "status") && !isStatusLiteral(v) {
					t.Errorf("status is compared with a %T", v)
				}
			}
		case *tsql.AssignmentSetClause:
			if n.Column != nil && isColumn(n.Column, "status") && !isStatusLiteral(n.NewValue) {
				t.Errorf("status is set to a %T", n.NewValue)
			}
		case *tsql.NamedTableReference:
			hints := hintNames(n.TableHints)
			if slices.Contains(hints, "ReadPast") && !slices.Contains(hints, "ReadCommittedLock") {
				t.Errorf("READPAST without READCOMMITTEDLOCK: %v", hints)
			}
		case *tsql.ExecuteStatement:
			if name := executed(n); name != "sys.sp_sequence_get_range" {
				t.Errorf("EXECUTE of %q", name)
			}
		}
	})
}

func TestClaimHints(t *testing.T) {
	script := parse(t, Names{}.renderer(shapes["default"]).Replace(claimEventsSQL))
	var tables []*tsql.NamedTableReference
	visit(script, func(n any) {
		if ref, ok := n.(*tsql.NamedTableReference); ok {
			tables = append(tables, ref)
		}
	})
	if len(tables) != 1 {
		t.Fatalf("the claim reads %d tables", len(tables))
	}
	want := []string{"INDEX(IX_outbox_claim)", "*ast.ForceSeekTableHint", "UpdLock", "Rowlock", "ReadPast", "ReadCommittedLock"}
	if got := hintNames(tables[0].TableHints); !slices.Equal(got, want) {
		t.Errorf("hints are %v, want %v", got, want)
	}
	spec := script.Batches[0].Statements[0].(*tsql.SelectStatement).QueryExpression.(*tsql.QuerySpecification)
	for _, e := range spec.SelectElements {
		if s, ok := e.(*tsql.SelectScalarExpression); ok && isColumn(s.Expression, "status") {
			t.Error("the claim selects status")
		}
	}
	if _, ok := spec.TopRowFilter.Expression.(*tsql.ParenthesisExpression); !ok {
		t.Errorf("TOP is a %T", spec.TopRowFilter.Expression)
	}
}

func hintNames(hints []tsql.TableHintType) []string {
	var list []string
	for _, h := range hints {
		switch h := h.(type) {
		case *tsql.TableHint:
			list = append(list, h.HintKind)
		case *tsql.IndexTableHint:
			for _, v := range h.IndexValues {
				list = append(list, "INDEX("+strings.Trim(v.Identifier.Value, "[]")+")")
			}
		default:
			list = append(list, fmt.Sprintf("%T", h))
		}
	}
	return list
}

func isColumn(e any, name string) bool {
	c, ok := e.(*tsql.ColumnReferenceExpression)
	if !ok || c.MultiPartIdentifier == nil || len(c.MultiPartIdentifier.Identifiers) == 0 {
		return false
	}
	parts := c.MultiPartIdentifier.Identifiers
	return strings.EqualFold(parts[len(parts)-1].Value, name)
}

func isStatusLiteral(e any) bool {
	n, ok := e.(*tsql.IntegerLiteral)
	return ok && slices.Contains([]string{"0", "1", "2"}, n.Value)
}

func executed(n *tsql.ExecuteStatement) string {
	ref, ok := n.ExecuteSpecification.ExecutableEntity.(*tsql.ExecutableProcedureReference)
	if !ok || ref.ProcedureReference == nil || ref.ProcedureReference.ProcedureReference == nil {
		return "?"
	}
	var parts []string
	for _, id := range ref.ProcedureReference.ProcedureReference.Name.Identifiers {
		parts = append(parts, id.Value)
	}
	return strings.Join(parts, ".")
}

// visit calls f with every pointer to a struct in the tree.
func visit(root any, f func(any)) {
	seen := make(map[uintptr]bool)
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface:
			walk(v.Elem())
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] {
				return
			}
			if v.Elem().Kind() == reflect.Struct {
				seen[v.Pointer()] = true
				f(v.Interface())
			}
			walk(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(reflect.ValueOf(root))
}
