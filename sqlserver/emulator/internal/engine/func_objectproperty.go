package engine

import (
	"slices"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"OBJECTPROPERTY":    {2, 2, values(fixed(intType), objectProperty)},
	"OBJECTPROPERTYEX":  {2, 2, values(variant, objectPropertyEx)},
	"OBJECT_DEFINITION": {1, 1, values(fixed(nvarcharType(sqltype.Max)), objectDefinition)},
})

// objectNumbered finds an object or constraint that the session's user sees by its
// id.
func (s *session) objectNumbered(id int64) (objectInfo, object, bool) {
	if s.hides(int32(id)) {
		return objectInfo{}, nil, false
	}
	for _, o := range s.engine.catalog.allObjects() {
		if int64(o.header.id) == id {
			return o, s.engine.catalog.find(nameOf(o.header.schema, o.header.name)), true
		}
	}
	return objectInfo{}, nil, false
}

// objectKinds are the properties that ask for an object's type.
var objectKinds = map[string][]string{
	"istable": {"U "}, "isusertable": {"U "}, "isprocedure": {"P "}, "isexecuted": {"P ", "TR"}, "istrigger": {"TR"}, "isprimarykey": {"PK"},
	"isuniquecnst": {"UQ"}, "ischeckcnst": {"C "}, "isdefaultcnst": {"D "}, "isconstraint": {"PK", "UQ", "C ", "D "}, "isview": {},
	"isforeignkey": {}, "isscalarfunction": {}, "istablefunction": {}, "isinlinefunction": {}, "issystemtable": {}, "isqueue": {}, "isrule": {},
	"isdefault": {}, "isextendedproc": {}, "isreplproc": {}, "ismsshipped": {}, "isschemabound": {}, "isencrypted": {},
}

// objectProperty is OBJECTPROPERTY (sql-docs): NULL for what an object of its type
// does not have, and for names that do not exist.
func objectProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	engine := e.x.s.engine
	info, o, found := e.x.s.objectNumbered(v[0].N)
	if !found {
		return sqltype.Value{}, nil
	}
	name := strings.ToLower(v[1].S)
	if codes, ok := objectKinds[name]; ok {
		return flag(slices.Contains(codes, info.code)), nil
	}
	switch name {
	case "schemaid":
		return intValue(int64(engine.catalog.schemaID(info.header.schema))), nil
	case "ownerid":
		return intValue(1), nil // dbo
	}
	switch o := o.(type) {
	case *tableDef:
		return tableProperty(o, name), nil
	case *trigger:
		if on, ok := triggerProperty(o, name); ok {
			return flag(on), nil
		}
		return moduleProperty(&o.procedure, name), nil
	case *procedure:
		return moduleProperty(o, name), nil
	}
	return sqltype.Value{}, nil
}

func tableProperty(t *tableDef, name string) sqltype.Value {
	has := func(f func(ix *indexDef) bool) sqltype.Value { return flag(slices.ContainsFunc(t.indexes, f)) }
	triggers := func(event triggerEvents) sqltype.Value {
		return flag(slices.ContainsFunc(t.triggers, func(tr *trigger) bool { return tr.events&event != 0 }))
	}
	switch name {
	case "tablehasidentity":
		return flag(t.identity != nil)
	case "tablehasclustindex":
		return flag(t.clustered() != nil)
	case "tablehasindex", "isindexed":
		return flag(len(t.indexes) > 0)
	case "tablehasnonclustindex":
		return has(func(ix *indexDef) bool { return !ix.clustered })
	case "tablehasprimarykey":
		return has(func(ix *indexDef) bool { return ix.constraint == "PK" })
	case "tablehasuniquecnst":
		return has(func(ix *indexDef) bool { return ix.constraint == "UQ" })
	case "tablehascheckcnst":
		return flag(len(t.checks) > 0)
	case "tablehasdefaultcnst":
		return flag(slices.ContainsFunc(t.columns, func(c *columnDef) bool { return c.def != nil }))
	case "tablehasrowguidcol":
		return flag(slices.ContainsFunc(t.columns, func(c *columnDef) bool { return c.rowGUID }))
	case "tablehasinserttrigger":
		return triggers(onInsert)
	case "tablehasupdatetrigger":
		return triggers(onUpdate)
	case "tablehasdeletetrigger":
		return triggers(onDelete)
	case "isindexable", "tableupdatable", "isansinullson", "isquotedidenton":
		return intValue(1)
	case "tablehasforeignkey", "tablehasforeignref", "tablehasactivefulltextindex", "tablefulltextcatalogid", "tablehascolumnset", "tablehastextimage",
		"tablehastimestamp", "tablehasvardecimalstorageformat", "tableisfake", "tableislockedonbulkload", "tableismemoryoptimized", "tableispinned",
		"tabletemporaltype", "tabletextinrowlimit":
		return intValue(0)
	}
	return sqltype.Value{}
}

func moduleProperty(p *procedure, name string) sqltype.Value {
	switch name {
	case "execisquotedidenton", "isquotedidenton":
		return flag(p.quotedIdentifier)
	case "execisansinullson", "isansinullson":
		return flag(p.ansiNulls)
	case "execisstartup", "execiswithnativecompilation":
		return intValue(0)
	}
	return sqltype.Value{}
}

func triggerProperty(tr *trigger, name string) (on, ok bool) {
	switch name {
	case "execisaftertrigger":
		return true, true
	case "execisinsteadoftrigger", "execisfirstinserttrigger", "execisfirstupdatetrigger", "execisfirstdeletetrigger",
		"execislastinserttrigger", "execislastupdatetrigger", "execislastdeletetrigger":
		return false, true
	case "execisinserttrigger":
		return tr.events&onInsert != 0, true
	case "execisupdatetrigger":
		return tr.events&onUpdate != 0, true
	case "execisdeletetrigger":
		return tr.events&onDelete != 0, true
	case "execistriggerdisabled":
		return tr.disabled, true
	case "execistriggernotforrepl":
		return tr.notForReplication, true
	}
	return false, false
}

// objectPropertyEx is OBJECTPROPERTYEX: what OBJECTPROPERTY has, and a few more.
func objectPropertyEx(e *env, v []sqltype.Value) (sqltype.Value, error) {
	info, o, found := e.x.s.objectNumbered(v[0].N)
	if !found {
		return sqltype.Value{}, nil
	}
	switch strings.ToLower(v[1].S) {
	case "basetype":
		return sqltype.Value{Kind: sqltype.Char, S: info.code}, nil
	case "cardinality":
		if t, ok := o.(*tableDef); ok {
			return bigValue(t.store.Rows()), nil
		}
		return sqltype.Value{}, nil
	}
	return objectProperty(e, v)
}

// objectDefinition is the text of a procedure, trigger or constraint.
func objectDefinition(e *env, v []sqltype.Value) (sqltype.Value, error) {
	s := e.x.s
	info, o, _ := s.objectNumbered(v[0].N)
	if s.userID() != dboID && s.sight()[int32(v[0].N)].blind {
		return sqltype.Value{}, nil // without VIEW DEFINITION
	}
	switch o := o.(type) {
	case *procedure:
		return nvarcharValue(o.text), nil
	case *trigger:
		return nvarcharValue(o.text), nil
	}
	switch info.code {
	case "C ":
		return nvarcharValue(checkColumns(e.x.s, info)[3].(string)), nil
	case "D ":
		return nvarcharValue(defaultColumns(e.x.s, info)[1].(string)), nil
	}
	return sqltype.Value{}, nil
}
