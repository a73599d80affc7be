package engine

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Views of what the engine does not have. They are there, with their main
// columns and no rows, because tools ask them; Query Store is there and off.

var _ = registerViews(map[string]*view{
	"sys.dm_db_resource_stats": {resourceStatCols, noRows},
	"sys.database_query_store_options": {queryStoreOptionCols, func(*session) [][]sqltype.Value {
		return [][]sqltype.Value{catalogRow(queryStoreOptionCols, 0, "OFF", 0, "OFF", 0, 0, nil, nil, nil, nil, nil, nil, nil)}
	}},
	"sys.query_store_query":                  {[]outCol{vBig("query_id"), vBig("query_text_id"), vBig("context_settings_id"), vBigNull("object_id"), vHash("query_hash")}, noRows},
	"sys.query_store_query_text":             {[]outCol{vBig("query_text_id"), vText("query_sql_text"), vHandle("statement_sql_handle")}, noRows},
	"sys.query_store_plan":                   {[]outCol{vBig("plan_id"), vBig("query_id"), vHash("query_plan_hash"), vText("query_plan"), vBit("is_forced_plan")}, noRows},
	"sys.query_store_runtime_stats":          {runtimeStatCols, noRows},
	"sys.query_store_runtime_stats_interval": {[]outCol{vBig("runtime_stats_interval_id"), vOffset("start_time"), vOffset("end_time")}, noRows},
	"sys.query_store_wait_stats":             {[]outCol{vBig("wait_stats_id"), vBig("plan_id"), vBig("runtime_stats_interval_id"), vName("wait_category_desc"), vBig("total_query_wait_time_ms")}, noRows},
})

func noRows(*session) [][]sqltype.Value { return nil }

func vOffset(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.DateTimeOffset, Scale: 7}}
}

func vPercent(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.Decimal, Precision: 5, Scale: 2}, nullable: true}
}

var resourceStatCols = []outCol{
	vTime("end_time"), vPercent("avg_cpu_percent"), vPercent("avg_data_io_percent"), vPercent("avg_log_write_percent"), vPercent("avg_memory_usage_percent"),
	vPercent("xtp_storage_percent"), vPercent("max_worker_percent"), vPercent("max_session_percent"), vIntNull("dtu_limit"), vPercent("cpu_limit"),
	vPercent("avg_instance_cpu_percent"), vPercent("avg_instance_memory_percent"), vPercent("avg_login_rate_percent"), vIntNull("replica_role"),
}

var queryStoreOptionCols = []outCol{
	vSmall("desired_state"),
	{name: "desired_state_desc", typ: nvarcharType(60)},
	vSmall("actual_state"),
	{name: "actual_state_desc", typ: nvarcharType(60)},
	vIntNull("readonly_reason"), vBigNull("current_storage_size_mb"), vBigNull("flush_interval_seconds"), vBigNull("interval_length_minutes"),
	vBigNull("max_storage_size_mb"), vBigNull("stale_query_threshold_days"), vBigNull("max_plans_per_query"),
	vSmallNull("query_capture_mode"),
	{name: "query_capture_mode_desc", typ: nvarcharType(60), nullable: true},
}

var runtimeStatCols = []outCol{
	vBig("runtime_stats_id"), vBig("plan_id"), vBig("runtime_stats_interval_id"), vTiny("execution_type"), vBig("count_executions"),
	vFloatNull("avg_duration"), vFloatNull("avg_cpu_time"), vFloatNull("avg_logical_io_reads"), vFloatNull("avg_rowcount"),
}
