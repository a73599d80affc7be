package engine

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"
)

// trigger is an AFTER trigger for DML. Its table has it too, so that a plan
// knows what it fires. It is a procedure that nobody calls.
type trigger struct {
	procedure
	parent            objectName
	parentID          int32
	events            triggerEvents
	disabled          bool
	notForReplication bool
}

// triggerEvents is a set of the statements that fire a trigger.
type triggerEvents uint8

const (
	onInsert triggerEvents = 1 << iota
	onUpdate
	onDelete
)

var triggerEventNames = map[string]triggerEvents{"Insert": onInsert, "Update": onUpdate, "Delete": onDelete}

// fires says whether a statement of that kind would fire any trigger.
func (t *tableDef) fires(event triggerEvents) bool {
	return slices.ContainsFunc(t.triggers, func(tr *trigger) bool { return !tr.disabled && tr.events&event != 0 })
}

// triggerSyntax is what the forms of CREATE and ALTER have in common.
type triggerSyntax struct {
	name              *ast.SchemaObjectName
	on                *ast.TriggerObject
	kind              string
	actions           []*ast.TriggerAction
	options           []ast.TriggerOptionType
	append            bool
	notForReplication bool
	external          bool
	body              *ast.StatementList
	replace           bool // CREATE OR ALTER
	alter             bool
}

// triggerStatement builds the statements about triggers; ok is false for
// others.
func (b *builder) triggerStatement(st ast.Statement) (n node, ok bool, err error) {
	switch st := st.(type) {
	case *ast.CreateTriggerStatement:
		n, err = b.createTrigger(&triggerSyntax{st.Name, st.TriggerObject, st.TriggerType, st.TriggerActions, st.Options, st.WithAppend, st.IsNotForReplication, st.MethodSpecifier != nil, st.StatementList, false, false})
	case *ast.CreateOrAlterTriggerStatement:
		n, err = b.createTrigger(&triggerSyntax{st.Name, st.TriggerObject, st.TriggerType, st.TriggerActions, st.Options, st.WithAppend, st.IsNotForReplication, st.MethodSpecifier != nil, st.StatementList, true, false})
	case *ast.AlterTriggerStatement:
		n, err = b.createTrigger(&triggerSyntax{st.Name, st.TriggerObject, st.TriggerType, st.TriggerActions, st.Options, st.WithAppend, st.IsNotForReplication, st.MethodSpecifier != nil, st.StatementList, false, true})
	case *ast.DropTriggerStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.dropTriggers(sc, st) })
	case *ast.EnableDisableTriggerStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.switchTriggers(sc, st) })
	case *ast.AlterTableTriggerModificationStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.alterTableTriggers(sc, st) })
	default:
		return nil, false, nil
	}
	return n, true, err
}

func (b *builder) createTrigger(st *triggerSyntax) (node, error) {
	if err := b.engine.local(partsOf(st.name)); err != nil {
		return nil, err
	}
	tr := &trigger{notForReplication: st.notForReplication}
	if err := b.triggerKind(st, tr); err != nil {
		return nil, err
	}
	inner := &builder{engine: b.engine, parsed: b.parsed, mod: b.engine.emptyModule(planKey{text: b.mod.text}), inTrigger: true}
	tr.mod, tr.text = inner.mod, b.mod.text
	tr.name = st.name.BaseIdentifier.Value
	var err error
	if inner.mod.body, err = inner.list(statements(st.body)); err != nil {
		return nil, err
	}
	return ddl(func(x *exec, sc *statementScope) error { return x.defineTrigger(sc, st, tr) }), nil
}

// triggerKind reads what is between a trigger's name and its body.
func (b *builder) triggerKind(st *triggerSyntax, tr *trigger) error {
	switch {
	case st.on.TriggerScope != "Normal":
		return notModelled("DDL and logon triggers")
	case st.kind == "InsteadOf":
		return notModelled("INSTEAD OF triggers")
	case st.kind == "":
		return errSyntax(objectText(st.on.Name))
	case st.append:
		return notModelled("triggers WITH APPEND")
	case st.external:
		return notModelled("triggers in other languages")
	case strings.HasPrefix(st.on.Name.BaseIdentifier.Value, "#"):
		return raiseBatch(8197, 16, 4, "The object '%s' does not exist or is invalid for this operation.", objectText(st.on.Name))
	case len(statements(st.body)) == 0:
		return errSyntax("AS")
	}
	for _, o := range st.options {
		if as, ok := o.(*ast.ExecuteAsTriggerOption); ok && as.ExecuteAsClause != nil && as.ExecuteAsClause.ExecuteAsOption == "Caller" {
			continue
		}
		return notModelled("triggers WITH ENCRYPTION or EXECUTE AS another")
	}
	if len(st.options) == 0 && b.hasWith(st) {
		return errSyntax("WITH") // the parser skips an option that it does not know
	}
	for _, a := range st.actions {
		event, ok := triggerEventNames[a.TriggerActionType]
		switch {
		case !ok:
			return errSyntax(st.kind)
		case tr.events&event != 0:
			return raiseBatch(1034, 15, 1, "Syntax error: Duplicate specification of the action \"%s\" in the trigger declaration.", strings.ToUpper(a.TriggerActionType))
		}
		tr.events |= event
	}
	if tr.events == 0 {
		return errSyntax("AS")
	}
	return nil
}

