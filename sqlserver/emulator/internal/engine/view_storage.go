package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

var _ = registerViews(map[string]*view{
	"sys.filegroups":       {filegroupCols, filegroupRows},
	"sys.allocation_units": {allocationUnitCols, allocationUnitRows},
	"sys.parameters":       {parameterCols, parameterRows},
})

// The columns of sys-filegroups-transact-sql.md: there is one filegroup.
var filegroupCols = documented(`
	name sysname; data_space_id int; type char(2); type_desc nvarchar(60); is_default bit; is_system bit; filegroup_guid uniqueidentifier;
	log_filegroup_id int; is_read_only bit; is_autogrow_all_files bit`)

func filegroupRows(*session) [][]sqltype.Value {
	return [][]sqltype.Value{partRow(filegroupCols, map[string]any{
		"name": "PRIMARY", "data_space_id": 1, "type": "FG", "type_desc": "ROWS_FILEGROUP", "is_default": true, "is_system": false,
		"is_read_only": false, "is_autogrow_all_files": false,
	})}
}

// The columns of sys-allocation-units-transact-sql.md. Rows are all in one kind of
// unit here; pages are not counted.
var allocationUnitCols = documented(`
	allocation_unit_id bigint; type tinyint; type_desc nvarchar(60); container_id bigint; data_space_id int; total_pages bigint;
	used_pages bigint; data_pages bigint`)

func allocationUnitRows(s *session) [][]sqltype.Value {
	return eachRow(s.engine.hobts(), func(h hobt) []sqltype.Value {
		return catalogRow(allocationUnitCols, h.hobtID(), 1, "IN_ROW_DATA", h.hobtID(), 1, nil, nil, nil)
	})
}

// The columns of sys-parameters-transact-sql.md that the engine can answer.
var parameterCols = documented(`
	object_id int; name sysname; parameter_id int; system_type_id tinyint; user_type_id int; max_length smallint; precision tinyint;
	scale tinyint; is_output bit; is_cursor_ref bit; has_default_value bit; is_xml_document bit; default_value sql_variant; is_readonly bit;
	is_nullable bit`)

// parameterRows: has_default_value is 1 for procedures of the CLR only.
func parameterRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, o := range s.engine.catalog.sorted() {
		p, ok := o.(*procedure)
		if !ok {
			continue
		}
		for i, param := range p.params {
			values := map[string]any{
				"object_id": p.id, "name": param.name, "parameter_id": i + 1, "is_output": param.output, "is_cursor_ref": false,
				"has_default_value": false, "is_xml_document": false, "is_readonly": param.table >= 0, "is_nullable": true,
			}
			if param.table >= 0 {
				values["system_type_id"] = 243
			} else {
				id := systemTypeIDs[param.typ.Kind]
				values["system_type_id"], values["user_type_id"] = id, id
				values["max_length"], values["precision"], values["scale"] = maxLength(param.typ), int(typePrecision(param.typ)), int(typeScale(param.typ))
			}
			rows = append(rows, partRow(parameterCols, values))
		}
	}
	return rows
}
