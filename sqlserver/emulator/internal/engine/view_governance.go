package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

// The limits that Azure sets are nothing that an engine in memory has: their
// columns are here as documented (sql-docs,
// sys-dm-user-db-resource-governor-azure-sql-database.md and
// sys-dm-os-job-object-transact-sql.md), and reading them is 50999.

var _ = registerViews(map[string]*view{
	"sys.dm_user_db_resource_governance": {cols: governanceCols},
	"sys.dm_os_job_object":               {cols: jobObjectCols},
})

var governanceCols = []outCol{
	vInt("database_id"),
	{name: "logical_database_guid", typ: guidType},
	{name: "physical_database_guid", typ: guidType},
	vName("server_name"), vName("database_name"), vName("slo_name"),
	vIntNull("dtu_limit"), vIntNull("cpu_limit"), vTiny("min_cpu"), vTiny("max_cpu"), vTiny("cap_cpu"), vSmall("min_cores"), vSmall("max_dop"),
	vInt("min_memory"), vInt("max_memory"), vInt("max_sessions"), vInt("max_memory_grant"), vInt("max_db_memory"), vBit("govern_background_io"),
	vBig("min_db_max_size_in_mb"), vBig("max_db_max_size_in_mb"), vBig("default_db_max_size_in_mb"), vBig("db_file_growth_in_mb"),
	vBig("initial_db_file_size_in_mb"), vBig("log_size_in_mb"), vInt("instance_cap_cpu"), vBig("instance_max_log_rate"), vInt("instance_max_worker_threads"),
	vInt("replica_type"), vBig("max_transaction_size"), vInt("checkpoint_rate_mbps"), vInt("checkpoint_rate_io"), vTime("last_updated_date_utc"),
	vInt("primary_group_id"), vInt("primary_group_max_workers"), vBig("primary_min_log_rate"), vBig("primary_max_log_rate"),
	vInt("primary_group_min_io"), vInt("primary_group_max_io"), vFloatNull("primary_group_min_cpu"), vFloatNull("primary_group_max_cpu"),
	vInt("primary_log_commit_fee"), vInt("primary_pool_max_workers"), vInt("pool_max_io"), vBit("govern_db_memory_in_resource_pool"),
	vInt("volume_local_iops"), vInt("volume_managed_xstore_iops"), vInt("volume_external_xstore_iops"), vInt("volume_type_local_iops"),
	vInt("volume_type_managed_xstore_iops"), vInt("volume_type_external_xstore_iops"), vInt("volume_pfs_iops"), vInt("volume_type_pfs_iops"),
}

var jobObjectCols = []outCol{
	vInt("cpu_rate"), vBig("cpu_affinity_mask"), vInt("cpu_affinity_group"), vBig("memory_limit_mb"), vBig("process_memory_limit_mb"),
	vBig("workingset_limit_mb"), vBig("non_sos_mem_gap_mb"), vBig("low_mem_signal_threshold_mb"), vBig("total_user_time"), vBig("total_kernel_time"),
	vBig("write_operation_count"), vBig("read_operation_count"), vBig("peak_process_memory_used_mb"), vBig("peak_job_memory_used_mb"),
	{name: "process_physical_affinity", typ: sqltype.Type{Kind: sqltype.NVarChar, Length: 3072, Collation: sqltype.DefaultCollation}},
}
