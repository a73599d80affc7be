package statementtest

import (
	"cmp"
	"regexp"
	"slices"
	"testing"
	"unicode/utf16"

	tsql "github.com/sqlc-dev/teesql/ast"
)

// A text has one name, in comments of the form /* outbox:ClaimEvents */. Each
// SELECT, INSERT, UPDATE and DELETE in it has the comment behind its first
// keyword, so has a query in an IF, a SET or a trigger; a text with none of them
// begins with it.
//
// That is because of Query Store, which keeps statements and not batches. Of
// the text of one it drops what comments and blanks stand before and behind it,
// and keeps those between (sql-docs, sys-query-store-query-text-transact-sql.md).
// It collects plans of DML, which is SELECT, INSERT, UPDATE, DELETE, MERGE and BULK
// INSERT (monitoring-performance-by-using-the-query-store.md). The plan cache
// shows the text of the batch too, so that a reader finds the name there either way.
var nameComment = regexp.MustCompile(`/\* outbox:([A-Z][A-Za-z]+) \*/`)

var (
	namedFirst = regexp.MustCompile(`^/\* outbox:[A-Z][A-Za-z]+ \*/\n`)
	namedVerb  = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH) /\* outbox:[A-Z][A-Za-z]+ \*/ `)
)

// Name is the one name that a text carries.
func Name(t *testing.T, text string) string {
	t.Helper()
	var name string
	for _, m := range nameComment.FindAllStringSubmatch(text, -1) {
		if name != "" && m[1] != name {
			t.Errorf("two names, %s and %s, in\n%s", name, m[1], text)
		}
		name = m[1]
	}
	if name == "" {
		t.Errorf("no name in\n%s", text)
	}
	return name
}

// CheckName holds a text to the rule of where its name stands. script is its tree.
func CheckName(t *testing.T, text string, script *tsql.Script) {
	t.Helper()
	Name(t, text)
	units := utf16.Encode([]rune(text)) // what the tree counts in
	kept := keptByQueryStore(script)
	for _, f := range kept {
		if !f.HasSpan() {
			t.Fatalf("the parser does not say where a statement stands in\n%s", text)
		}
		if s := string(utf16.Decode(units[f.StartOffset:f.EndOffset()])); !namedVerb.MatchString(s) {
			t.Errorf("no name inside of\n%s", s)
		}
	}
	if len(kept) == 0 && !namedFirst.MatchString(text) {
		t.Errorf("this does not begin with its name:\n%s", text)
	}
}

// keptByQueryStore is where the statements stand that read or write, and the
// queries that stand in no such statement.
func keptByQueryStore(script *tsql.Script) []*tsql.Fragment {
	var statements, queries []*tsql.Fragment
	Visit(script, func(n any) {
		switch n := n.(type) {
		case *tsql.SelectStatement:
			statements = append(statements, n.Frag())
		case *tsql.InsertStatement:
			statements = append(statements, n.Frag())
		case *tsql.UpdateStatement:
			statements = append(statements, n.Frag())
		case *tsql.DeleteStatement:
			statements = append(statements, n.Frag())
		case *tsql.MergeStatement:
			statements = append(statements, n.Frag())
		case *tsql.QuerySpecification:
			queries = append(queries, n.Frag())
		}
	})
	kept := slices.Clone(statements)
	for _, q := range queries {
		if !within(q, statements) && !within(q, queries) {
			kept = append(kept, q)
		}
	}
	slices.SortFunc(kept, func(a, b *tsql.Fragment) int { return cmp.Compare(a.StartOffset, b.StartOffset) })
	return kept
}

func within(f *tsql.Fragment, others []*tsql.Fragment) bool {
	for _, o := range others {
		if o != f && o.StartOffset <= f.StartOffset && f.EndOffset() <= o.EndOffset() {
			return true
		}
	}
	return false
}
