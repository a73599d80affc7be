package engine

import (
	"slices"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Catalog views of what no table here can have: foreign keys, full-text indexes,
// change tracking, objects bound to others. They are empty, which is true. There
// is one filegroup. Columns as in sql-docs, system-catalog-views.

var _ = registerViews(map[string]*view{
	"sys.change_tracking_tables": {[]outCol{vInt("object_id"), vBit("is_track_columns_updated_on"), vBigNull("min_valid_version"), vBigNull("begin_version"), vBigNull("cleanup_version")}, noRows},
	"sys.fulltext_index_columns": {[]outCol{vInt("object_id"), vInt("column_id"), vIntNull("type_column_id"), vInt("language_id"), vBit("statistical_semantics")}, noRows},
	"sys.foreign_key_columns": {[]outCol{
		vInt("constraint_object_id"), vInt("constraint_column_id"), vInt("parent_object_id"), vInt("parent_column_id"), vInt("referenced_object_id"), vInt("referenced_column_id"),
	}, noRows},
	"sys.sql_expression_dependencies": {[]outCol{
		vInt("referencing_id"), vInt("referencing_minor_id"), vTiny("referencing_class"), vName("referencing_class_desc"), vBit("is_schema_bound_reference"),
		vTiny("referenced_class"), vName("referenced_class_desc"), vName("referenced_schema_name"), vName("referenced_entity_name"),
		vIntNull("referenced_id"), vInt("referenced_minor_id"), vBit("is_caller_dependent"), vBit("is_ambiguous"),
	}, noRows},
	"sys.data_spaces": {dataSpaceCols, func(*session) [][]sqltype.Value {
		return [][]sqltype.Value{catalogRow(dataSpaceCols, "PRIMARY", 1, "FG", "ROWS_FILEGROUP", true, false)}
	}},
})

var dataSpaceCols = []outCol{vName("name"), vInt("data_space_id"), vType("type"), vName("type_desc"), vBit("is_default"), vBit("is_system")}

// computedCols are those of sys.computed_columns beyond sys.columns.
var computedCols = append(slices.Clone(columnCols), vText("definition"), vBit("uses_database_collation"), vBit("is_persisted"))
