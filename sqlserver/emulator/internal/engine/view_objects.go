package engine

import (
	"maps"
	"slices"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var objectCols = []outCol{
	vName("name"), vInt("object_id"),
	{name: "principal_id", typ: intType, nullable: true},
	vInt("schema_id"), vInt("parent_object_id"),
	vType("type"), vName("type_desc"), vTime("create_date"), vTime("modify_date"), vBit("is_ms_shipped"),
}

// objectKind is an object's type and type_desc.
func objectKind(o object) (code, desc string) {
	switch o.(type) {
	case *tableDef:
		return "U ", "USER_TABLE"
	case *sequence:
		return "SO", "SEQUENCE_OBJECT"
	case *procedure:
		return "P ", "SQL_STORED_PROCEDURE"
	case *trigger:
		return "TR", "SQL_TRIGGER"
	}
	return "TT", "TYPE_TABLE"
}

// objectInfo is one row of sys.objects.
type objectInfo struct {
	header     *objectHeader
	parent     int32
	code, desc string
}

// allObjects are the objects with their constraints.
func (c *catalog) allObjects() []objectInfo {
	var list []objectInfo
	for _, o := range c.sorted() {
		code, desc := objectKind(o)
		parent := int32(0)
		if tr, ok := o.(*trigger); ok {
			parent = tr.parentID
		}
		list = append(list, objectInfo{o.header(), parent, code, desc})
		t, ok := o.(*tableDef)
		if !ok {
			continue
		}
		for _, ix := range t.indexes {
			if ix.constraint != "" {
				list = append(list, objectInfo{&ix.object, t.id, ix.constraint, constraintNames[ix.constraint]})
			}
		}
		for _, ck := range t.checks {
			list = append(list, objectInfo{&ck.objectHeader, t.id, "C ", constraintNames["C "]})
		}
		for _, col := range t.columns {
			if col.def != nil {
				list = append(list, objectInfo{&col.def.objectHeader, t.id, "D ", constraintNames["D "]})
			}
		}
	}
	return list
}

var constraintNames = map[string]string{
	"PK": "PRIMARY_KEY_CONSTRAINT", "UQ": "UNIQUE_CONSTRAINT", "C ": "CHECK_CONSTRAINT", "D ": "DEFAULT_CONSTRAINT",
}

func (s *session) objectRow(o objectInfo, more ...any) []any {
	row := []any{o.header.name, o.header.id, nil, s.engine.catalog.schemaID(o.header.schema), o.parent, o.code, o.desc, o.header.created, o.header.modified, false}
	return append(row, more...)
}

// ofKind makes a view over the objects that pick accepts.
func ofKind(cols []outCol, pick func(o objectInfo) bool, more func(s *session, o objectInfo) []any) *view {
	all := slices.Concat(objectCols, cols)
	return &view{all, func(s *session) [][]sqltype.Value {
		var rows [][]sqltype.Value
		for _, o := range s.engine.catalog.allObjects() {
			if pick(o) {
				var extra []any
				if more != nil {
					extra = more(s, o)
				}
				rows = append(rows, catalogRow(all, s.objectRow(o, extra...)...))
			}
		}
		return rows
	}}
}

func kindIs(code string) func(objectInfo) bool {
	return func(o objectInfo) bool { return o.code == code }
}

var _ = registerViews(map[string]*view{
	"sys.objects":     ofKind(nil, func(objectInfo) bool { return true }, nil),
	"sys.all_objects": ofKind(nil, func(objectInfo) bool { return true }, nil),
	"sys.tables": ofKind([]outCol{vBit("is_memory_optimized"), vTiny("temporal_type"), vBit("is_replicated"), vBit("is_merge_published"), vBit("is_tracked_by_cdc"), vTiny("lock_escalation"), vName("lock_escalation_desc")},
		kindIs("U "), func(*session, objectInfo) []any { return []any{false, 0, false, false, false, 0, "TABLE"} }),
	"sys.procedures": ofKind([]outCol{vBit("is_auto_executed"), vBit("is_execution_replicated")}, kindIs("P "), func(*session, objectInfo) []any { return []any{false, false} }),
	"sys.views":      ofKind(nil, func(objectInfo) bool { return false }, nil),
	"sys.sequences": ofKind([]outCol{
		vAny("start_value"), vAny("increment"), vAny("minimum_value"), vAny("maximum_value"),
		{name: "is_cycling", typ: bitType, nullable: true},
		{name: "is_cached", typ: bitType, nullable: true},
		{name: "cache_size", typ: intType, nullable: true},
		vTiny("system_type_id"), vInt("user_type_id"), vTiny("precision"),
		{name: "scale", typ: tinyType, nullable: true},
		vAny("current_value"), vBit("is_exhausted"), vAny("last_used_value"),
	}, kindIs("SO"), sequenceColumns),
	"sys.key_constraints": ofKind([]outCol{{name: "unique_index_id", typ: intType, nullable: true}, vBit("is_system_named"), vBit("is_enforced")},
		func(o objectInfo) bool { return o.code == "PK" || o.code == "UQ" }, keyConstraintColumns),
	"sys.check_constraints":   ofKind([]outCol{vBit("is_disabled"), vBit("is_not_trusted"), vInt("parent_column_id"), vText("definition"), vBit("is_system_named")}, kindIs("C "), checkColumns),
	"sys.default_constraints": ofKind([]outCol{vInt("parent_column_id"), vText("definition"), vBit("is_system_named")}, kindIs("D "), defaultColumns),
	"sys.foreign_keys":        ofKind(nil, func(objectInfo) bool { return false }, nil),
	"sys.schemas": {schemaCols, func(s *session) [][]sqltype.Value {
		c := s.engine.catalog
		c.mu.RLock()
		list := slices.Collect(maps.Values(c.schemas))
		c.mu.RUnlock()
		slices.SortFunc(list, func(a, b *schema) int { return int(a.id - b.id) })
		return eachRow(list, func(x *schema) []sqltype.Value { return catalogRow(schemaCols, x.name, x.id, x.owner) })
	}},
	"sys.sql_modules": {moduleCols, func(s *session) [][]sqltype.Value {
		var rows [][]sqltype.Value
		for _, o := range s.engine.catalog.sorted() {
			p, ok := o.(*procedure)
			if tr, is := o.(*trigger); is {
				p, ok = &tr.procedure, true
			}
			if ok {
				rows = append(rows, catalogRow(moduleCols, p.id, p.text, p.ansiNulls, p.quotedIdentifier, false, false, false))
			}
		}
		return rows
	}},
})

var (
	schemaCols = []outCol{vName("name"), vInt("schema_id"), {name: "principal_id", typ: intType, nullable: true}}
	moduleCols = []outCol{vInt("object_id"), vText("definition"), vBit("uses_ansi_nulls"), vBit("uses_quoted_identifier"), vBit("is_schema_bound"), vBit("uses_database_collation"), vBit("is_recompiled")}
)

func sequenceColumns(s *session, o objectInfo) []any {
	q := s.engine.catalog.find(nameOf(o.header.schema, o.header.name)).(*sequence)
	q.mu.Lock()
	defer q.mu.Unlock()
	number := func(n int64) sqltype.Value { return sqltype.Value{Kind: q.typ.Kind, N: n} }
	last := sqltype.Value{}
	if q.used {
		last = number(q.last)
	}
	var size any
	if q.cacheSize > 0 {
		size = q.cacheSize
	}
	id := systemTypeIDs[q.typ.Kind]
	return []any{
		number(q.start), number(q.increment), number(q.min), number(q.max), q.cycle, q.cached, size,
		id, id, int(typePrecision(q.typ)), 0, number(q.last), q.done, last,
	}
}

// owner finds the table that a constraint belongs to.
func (c *catalog) owner(o objectInfo) *tableDef {
	for _, t := range c.tables() {
		if t.id == o.parent {
			return t
		}
	}
	return &tableDef{}
}

func keyConstraintColumns(s *session, o objectInfo) []any {
	for _, ix := range s.engine.catalog.owner(o).indexes {
		if ix.object.id == o.header.id {
			return []any{ix.id, false, true}
		}
	}
	return []any{nil, false, true}
}

func checkColumns(s *session, o objectInfo) []any {
	for _, ck := range s.engine.catalog.owner(o).checks {
		if ck.id == o.header.id {
			return []any{ck.disabled, ck.notTrusted, ck.column, ck.text, ck.systemNamed}
		}
	}
	return []any{false, false, 0, nil, false}
}

func defaultColumns(s *session, o objectInfo) []any {
	for _, c := range s.engine.catalog.owner(o).columns {
		if c.def != nil && c.def.id == o.header.id {
			return []any{c.id, c.def.text, c.def.systemNamed}
		}
	}
	return []any{0, nil, false}
}
