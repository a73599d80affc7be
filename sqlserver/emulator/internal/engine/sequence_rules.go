package engine

import (
	"reflect"
	"strings"

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
	for _, clause := range []any{x.TopRowFilter, x.WhereClause, x.GroupByClause, x.HavingClause, x.OrderByClause, x.OffsetClause} {
		if takesSequence(clause, false) {
			return errSequenceClause()
		}
	}
	if !takesSequence(x.SelectElements, false) {
		return nil
	}
	for _, e := range x.SelectElements {
		if _, ok := e.(*ast.SelectSetVariable); ok {
			if err := drawsTwice(x.SelectElements); err != nil {
				return err
			}
		}
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
	return raiseBatch(11739, 16, 1, "NEXT VALUE FOR function cannot be used if ROWCOUNT option has been set, or the query contains TOP or OFFSET.")
}

func errSequenceNested() error {
	return raiseBatch(11719, 15, 1, "NEXT VALUE FOR function is not allowed in check constraints, default objects, computed columns, views, user-defined functions, user-defined aggregates, user-defined table types, sub-queries, common table expressions, derived tables or return statements.")
}

func errSequenceArgument() error {
	return raiseBatch(11724, 15, 1, "An expression that contains a NEXT VALUE FOR function cannot be passed as an argument to a table-valued function.")
}

func errSequenceAggregate() error {
	return raiseBatch(11725, 15, 1, "An expression that contains a NEXT VALUE FOR function cannot be passed as an argument to an aggregate.")
}

func errSequenceOver() error {
	return raiseBatch(11717, 15, 1, "NEXT VALUE FOR function does not support the OVER clause in default constraints, UPDATE statements, or MERGE statements.")
}

func errSequenceStatement() error {
	return raiseBatch(11738, 16, 1, "The use of NEXT VALUE FOR function is not allowed in this context.")
}

func errDefaultSequenceLimit() error {
	return raiseBatch(11740, 16, 1, "NEXT VALUE FOR function cannot be used in a default constraint if ROWCOUNT option has been set, or the query contains TOP or OFFSET.")
}

// draws are the sequences that one row of a statement takes from. A second NEXT
// VALUE FOR of one sequence in a row has the value of the first (sql-docs, "NEXT
// VALUE FOR"), which is not modelled.
type draws map[*sequence]bool

func (d draws) add(q *sequence) error {
	if d[q] {
		return notModelled("two NEXT VALUE FOR of one sequence in a row, which are one value")
	}
	d[q] = true
	return nil
}

// defaultDraws judges the sequences that the defaults of an INSERT take from, beside
// those of its source.
func (c *compiler) defaultDraws(spec *ast.InsertSpecification, source draws) error {
	if len(c.draws) == 0 {
		return nil
	}
	limited := spec.TopRowFilter != nil
	values := false
	switch src := spec.InsertSource.(type) {
	case *ast.ValuesInsertSource:
		values = true
	case *ast.SelectInsertSource:
		if q, ok := src.Select.(*ast.QuerySpecification); ok {
			limited = limited || q.TopRowFilter != nil || q.OffsetClause != nil
		}
	}
	if limited {
		return errDefaultSequenceLimit()
	}
	for q := range source {
		switch {
		case c.draws[q] && values:
			return raiseBatch(11731, 16, 1, "A column that uses a sequence object in the default constraint must be present in the target columns list, if the same sequence object appears in a row constructor.")
		case c.draws[q]:
			return source.add(q)
		}
	}
	return nil
}

// drawsTwice says whether a statement that assigns variables has two NEXT VALUE FOR
// of one sequence.
func drawsTwice(x any) error {
	seen := make(map[string]bool)
	twice := false
	walk(reflect.ValueOf(x), func(n any) bool {
		if next, ok := n.(*ast.NextValueForExpression); ok {
			name := strings.ToLower(objectText(next.SequenceName))
			twice = twice || seen[name]
			seen[name] = true
		}
		return !twice
	})
	if twice {
		return raiseBatch(11736, 16, 1, "Only one instance of NEXT VALUE FOR function per sequence object is allowed in SET or SELECT with variable assignment.")
	}
	return nil
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
	return raiseBatch(11741, 16, 1, "NEXT VALUE FOR function cannot be used within CASE, CHOOSE, COALESCE, IIF, ISNULL and NULLIF.")
}
