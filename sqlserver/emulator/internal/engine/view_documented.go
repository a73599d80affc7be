package engine

// Views that the engine does not model, with their columns as their pages of
// sql-docs have them, so that a FakeView need not name types. Reading one is 50999.

var _ = registerViews(map[string]*view{
	"sys.dm_db_log_space_usage": {cols: documented(`
		database_id smallint; total_log_size_in_bytes bigint; used_log_space_in_bytes bigint; used_log_space_in_percent real;
		log_space_in_bytes_since_last_backup bigint`)},
	"sys.dm_db_file_space_usage": {cols: documented(`
		database_id smallint; file_id smallint; filegroup_id smallint; total_page_count bigint; allocated_extent_page_count bigint;
		unallocated_extent_page_count bigint; version_store_reserved_page_count bigint; user_object_reserved_page_count bigint;
		internal_object_reserved_page_count bigint; mixed_extent_page_count bigint; modified_extent_page_count bigint`)},
	"sys.dm_os_sys_info": {cols: documented(`
		cpu_ticks bigint; ms_ticks bigint; cpu_count int; hyperthread_ratio int; physical_memory_kb bigint; virtual_memory_kb bigint;
		committed_kb int; committed_target_kb int; visible_target_kb int; stack_size_in_bytes int; os_quantum bigint; os_error_mode int;
		os_priority_class int; max_workers_count int; scheduler_count int; scheduler_total_count int; deadlock_monitor_serial_number int;
		sqlserver_start_time_ms_ticks bigint; sqlserver_start_time datetime; affinity_type int; affinity_type_desc varchar(60);
		process_kernel_time_ms bigint; process_user_time_ms bigint; time_source int; time_source_desc nvarchar(60); virtual_machine_type int;
		virtual_machine_type_desc nvarchar(60); softnuma_configuration int; softnuma_configuration_desc nvarchar(60);
		process_physical_affinity nvarchar(3072); sql_memory_model int; sql_memory_model_desc nvarchar(120); socket_count int;
		cores_per_socket int; numa_node_count int`)},
	"sys.server_resource_stats": {cols: documented(`
		start_time datetime2; end_time datetime; resource_type nvarchar(128); resource_name nvarchar(128); sku nvarchar(128);
		hardware_generation nvarchar(128); virtual_core_count int; avg_cpu_percent decimal(5,2); reserved_storage_mb bigint;
		storage_space_used_mb decimal(18,2); io_request bigint; io_bytes_read bigint; io_bytes_written bigint`)},
})
