package engine

import (
	"testing"
)

func TestDatabaseViews(t *testing.T) {
	play(t, []batch{
		{`SELECT user_access_desc, is_query_store_on, is_accelerated_database_recovery_on, is_encrypted, is_auto_close_on, page_verify_option FROM sys.databases WHERE name = DB_NAME()`, "error 207"},
		{`SELECT user_access_desc, is_query_store_on, is_accelerated_database_recovery_on, is_encrypted, is_auto_close_on, is_optimized_locking_on FROM sys.databases WHERE name = DB_NAME()`, "MULTI_USER|0|1|NULL|0|0"},
		{`SELECT name, value, is_value_default FROM sys.database_scoped_configurations WHERE configuration_id <= 3`, "MAXDOP|8|1\nLEGACY_CARDINALITY_ESTIMATION|0|1\nPARAMETER_SNIFFING|1|1"},
		{`SELECT edition, service_objective, elastic_pool_name FROM sys.database_service_objectives`, "GeneralPurpose|GP_Gen5_2|NULL"},
		{`SELECT used_log_space_in_percent FROM sys.dm_db_log_space_usage`, "error 50999"},
		{`SELECT * FROM sys.no_such_view`, "error 208"},
		{`SELECT * FROM sys.dm_db_index_usage_statistics(1)`, "error 208"},
		{`SELECT * FROM sys.dm_db_page_info(5, 1, 1, 'LIMITED')`, "error 50999"},
		{`SELECT * FROM INFORMATION_SCHEMA.TABLES`, "error 50999"},
		{`SELECT COUNT(*) FROM sys.dm_db_missing_index_details AS d JOIN sys.dm_db_missing_index_groups AS g ON g.index_handle = d.index_handle JOIN sys.dm_db_missing_index_group_stats AS s ON s.group_handle = g.index_group_handle`, "0"},
		{`SELECT r.avg_log_bytes_used, r.execution_type_desc, p.last_force_failure_reason_desc FROM sys.query_store_runtime_stats AS r JOIN sys.query_store_plan AS p ON p.plan_id = r.plan_id`, ""},
	})
}
