package engine

import (
	"maps"
	"slices"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// systemTypeIDs are sys.types.system_type_id.
var systemTypeIDs = map[sqltype.Kind]int{
	sqltype.UniqueIdentifier: 36, sqltype.Date: 40, sqltype.Time: 41, sqltype.DateTime2: 42, sqltype.DateTimeOffset: 43,
	sqltype.TinyInt: 48, sqltype.SmallInt: 52, sqltype.Int: 56, sqltype.SmallDateTime: 58, sqltype.Real: 59, sqltype.Money: 60,
	sqltype.DateTime: 61, sqltype.Float: 62, sqltype.SQLVariant: 98, sqltype.Bit: 104, sqltype.Decimal: 106, sqltype.BigInt: 127,
	sqltype.VarBinary: 165, sqltype.VarChar: 167, sqltype.Binary: 173, sqltype.Char: 175, sqltype.NVarChar: 231, sqltype.NChar: 239, sqltype.XML: 241,
}

// maxLength is a type's size in bytes, -1 for MAX.
func maxLength(t sqltype.Type) int64 {
	switch {
	case isLong(t) && t.Length == sqltype.Max:
		return -1
	case t.Kind.IsUnicode():
		return int64(2 * t.Length)
	case isLong(t):
		return int64(t.Length)
	case t.Kind == sqltype.XML:
		return -1
	}
	return sqltype.DataLength(sqltype.Value{Kind: t.Kind}, t)
}

func typePrecision(t sqltype.Type) uint8 {
	switch t.Kind {
	case sqltype.Decimal:
		return t.Precision
	case sqltype.TinyInt:
		return 3
	case sqltype.SmallInt:
		return 5
	case sqltype.Int:
		return 10
	case sqltype.BigInt:
		return 19
	case sqltype.Bit:
		return 1
	case sqltype.Float:
		return 53
	case sqltype.Real:
		return 24
	case sqltype.Money:
		return 19
	case sqltype.DateTime:
		return 23
	case sqltype.DateTime2:
		if t.Scale == 0 {
			return 19
		}
		return 20 + t.Scale
	case sqltype.Date:
		return 10
	}
	return 0
}

func typeScale(t sqltype.Type) uint8 {
	switch t.Kind {
	case sqltype.Money:
		return 4
	case sqltype.DateTime:
		return 3
	}
	return t.Scale
}

var _ = registerViews(map[string]*view{
	"sys.columns":          {columnCols, columnRows},
	"sys.all_columns":      {columnCols, columnRows},
	"sys.types":            {typeCols, typeRows},
	"sys.indexes":          {indexCols, indexRows},
	"sys.index_columns":    {indexColumnCols, indexColumnRows},
	"sys.partitions":       {partitionCols, partitionRows},
	"sys.identity_columns": {identityCols, identityRows},
	"sys.computed_columns": {computedCols, func(*session) [][]sqltype.Value { return nil }},
	"sys.table_types":      {tableTypeCols, tableTypeRows},
})

var columnCols = []outCol{
	vInt("object_id"), vName("name"), vInt("column_id"), vTiny("system_type_id"), vInt("user_type_id"), vSmall("max_length"), vTiny("precision"), vTiny("scale"),
	vName("collation_name"), vBit("is_nullable"), vBit("is_ansi_padded"), vBit("is_rowguidcol"), vBit("is_identity"), vBit("is_computed"), vInt("default_object_id"),
	vBit("is_sparse"), vBit("is_hidden"), vTiny("generated_always_type"), vBit("is_masked"), vIntNull("encryption_type"),
}

func columnRow(t *tableDef, c *columnDef) []any {
	var coll any
	if c.typ.Collation != nil {
		coll = c.typ.Collation.Name
	}
	def := int32(0)
	if c.def != nil {
		def = c.def.id
	}
	id := systemTypeIDs[c.typ.Kind]
	return []any{
		t.id, c.name, c.id, id, id, maxLength(c.typ), int(typePrecision(c.typ)), int(typeScale(c.typ)), coll,
		c.nullable, isLong(c.typ), c.rowGUID, c.identity, false, def, false, false, 0, false, nil,
	}
}

func columnRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, t := range s.engine.catalog.tables() {
		for _, c := range t.columns {
			rows = append(rows, catalogRow(columnCols, columnRow(t, c)...))
		}
	}
	return rows
}

var typeCols = []outCol{
	vName("name"), vTiny("system_type_id"), vInt("user_type_id"), vInt("schema_id"), vSmall("max_length"), vTiny("precision"), vTiny("scale"),
	vName("collation_name"),
	{name: "is_nullable", typ: bitType, nullable: true},
	vBit("is_user_defined"), vBit("is_table_type"),
}

