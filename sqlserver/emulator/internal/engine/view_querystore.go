package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

// Query Store is there and off: its views have their columns (sql-docs, under
// system-catalog-views/sys-query-store-….md) and no rows.

var _ = registerViews(map[string]*view{
	"sys.database_query_store_options": {queryStoreOptionCols, func(*session) [][]sqltype.Value {
		return [][]sqltype.Value{partRow(queryStoreOptionCols, map[string]any{"desired_state": 0, "desired_state_desc": "OFF", "actual_state": 0, "actual_state_desc": "OFF", "readonly_reason": 0})}
	}},
	"sys.query_store_query": {documented(`
		query_id bigint; query_text_id bigint; context_settings_id bigint; object_id bigint; batch_sql_handle varbinary(64); query_hash binary(8);
		is_internal_query bit; query_parameterization_type tinyint; query_parameterization_type_desc nvarchar(60);
		initial_compile_start_time datetimeoffset; last_compile_start_time datetimeoffset; last_execution_time datetimeoffset;
		last_compile_batch_sql_handle varbinary(64); last_compile_batch_offset_start bigint; last_compile_batch_offset_end bigint;
		count_compiles bigint; avg_compile_duration float; last_compile_duration bigint; avg_bind_duration float; last_bind_duration bigint;
		avg_bind_cpu_time float; last_bind_cpu_time bigint; avg_optimize_duration float; last_optimize_duration bigint;
		avg_optimize_cpu_time float; last_optimize_cpu_time bigint; avg_compile_memory_kb float; last_compile_memory_kb bigint;
		max_compile_memory_kb bigint; is_clouddb_internal_query bit`), noRows},
	"sys.query_store_query_text": {documented(`
		query_text_id bigint; query_sql_text nvarchar(max); statement_sql_handle varbinary(64); is_part_of_encrypted_module bit;
		has_restricted_text bit`), noRows},
	"sys.query_store_plan": {documented(`
		plan_id bigint; query_id bigint; plan_group_id bigint; engine_version nvarchar(32); compatibility_level smallint; query_plan_hash binary(8);
		query_plan nvarchar(max); is_online_index_plan bit; is_trivial_plan bit; is_parallel_plan bit; is_forced_plan bit;
		is_natively_compiled bit; force_failure_count bigint; last_force_failure_reason int; last_force_failure_reason_desc nvarchar(128);
		count_compiles bigint; initial_compile_start_time datetimeoffset; last_compile_start_time datetimeoffset;
		last_execution_time datetimeoffset; avg_compile_duration float; last_compile_duration bigint; plan_forcing_type int;
		plan_forcing_type_desc nvarchar(60)`), noRows},
	"sys.query_store_runtime_stats": {runtimeStatCols, noRows},
	"sys.query_store_runtime_stats_interval": {documented(`
		runtime_stats_interval_id bigint; start_time datetimeoffset; end_time datetimeoffset; comment nvarchar(max)`), noRows},
	"sys.query_store_wait_stats": {documented(`
		wait_stats_id bigint; plan_id bigint; runtime_stats_interval_id bigint; wait_category smallint; wait_category_desc nvarchar(128);
		execution_type tinyint; execution_type_desc nvarchar(128); total_query_wait_time_ms bigint; avg_query_wait_time_ms float;
		last_query_wait_time_ms bigint; min_query_wait_time_ms bigint; max_query_wait_time_ms bigint; stdev_query_wait_time_ms float`), noRows},
	"sys.query_context_settings": {documented(`
		context_settings_id bigint; set_options varbinary(8); language_id smallint; date_format smallint; date_first tinyint; status varbinary(2);
		required_cursor_options int; acceptable_cursor_options int; merge_action_type smallint; default_schema_id int; is_replication_specific bit;
		is_contained varbinary(1)`), noRows},
})

var queryStoreOptionCols = documented(`
	desired_state smallint; desired_state_desc nvarchar(60); actual_state smallint; actual_state_desc nvarchar(60); readonly_reason int;
	current_storage_size_mb bigint; flush_interval_seconds bigint; interval_length_minutes bigint; max_storage_size_mb bigint;
	stale_query_threshold_days bigint; max_plans_per_query bigint; query_capture_mode smallint; query_capture_mode_desc nvarchar(60);
	size_based_cleanup_mode smallint; size_based_cleanup_mode_desc nvarchar(60); wait_stats_capture_mode smallint;
	wait_stats_capture_mode_desc nvarchar(60)`)

var runtimeStatCols = func() []outCol {
	cols := documented(`runtime_stats_id bigint; plan_id bigint; runtime_stats_interval_id bigint; execution_type tinyint;
		execution_type_desc nvarchar(128); first_execution_time datetimeoffset; last_execution_time datetimeoffset; count_executions bigint`)
	for _, measure := range []string{
		"duration", "cpu_time", "logical_io_reads", "logical_io_writes", "physical_io_reads", "clr_time", "dop", "query_max_used_memory", "rowcount",
		"log_bytes_used", "tempdb_space_used",
	} {
		cols = append(cols, vFloatNull("avg_"+measure), vBigNull("last_"+measure), vBigNull("min_"+measure), vBigNull("max_"+measure), vFloatNull("stdev_"+measure))
	}
	return cols
}()
