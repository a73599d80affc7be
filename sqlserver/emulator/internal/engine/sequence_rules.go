package engine

import (
	"reflect"

	"github.com/sqlc-dev/teesql/ast"
)

// Where NEXT VALUE FOR may stand is sql-docs, "NEXT VALUE FOR", limitations and
// restrictions; in a subquery of any kind it may not.

// takesSequence says whether a piece of a statement has a NEXT VALUE FOR; bare asks
// for one without OVER.
func takesSequence(x any, bare bool) bool {
	found := false
	walk(reflect.ValueOf(x), func(n any) bool {
		if next, ok := n.(*ast.NextValueForExpression); ok && (!bare || next.OverClause == nil) {
			found = true
		}
		return !found
	})
	return found
}

func sequenceRules(x *ast.QuerySpecification) error {
	for _, clause := range []any{x.TopRowFilter, x.WhereClause, x.GroupByClause, x.HavingClause, x.OrderByClause} {
		if takesSequence(clause, false) {
			return errSequenceClause()
		}
	}
	if !takesSequence(x.SelectElements, false) {
		return nil
	}
	switch {
	case x.UniqueRowFilter == "Distinct":
		return errSequenceSet()
	case x.TopRowFilter != nil || x.OffsetClause != nil:
		return errSequenceLimit()
	case x.OrderByClause != nil && takesSequence(x.SelectElements, true):
		return raiseBatch(11723, 15, 1, "NEXT VALUE FOR function cannot be used directly in a statement that contains an ORDER BY clause unless the OVER clause is specified.")
	}
	return nil
}

func errSequenceClause() error {
	return raiseBatch(11720, 15, 1, "NEXT VALUE FOR function is not allowed in the TOP, OVER, OUTPUT, ON, WHERE, GROUP BY, HAVING, or ORDER BY clauses.")
}

func errSequenceSet() error {
	return raiseBatch(11721, 15, 1, "NEXT VALUE FOR function cannot be used directly in a statement that uses a DISTINCT, UNION, UNION ALL, EXCEPT or INTERSECT operator.")
}

func errSequenceLimit() error {
	return raiseBatch(11739, 15, 1, "NEXT VALUE FOR function cannot be used if ROWCOUNT option has been set, or the query contains TOP or OFFSET.")
}

func errSequenceNested() error {
	return raiseBatch(11719, 15, 1, "NEXT VALUE FOR function is not allowed in check constraints, default objects, computed columns, views, user-defined functions, user-defined aggregates, user-defined table types, sub-queries, common table expressions, derived tables or return statements.")
}

// chooses are the functions that do not evaluate every argument.
var chooses = map[string]bool{"ISNULL": true, "CHOOSE": true}

// choosing compiles an expression that may leave parts of itself out.
func (c *compiler) choosing(f func() (*scalar, error)) (*scalar, error) {
	c.choices++
	defer func() { c.choices-- }()
	return f()
}

func errSequenceChoice() error {
	return raiseBatch(11741, 15, 1, "NEXT VALUE FOR function cannot be used within CASE, CHOOSE, COALESCE, IIF, ISNULL and NULLIF.")
}