func typeRows(s *session) [][]sqltype.Value {
	kinds := slices.Collect(maps.Keys(systemTypeIDs))
	slices.SortFunc(kinds, func(a, b sqltype.Kind) int { return systemTypeIDs[a] - systemTypeIDs[b] })
	rows := eachRow(kinds, func(k sqltype.Kind) []sqltype.Value {
		t := sqltype.Type{Kind: k}
		var coll any
		length := sqltype.DataLength(sqltype.Value{Kind: k}, sqltype.Type{Kind: k, Scale: 7, Precision: 38})
		if k.IsText() {
			coll = s.engine.database.collation.Name
		}
		if k.IsText() || k.IsBinary() {
			length = 8000
		}
		return catalogRow(typeCols, k.String(), systemTypeIDs[k], systemTypeIDs[k], 4, length, int(typePrecision(t)), int(typeScale(t)), coll, true, false, false)
	})
	rows = append(rows,
		catalogRow(typeCols, "numeric", 108, 108, 4, 17, 38, 38, nil, true, false, false),
		catalogRow(typeCols, "sysname", 231, 256, 4, 256, 0, 0, s.engine.database.collation.Name, false, false, false))
	for i, o := range s.engine.catalog.sorted() {
		if t, ok := o.(*tableTypeDef); ok {
			rows = append(rows, catalogRow(typeCols, t.name, 243, 257+i, s.engine.catalog.schemaID(t.schema), -1, 0, 0, nil, false, true, true))
		}
	}
	return rows
}

var indexCols = []outCol{
	vInt("object_id"), vName("name"), vInt("index_id"), vTiny("type"), vName("type_desc"),
	{name: "is_unique", typ: bitType, nullable: true},
	vInt("data_space_id"),
	vBit("ignore_dup_key"), vBit("is_primary_key"), vBit("is_unique_constraint"), vTiny("fill_factor"), vBit("is_padded"), vBit("is_disabled"), vBit("is_hypothetical"),
	vBit("allow_row_locks"), vBit("allow_page_locks"), vBit("has_filter"), vText("filter_definition"), vBit("optimize_for_sequential_key"),
}

func indexRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, t := range s.engine.catalog.tables() {
		if t.clustered() == nil {
			rows = append(rows, catalogRow(indexCols, t.id, nil, 0, 0, "HEAP", false, 1, false, false, false, 0, false, false, false, true, true, false, nil, false))
		}
		for _, ix := range t.indexes {
			kind, desc := 2, "NONCLUSTERED"
			if ix.clustered {
				kind, desc = 1, "CLUSTERED"
			}
			var filter any
			if ix.filter != nil {
				filter = ix.filterText
			}
			rows = append(rows, catalogRow(indexCols, t.id, ix.name, ix.id, kind, desc, ix.unique, 1, ix.ignoreDup,
				ix.constraint == "PK", ix.constraint == "UQ", ix.fillFactor, ix.padIndex, ix.disabled, false, true, !ix.noPageLocks, ix.filter != nil, filter, ix.sequential))
		}
	}
	return rows
}

var indexColumnCols = []outCol{
	vInt("object_id"), vInt("index_id"), vInt("index_column_id"), vInt("column_id"), vTiny("key_ordinal"), vTiny("partition_ordinal"),
	{name: "is_descending_key", typ: bitType, nullable: true},
	{name: "is_included_column", typ: bitType, nullable: true},
}

func indexColumnRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, t := range s.engine.catalog.tables() {
		for _, ix := range t.indexes {
			for i, k := range ix.key {
				rows = append(rows, catalogRow(indexColumnCols, t.id, ix.id, i+1, t.columns[k.column].id, i+1, 0, k.desc, false))
			}
			for i, c := range ix.include {
				rows = append(rows, catalogRow(indexColumnCols, t.id, ix.id, len(ix.key)+i+1, t.columns[c].id, 0, 0, false, true))
			}
		}
	}
	return rows
}

var partitionCols = []outCol{
	vBig("partition_id"), vInt("object_id"), vInt("index_id"), vInt("partition_number"), vBig("hobt_id"),
	{name: "rows", typ: bigType, nullable: true},
	vTiny("data_compression"), vName("data_compression_desc"),
}

func partitionRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	add := func(t *tableDef, id int, n int64) {
		hobt := int64(t.id)<<16 | int64(id)
		rows = append(rows, catalogRow(partitionCols, hobt, t.id, id, 1, hobt, n, 0, "NONE"))
	}
	for _, t := range s.engine.catalog.tables() {
		if t.clustered() == nil {
			add(t, 0, t.store.Rows())
		}
		for _, ix := range t.indexes {
			if ix.store != nil {
				add(t, ix.id, ix.store.Rows())
			}
		}
	}
	return rows
}

var identityCols = append(slices.Clone(columnCols), vAny("seed_value"), vAny("increment_value"), vAny("last_value"))

func identityRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, t := range s.engine.catalog.tables() {
		id := t.identity
		if id == nil {
			continue
		}
		kind := t.columns[id.column].typ.Kind
		number := func(n int64) sqltype.Value { return sqltype.Value{Kind: kind, N: n} }
		id.mu.Lock()
		last := sqltype.Value{}
		if id.used {
			last = number(id.next - id.increment)
		}
		seed, inc := number(id.seed), number(id.increment)
		id.mu.Unlock()
		rows = append(rows, catalogRow(identityCols, append(columnRow(t, t.columns[id.column]), seed, inc, last)...))
	}
	return rows
}

var tableTypeCols = []outCol{vName("name"), vTiny("system_type_id"), vInt("schema_id"), vInt("type_table_object_id"), vBit("is_user_defined"), vBit("is_table_type")}

func tableTypeRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, o := range s.engine.catalog.sorted() {
		if t, ok := o.(*tableTypeDef); ok {
			rows = append(rows, catalogRow(tableTypeCols, t.name, 243, s.engine.catalog.schemaID(t.schema), t.id, true, true))
		}
	}
	return rows
}
