package engine

// Catalog views of objects that nobody can make here: they are empty, which is
// true. Columns as in sql-docs, system-catalog-views.

var _ = registerViews(map[string]*view{
	"sys.partition_functions": {documented(`
		name sysname; function_id int; type char(2); type_desc nvarchar(60); fanout int; boundary_value_on_right bit; is_system bit;
		create_date datetime; modify_date datetime`), noRows},
	"sys.partition_schemes": {documented(`
		name sysname; data_space_id int; type char(2); type_desc nvarchar(60); is_default bit; is_system bit; function_id int`), noRows},
	"sys.partition_parameters": {documented(`
		function_id int; parameter_id int; system_type_id tinyint; max_length smallint; precision tinyint; scale tinyint;
		collation_name sysname; user_type_id int`), noRows},
	"sys.partition_range_values":  {documented(`function_id int; boundary_id int; parameter_id int; value sql_variant`), noRows},
	"sys.destination_data_spaces": {documented(`partition_scheme_id int; destination_id int; data_space_id int`), noRows},
	"sys.extended_properties": {documented(`
		class tinyint; class_desc nvarchar(60); major_id int; minor_id int; name sysname; value sql_variant`), noRows},
	"sys.synonyms": {documented(`
		name sysname; object_id int; principal_id int; schema_id int; parent_object_id int; type char(2); type_desc nvarchar(60);
		create_date datetime; modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; base_object_name nvarchar(1035)`), noRows},
	"sys.plan_guides": {documented(`
		plan_guide_id int; name sysname; create_date datetime; modify_date datetime; is_disabled bit; query_text nvarchar(max);
		scope_type tinyint; scope_type_desc nvarchar(60); scope_object_id int; scope_batch nvarchar(max); parameters nvarchar(max);
		hints nvarchar(max)`), noRows},
	"sys.periods": {documented(`
		name sysname; period_type tinyint; period_type_desc nvarchar(60); object_id int; start_column_id int; end_column_id int`), noRows},
	"sys.security_policies": {documented(`
		name sysname; object_id int; principal_id int; schema_id int; parent_object_id int; type char(2); type_desc nvarchar(60);
		create_date datetime; modify_date datetime; is_ms_shipped bit; is_enabled bit; is_not_for_replication bit;
		uses_database_collation bit; is_schema_bound bit`), noRows},
	"sys.security_predicates": {documented(`
		object_id int; security_predicate_id int; target_object_id int; predicate_definition nvarchar(max); predicate_type int;
		predicate_type_desc nvarchar(60); operation int; operation_desc nvarchar(60)`), noRows},
	"sys.change_tracking_databases": {documented(`
		database_id int; is_auto_cleanup_on bit; retention_period int; retention_period_units tinyint; retention_period_units_desc nvarchar(60);
		max_cleanup_version bigint`), noRows},
	"sys.fulltext_indexes": {documented(`
		object_id int; unique_index_id int; fulltext_catalog_id int; is_enabled bit; change_tracking_state char(1);
		change_tracking_state_desc nvarchar(60); has_crawl_completed bit; crawl_type char(1); crawl_type_desc nvarchar(60);
		crawl_start_date datetime; crawl_end_date datetime; incremental_timestamp binary(8); stoplist_id int; data_space_id int;
		property_list_id int`), noRows},
})