// hasWith looks for options in the text between a trigger's table and what
// fires it.
func (b *builder) hasWith(st *triggerSyntax) bool {
	if len(st.actions) == 0 {
		return false
	}
	units := utf16.Encode([]rune(b.parsed))
	from, to := st.on.StartOffset+st.on.FragmentLength, st.actions[0].StartOffset
	if from > to || to > len(units) {
		return false
	}
	for g := (&guard{text: string(utf16.Decode(units[from:to]))}); g.next(); {
		if strings.EqualFold(g.token, "WITH") {
			return true
		}
	}
	return false
}

// defineTrigger puts a new or changed trigger in place, under Sch-M on its
// table.
func (x *exec) defineTrigger(sc *statementScope, st *triggerSyntax, tr *trigger) error {
	e := x.s.engine
	def, err := x.lockForDDL(sc, func() (*tableDef, error) {
		def, err := x.tableForDDL(st.on.Name, "CREATE TRIGGER")
		if se, ok := err.(*sqlError); ok && se.Number == 1088 {
			return nil, raise(8197, 16, 4, "The object '%s' does not exist or is invalid for this operation.", objectText(st.on.Name))
		}
		return def, err
	})
	if err != nil {
		return err
	}
	schema := def.schema
	if st.name.SchemaIdentifier != nil {
		schema = st.name.SchemaIdentifier.Value
	}
	if !strings.EqualFold(schema, def.schema) {
		verb := "create"
		if st.alter {
			verb = "alter"
		}
		return raise(2103, 15, 1, "Cannot %s trigger '%s' because its schema is different from the schema of the target table or view.", verb, objectText(st.name))
	}
	if err := x.claimName(sc, def.schema, tr.name); err != nil {
		return err
	}
	old, exists := e.catalog.find(nameOf(def.schema, tr.name)).(*trigger)
	switch {
	case !exists && e.catalog.find(nameOf(def.schema, tr.name)) != nil, exists && !st.replace && !st.alter:
		return errExists(tr.name)
	case !exists && st.alter:
		return raise(208, 16, 6, "Invalid object name '%s'.", objectText(st.name))
	case exists && old.parentID != def.id:
		return raise(2110, 15, 1, "Cannot alter trigger '%s' on '%s' because this trigger does not belong to this object. Specify the correct trigger name or the correct target object name.", tr.name, objectText(st.on.Name))
	}
	next := *tr
	next.parent, next.parentID = nameOf(def.schema, def.name), def.id
	next.quotedIdentifier, next.ansiNulls = x.s.set.quotedIdentifier, x.s.set.ansiNulls
	next.options = x.s.set.setOptions(e.database.forcedParameters.Load())
	if err := x.bindTrigger(&next, def); err != nil {
		return err
	}
	e.catalog.mu.Lock()
	next.objectHeader = e.catalog.newHeader(def.schema, tr.name)
	e.catalog.mu.Unlock()
	list := slices.Clone(def.triggers)
	if exists {
		next.id, next.created = old.id, old.created
		list[slices.Index(list, old)] = &next
	} else {
		list = append(list, &next)
	}
	return x.setTriggers(sc, def, list)
}

// bindTrigger compiles a trigger ahead, as CREATE does: a column that is not
// there is an error now, a table that is not there is left for later.
func (x *exec) bindTrigger(tr *trigger, def *tableDef) error {
	return tr.mod.bindAhead(&exec{s: x.s, ctx: x.ctx, w: x.w, caller: x, firing: &firing{trigger: tr, def: def}})
}

// setTriggers gives a table another list of triggers, and the catalog their
// names.
func (x *exec) setTriggers(sc *statementScope, def *tableDef, list []*trigger) error {
	c := x.s.engine.catalog
	next := def.copy()
	next.triggers, next.modified = list, def.modified
	return c.change(sc.undo, func() (func(), error) {
		undo := []func(){c.put(next)}
		for _, old := range def.triggers {
			undo = append(undo, c.remove(nameOf(old.schema, old.name)))
		}
		for _, tr := range list {
			undo = append(undo, c.put(tr))
		}
		return func() {
			for _, f := range slices.Backward(undo) {
				f()
			}
		}, nil
	})
}
