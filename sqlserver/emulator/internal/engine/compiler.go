package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// compiler binds one unit: it turns syntax into closures over an env.
type compiler struct {
	engine     *Engine
	session    *session
	vars       visible
	filterable bool
	// nullsEqual is ANSI_NULLS OFF, nullIsEmpty CONCAT_NULL_YIELDS_NULL OFF.
	nullsEqual, nullIsEmpty bool
	// sessionOnly: the plan names a #table and is no use to other sessions.
	sessionOnly bool
	// parameterized: literals count as parameters (forced parameterization).
	parameterized bool
	hints         queryHints
	// reads: something in the unit reads rows.
	reads bool
	// slots counts the table sources; each has its place in env.rows.
	slots []*source
	// ctes are the names that WITH gives, innermost last.
	ctes []*cte
	// within are the names of the CTEs whose queries are being compiled.
	within []string
	// level is the query being compiled: aggregates and window functions are
	// left with it.
	level *queryLevel
	// applying: the right side of an APPLY is compiled, which sees the left.
	applying bool
	// applied: the next query to compile is the right side of an APPLY.
	applied bool
	// touched are the slots that columns were resolved to: what a subquery
	// touches outside its own slots is what it is correlated with.
	touched slotSet
	// leaves are the stored tables by slot, memName the table variables.
	leaves  map[int]*leaf
	memName map[int]string
	// accesses are how the stored tables are reached, by slot.
	accesses map[int]*planAccess
	// converts are the columns that a comparison converts.
	converts []implicitConvert
	// checking: a CHECK, DEFAULT or index filter is compiled, which may hold no
	// subquery.
	checking bool
	// needs are the permissions that the unit needs; pseudo are the inserted and
	// deleted of its OUTPUT.
	needs []need
	// names are the objects that were looked up, found or not.
	names  []objectName
	pseudo []pseudoTable
	// choices counts the CASEs and their like around what is compiled.
	choices int
	draws   draws
	// defaulting: a column's default is compiled.
	defaulting bool
	// firing is set in a trigger: what fires it.
	firing *firing
}

// source is a table source with its columns, as names see it.
type source struct {
	slot int
	// alias is the name that qualifies its columns.
	alias  string
	schema string
	cols   []outCol
	table  *tableDef
	// columnOf maps cols to the slot of another source where they are that
	// source's columns unchanged (an updatable CTE or derived table).
	columnOf []columnRef
	// grouped: a CTE or derived table whose rows are none of a table's own. joined:
	// it joins tables, and a DELETE could not say from which to delete.
	grouped, joined bool
	// used are the columns that the statement reads; fixed are those that it only
	// compares with a literal, which an index filtered by it need not hold.
	used, fixed columnSet
	// written: the statement changes the table.
	written bool
}

type outCol struct {
	name     string
	typ      sqltype.Type
	nullable bool
	identity bool
	// untyped is the literal NULL.
	untyped bool
	// strength and conflict are those of the expression that a query selects.
	strength collationStrength
	conflict *collationConflict
}

// columnRef is a column of a slot; ok is false for computed ones.
type columnRef struct {
	slot, column int
	ok           bool
}

// scope is the sources that names are looked up in; parent is the query
// around.
type scope struct {
	parent  *scope
	sources []*source
	// qualified: a column must say of which source it is.
	qualified bool
}

// maxSlots is the width of a dependency set.
const maxSlots = 64

// slotSet is a set of slots.
type slotSet uint64

func (s slotSet) has(slot int) bool       { return s&(1<<slot) != 0 }
func (s slotSet) within(all slotSet) bool { return s&^all == 0 }

func (c *compiler) newSource(alias, schema string, cols []outCol) (*source, error) {
	if len(c.slots) >= maxSlots {
		return nil, notModelled("statements with more than %d table sources", maxSlots)
	}
	s := &source{slot: len(c.slots), alias: alias, schema: schema, cols: cols}
	c.slots = append(c.slots, s)
	return s, nil
}

// resolve finds a column by its parts: name, table.name or schema.table.name.
func (sc *scope) resolve(parts []string) (*source, int, error) {
	name := parts[len(parts)-1]
	for s := sc; s != nil; s = s.parent {
		var found *source
		at := 0
		qualified := false
		for _, src := range s.sources {
			if len(parts) > 1 {
				if !src.called(parts[:len(parts)-1]) {
					continue
				}
				qualified = true
			}
			for i, col := range src.cols {
				if len(parts) == 1 && s.qualified || !strings.EqualFold(col.name, name) {
					continue
				}
				if found != nil {
					return nil, 0, errAmbiguous(name)
				}
				found, at = src, i
			}
		}
		if found != nil {
			return found, at, nil
		}
		if qualified {
			return nil, 0, errNoColumn(name)
		}
	}
	if len(parts) > 1 {
		return nil, 0, errUnbound(strings.Join(parts, "."))
	}
	return nil, 0, errNoColumn(name)
}

// called says whether a qualifier means this source.
func (s *source) called(qualifier []string) bool {
	n := len(qualifier)
	if !strings.EqualFold(qualifier[n-1], s.alias) {
		return false
	}
	return n < 2 || s.schema == "" || strings.EqualFold(qualifier[n-2], s.schema)
}

func identifiers(m *ast.MultiPartIdentifier) []string {
	parts := make([]string, len(m.Identifiers))
	for i, id := range m.Identifiers {
		parts[i] = id.Value
	}
	return parts
}

// cte is a common table expression; it is compiled anew where it is named.
type cte struct {
	name    string
	columns []*ast.Identifier
	query   ast.QueryExpression
	// depth is how many CTEs this one's query sees.
	depth int
}

func (c *compiler) pushCTEs(w *ast.WithCtesAndXmlNamespaces) error {
	if w == nil {
		return nil
	}
	if w.XmlNamespaces != nil || w.ChangeTrackingContext != nil {
		return notModelled("XMLNAMESPACES and CHANGE_TRACKING_CONTEXT")
	}
	for _, t := range w.CommonTableExpressions {
		if t.QueryExpression == nil || t.ExpressionName == nil {
			return errSyntax("WITH")
		}
		if c.findCTE(t.ExpressionName.Value) != nil {
			return raiseBatch(239, 16, 1, "Duplicate common table expression name '%s' was specified.", t.ExpressionName.Value)
		}
		c.ctes = append(c.ctes, &cte{t.ExpressionName.Value, t.Columns, t.QueryExpression, len(c.ctes)})
	}
	return nil
}

func (c *compiler) findCTE(name string) *cte {
	for i := len(c.ctes) - 1; i >= 0; i-- {
		if strings.EqualFold(c.ctes[i].name, name) {
			return c.ctes[i]
		}
	}
	return nil
}
