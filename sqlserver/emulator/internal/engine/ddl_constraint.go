package engine

import (
	"fmt"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// columnConstraints adds what is written beside a column.
func (e *Engine) columnConstraints(def *tableDef, st *ast.ColumnDefinition) error {
	at := def.column(st.ColumnIdentifier.Value)
	if d := st.DefaultConstraint; d != nil {
		if err := e.addDefault(def, at, d); err != nil {
			return notConstrained(err)
		}
	}
	for _, k := range st.Constraints {
		var err error
		switch k := k.(type) {
		case *ast.NullableConstraintDefinition:
		case *ast.DefaultConstraintDefinition:
			err = e.addDefault(def, at, k)
		case *ast.CheckConstraintDefinition:
			err = e.addCheck(def, k, def.columns[at].id)
		case *ast.UniqueConstraintDefinition:
			u := *k
			if len(u.Columns) == 0 {
				u.Columns = []*ast.ColumnWithSortOrder{{Column: columnNamed(st.ColumnIdentifier)}}
			}
			err = e.addUnique(def, &u)
		default:
			err = notModelled("the constraint %s", syntaxName(k))
		}
		if err != nil {
			return notConstrained(err)
		}
	}
	if st.Index != nil {
		ix := *st.Index
		if len(ix.Columns) == 0 {
			ix.Columns = []*ast.ColumnWithSortOrder{{Column: columnNamed(st.ColumnIdentifier)}}
		}
		return e.inlineIndex(def, &ix)
	}
	return nil
}

func columnNamed(id *ast.Identifier) *ast.ColumnReferenceExpression {
	return &ast.ColumnReferenceExpression{ColumnType: "Regular", MultiPartIdentifier: &ast.MultiPartIdentifier{Count: 1, Identifiers: []*ast.Identifier{id}}}
}

// notConstrained is what follows most errors of constraints.
func notConstrained(err error) error {
	first, ok := err.(*sqlError)
	if !ok || !constraintErrors[first.Number] {
		return err
	}
	e := raise(1750, 16, 0, "Could not create constraint or index. See previous errors.")
	e.before = first
	return e
}

var constraintErrors = map[int32]bool{
	1505: true, 1752: true, 1779: true, 1781: true, 1909: true, 1911: true, 1913: true, 1919: true, 1944: true, 1946: true, 2714: true, 8111: true,
}

// constrainedOnce refuses two constraints of one name.
func (t *tableDef) constrainedOnce() error {
	seen := make(map[string]bool)
	for _, h := range t.constraints() {
		key := strings.ToLower(h.name)
		if seen[key] {
			return notConstrained(errExists(h.name))
		}
		seen[key] = true
	}
	return nil
}

// addConstraint adds a table constraint.
func (e *Engine) addConstraint(def *tableDef, k ast.TableConstraint) error {
	return notConstrained(e.tableConstraint(def, k))
}

func (e *Engine) tableConstraint(def *tableDef, k ast.TableConstraint) error {
	switch k := k.(type) {
	case *ast.UniqueConstraintDefinition:
		return e.addUnique(def, k)
	case *ast.CheckConstraintDefinition:
		return e.addCheck(def, k, 0)
	case *ast.DefaultConstraintDefinition:
		if k.Column == nil {
			return errSyntax("DEFAULT")
		}
		at := def.column(k.Column.Value)
		if at < 0 {
			return raise(1752, 16, 0, "Column '%s' in table '%s' is invalid for creating a default constraint.", k.Column.Value, def.name)
		}
		return e.addDefault(def, at, k)
	}
	return notModelled("the constraint %s", syntaxName(k))
}

// constraintHeader names a constraint, as the server would where nobody did.
func (e *Engine) constraintHeader(def *tableDef, id *ast.Identifier, prefix string) (h objectHeader, system bool) {
	e.catalog.mu.Lock()
	defer e.catalog.mu.Unlock()
	h = e.catalog.newHeader(def.schema, "")
	if id != nil && id.Value != "" {
		h.name = id.Value
		return h, false
	}
	h.name = fmt.Sprintf("%s__%s__%08X", prefix, sqltype.CutUTF16(def.name, 9), uint32(h.id))
	return h, true
}

func (e *Engine) addDefault(def *tableDef, at int, st *ast.DefaultConstraintDefinition) error {
	if def.columns[at].def != nil {
		return raise(1781, 16, 1, "Column already has a DEFAULT bound to it.")
	}
	if def.columns[at].identity {
		return raise(1754, 16, 0, "Defaults cannot be created on columns with an IDENTITY attribute. Table '%s', column '%s'.", def.name, def.columns[at].name)
	}
	if takesSequence(st.Expression, false) && !takesSequence(st.Expression, true) {
		return errSequenceOver()
	}
	c := &compiler{engine: e, vars: (&variables{}).now(), checking: true, filterable: true}
	if _, err := c.expression(st.Expression, &scope{}); err != nil {
		return errNotColumn(err)
	}
	h, system := e.constraintHeader(def, st.ConstraintIdentifier, "DF")
	col := *def.columns[at]
	col.def = &defaultDef{objectHeader: h, expr: st.Expression, text: defaultText(st.Expression), systemNamed: system}
	def.columns[at] = &col
	return nil
}

// errNotColumn says of an unknown name that no column may stand there.
func errNotColumn(err error) error {
	se, ok := err.(*sqlError)
	if !ok || se.Number != 207 {
		return err
	}
	return raiseBatch(128, 15, 1, "The name \"%s\" is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted.", strings.Split(se.Message, "'")[1])
}

func (e *Engine) addCheck(def *tableDef, st *ast.CheckConstraintDefinition, column int) error {
	if aggregates(st.CheckCondition) {
		return raiseBatch(175, 15, 1, "An aggregate may not appear in a computed column expression or check constraint.")
	}
	if takesSequence(st.CheckCondition, false) {
		return errSequenceNested()
	}
	h, system := e.constraintHeader(def, st.ConstraintIdentifier, "CK")
	ck := &checkDef{objectHeader: h, expr: st.CheckCondition, text: conditionText(st.CheckCondition), column: column, systemNamed: system}
	c := &compiler{engine: e, vars: (&variables{}).now(), filterable: true}
	src, err := c.newSource(def.name, def.schema, def.outCols())
	if err != nil {
		return err
	}
	if _, err := c.checkCondition(ck, src); err != nil {
		return err
	}
	def.checks = append(def.checks, ck)
	return nil
}

// taken is the first of the definition's names that another object has.
func (c *catalog) taken(def *tableDef) string {
	if _, ok := c.objects[nameOf(def.schema, def.name)]; ok {
		return def.name
	}
	for _, h := range def.constraints() {
		if c.hasConstraint(h.schema, h.name, nil) {
			return h.name
		}
	}
	return ""
}

// hasConstraint looks for a constraint by name among the tables of a schema.
func (c *catalog) hasConstraint(schema, name string, except *tableDef) bool {
	for _, o := range c.objects {
		t, ok := o.(*tableDef)
		if !ok || t == except || !strings.EqualFold(t.schema, schema) {
			continue
		}
		for _, h := range t.constraints() {
			if strings.EqualFold(h.name, name) {
				return true
			}
		}
	}
	return false
}

// constraints are the constraint objects of a table.
func (t *tableDef) constraints() []*objectHeader {
	var out []*objectHeader
	for _, ix := range t.indexes {
		if ix.constraint != "" {
			out = append(out, &ix.object)
		}
	}
	for _, ck := range t.checks {
		out = append(out, &ck.objectHeader)
	}
	for _, c := range t.columns {
		if c.def != nil {
			out = append(out, &c.def.objectHeader)
		}
	}
	return out
}
