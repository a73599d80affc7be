package engine

import (
	"slices"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// extra are documented columns of a view that have one value for every row,
// because what they are about does not exist here: replication, FILESTREAM, masks,
// graphs, rules. A column without a value is NULL, and may be on SQL Server: what
// may not be and is not known stays away (207).
type extra struct {
	columns string
	values  map[string]any
}

// off are columns of type bit that are 0.
func off(names ...string) extra {
	e := extra{values: make(map[string]any)}
	for _, name := range names {
		e.columns += name + " bit;"
		e.values[name] = false
	}
	return e
}

// extras are by the view's name (sql-docs, system-catalog-views and
// system-dynamic-management-views).
var extras = map[string][]extra{
	"sys.objects": {off("is_published", "is_schema_published")},
	"sys.tables": {
		off("is_published", "is_schema_published", "lock_on_bulk_load", "has_replication_filter", "is_sync_tran_subscribed",
			"has_unchecked_assembly_data", "large_value_types_out_of_row", "is_filetable", "is_remote_data_archive_enabled", "is_external", "is_node", "is_edge"),
		{
			"text_in_row_limit int; durability tinyint; durability_desc nvarchar(60); temporal_type_desc nvarchar(60); history_table_id int; ledger_type tinyint; ledger_type_desc nvarchar(60)",
			map[string]any{
				"text_in_row_limit": 0, "durability": 0, "durability_desc": "SCHEMA_AND_DATA", "temporal_type_desc": "NON_TEMPORAL_TABLE",
				"ledger_type": 0, "ledger_type_desc": "NON_LEDGER_TABLE",
			},
		},
	},
	"sys.columns":          {columnExtras},
	"sys.all_columns":      {columnExtras},
	"sys.identity_columns": {columnExtras, off("is_not_for_replication")},
	"sys.computed_columns": {columnExtras},
	"sys.types": {off("is_assembly_type"), {"principal_id int; default_object_id int; rule_object_id int", map[string]any{
		"default_object_id": 0, "rule_object_id": 0,
	}}},
	"sys.indexes":             {off("suppress_dup_key_messages", "auto_created"), {columns: "compression_delay int"}},
	"sys.index_columns":       {{"column_store_order_ordinal tinyint", map[string]any{"column_store_order_ordinal": 0}}},
	"sys.key_constraints":     {off("is_published", "is_schema_published")},
	"sys.check_constraints":   {off("is_published", "is_schema_published", "is_not_for_replication", "uses_database_collation")},
	"sys.default_constraints": {off("is_published", "is_schema_published")},
	"sys.foreign_keys": {off("is_published", "is_schema_published", "is_disabled", "is_not_for_replication", "is_not_trusted", "is_system_named"), {
		columns: `referenced_object_id int; key_index_id int; delete_referential_action tinyint; delete_referential_action_desc nvarchar(60);
			update_referential_action tinyint; update_referential_action_desc nvarchar(60)`,
	}},
	"sys.procedures": {off("is_published", "is_schema_published", "skips_repl_constraints")},
	"sys.views": {off("is_published", "is_schema_published", "is_replicated", "has_replication_filter", "has_opaque_metadata",
		"has_unchecked_assembly_data", "with_check_option", "is_date_correlation_view", "is_tracked_by_cdc")},
	"sys.sql_modules": {off("null_on_null_input", "uses_native_compilation", "inline_type", "is_inlineable"), {columns: "execute_as_principal_id int"}},
	"sys.dm_exec_sessions": {
		{columns: `host_process_id int; client_version int; nt_domain sysname; nt_user_name sysname; context_info varbinary(128)`},
		{"language sysname; date_format nvarchar(3)", map[string]any{"language": "us_english", "date_format": "mdy"}},
	},
	"sys.dm_exec_requests": {{columns: `connection_id uniqueidentifier; scheduler_id int; task_address varbinary(8)`}},
	"sys.dm_exec_connections": {{columns: `protocol_version int; last_read datetime; last_write datetime; client_tcp_port int;
		local_net_address varchar(48); local_tcp_port int; parent_connection_id uniqueidentifier; most_recent_sql_handle varbinary(64)`}},
	"sys.partitions": {off("xml_compression"), {"filestream_filegroup_id smallint; xml_compression_desc varchar(3)", map[string]any{"filestream_filegroup_id": 0, "xml_compression_desc": "OFF"}}},
}

var columnExtras = extra{
	`rule_object_id int; is_filestream bit; is_replicated bit; is_non_sql_subscribed bit; is_merge_published bit; is_dts_replicated bit;
	is_xml_document bit; xml_collection_id int; is_column_set bit; generated_always_type_desc nvarchar(60); encryption_type_desc nvarchar(64);
	encryption_algorithm_name sysname; column_encryption_key_id int; column_encryption_key_database_name sysname; graph_type int;
	graph_type_desc nvarchar(60)`,
	map[string]any{
		"rule_object_id": 0, "is_filestream": false, "is_replicated": false, "is_non_sql_subscribed": false, "is_merge_published": false,
		"is_dts_replicated": false, "is_xml_document": false, "xml_collection_id": 0, "is_column_set": false,
		"generated_always_type_desc": "NOT_APPLICABLE",
	},
}

// init runs after all views are registered, and gives them their extras. Those
// that a view has already stay.
func init() {
	for name, list := range extras {
		v := views[name]
		for _, x := range list {
			v = v.with(x)
		}
		views[name] = v
	}
}

// with is the view and more columns behind its own.
func (v *view) with(x extra) *view {
	more := slices.DeleteFunc(documented(x.columns), func(c outCol) bool { return columnIn(v.cols, c.name) >= 0 })
	values := make([]any, len(more))
	for i, c := range more {
		values[i] = x.values[c.name]
	}
	tail := catalogRow(more, values...)
	return &view{slices.Concat(v.cols, more), func(s *session) [][]sqltype.Value {
		rows := v.rows(s)
		for i := range rows {
			rows[i] = append(rows[i], tail...)
		}
		return rows
	}}
}
