// Package statementtest holds T-SQL texts to the rules of this project: tests
// parse every statement that a package can send and look at its tree. Only tests
// import it.
//
// The parser is lenient: a misspelled option, a missing END or a trailing word
// shows as a statement more or less, not as an error. So the tree is the test.
package statementtest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	tsql "github.com/sqlc-dev/teesql/ast"
	tsqlparser "github.com/sqlc-dev/teesql/parser"
)

// Constants finds every constant of the package in dir whose name ends in SQL,
// so that a new statement cannot be forgotten. Each must be a literal with a name
// of its own.
func Constants(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, 0)
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
	named := make(map[string]string)
	for name, text := range found {
		n := Name(t, text)
		if other, ok := named[n]; ok && n != "" {
			t.Errorf("%s and %s have the same name %s", name, other, n)
		}
		named[n] = name
	}
	return found
}

// Parse parses one text.
func Parse(t *testing.T, text string) *tsql.Script {
	t.Helper()
	script, err := tsqlparser.Parse(context.Background(), strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return script
}

// Request parses what is sent in one request, compares the outline of its
// statements with want and holds its tree to the rules of CheckScript, to that
// of CheckName and to those of statements that run often: no ids in the text, and something that
// keeps forced parameterization away from the literals. It calls procedures only
// by the names in execs.
func Request(t *testing.T, text, want string, execs ...string) *tsql.Script {
	t.Helper()
	if strings.ContainsAny(text, "{}") || strings.Contains(text, "%d") {
		t.Errorf("something is left to fill in:\n%s", text)
	}
	script := Parse(t, text)
	if len(script.Batches) != 1 {
		t.Fatalf("%d batches in\n%s", len(script.Batches), text)
	}
	if got := Outline(script.Batches[0].Statements); got != want {
		t.Errorf("statements are %s, want %s", got, want)
	}
	CheckScript(t, script, execs...)
	CheckName(t, text, script)
	variables, recompiles, sets, queries := 0, false, 0, 0
	Visit(script, func(n any) {
		switch n := n.(type) {
		case *tsql.QuerySpecification, *tsql.InsertStatement, *tsql.UpdateStatement, *tsql.DeleteStatement:
			queries++
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
	// Forced parameterization is for SELECT, INSERT, UPDATE and DELETE (sql-docs,
	// query-processing-architecture-guide.md).
	if queries > 0 && variables == 0 && !recompiles && sets == 0 {
		t.Errorf("no variable and no RECOMPILE: forced parameterization would take its literals\n%s", text)
	}
	return script
}

// CheckScript holds a tree to the rules that all T-SQL of the project shares:
// status is a literal wherever it is compared or set, READPAST comes with
// READCOMMITTEDLOCK, no SELECT *, no procedure but those in execs.
func CheckScript(t *testing.T, script *tsql.Script, execs ...string) {
	t.Helper()
	Visit(script, func(n any) {
		switch n := n.(type) {
		case *tsql.SelectStarExpression:
			t.Error("SELECT *")
		case *tsql.BooleanComparisonExpression:
			for _, pair := range [][2]tsql.ScalarExpression{{n.FirstExpression, n.SecondExpression}, {n.SecondExpression, n.FirstExpression}} {
				if IsColumn(pair[0], "status") && !isStatusLiteral(pair[1]) {
					t.Errorf("status is compared with a %T", pair[1])
				}
			}
		case *tsql.BooleanInExpression:
			for _, v := range n.Values {
				if IsColumn(n.Expression, "status") && !isStatusLiteral(v) {
					t.Errorf("status is compared with a %T", v)
				}
			}
		case *tsql.AssignmentSetClause:
			if n.Column != nil && IsColumn(n.Column, "status") && !isStatusLiteral(n.NewValue) {
				t.Errorf("status is set to a %T", n.NewValue)
			}
		case *tsql.NamedTableReference:
			hints := HintNames(n.TableHints)
			if slices.Contains(hints, "ReadPast") && !slices.Contains(hints, "ReadCommittedLock") {
				t.Errorf("READPAST without READCOMMITTEDLOCK: %v", hints)
			}
		case *tsql.ExecuteStatement:
			if name := executed(n); !slices.Contains(execs, name) {
				t.Errorf("EXECUTE of %q", name)
			}
		}
	})
}
