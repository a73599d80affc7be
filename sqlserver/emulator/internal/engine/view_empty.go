package engine

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Views of what the engine does not have. They are there without rows, because
// tools ask them and none is the truth.

var _ = registerViews(map[string]*view{
	"sys.dm_db_missing_index_details": {documented(`
		index_handle int; database_id smallint; object_id int; equality_columns nvarchar(4000); inequality_columns nvarchar(4000);
		included_columns nvarchar(4000); statement nvarchar(4000)`), noRows},
	"sys.dm_db_missing_index_groups": {documented(`index_group_handle int; index_handle int`), noRows},
	"sys.dm_db_missing_index_group_stats": {documented(`
		group_handle int; unique_compiles bigint; user_seeks bigint; user_scans bigint; last_user_seek datetime; last_user_scan datetime;
		avg_total_user_cost float; avg_user_impact float; system_seeks bigint; system_scans bigint; last_system_seek datetime;
		last_system_scan datetime; avg_total_system_cost float; avg_system_impact float`), noRows},
	"sys.dm_db_resource_stats": {resourceStatCols, noRows},
})

func noRows(*session) [][]sqltype.Value { return nil }

func vPercent(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.Decimal, Precision: 5, Scale: 2}, nullable: true}
}

var resourceStatCols = []outCol{
	vTime("end_time"), vPercent("avg_cpu_percent"), vPercent("avg_data_io_percent"), vPercent("avg_log_write_percent"), vPercent("avg_memory_usage_percent"),
	vPercent("xtp_storage_percent"), vPercent("max_worker_percent"), vPercent("max_session_percent"), vIntNull("dtu_limit"), vPercent("cpu_limit"),
	vPercent("avg_instance_cpu_percent"), vPercent("avg_instance_memory_percent"), vPercent("avg_login_rate_percent"), vIntNull("replica_role"),
}
