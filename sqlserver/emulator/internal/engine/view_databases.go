package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

var _ = registerViews(map[string]*view{
	"sys.databases":                      {databaseCols, databaseRows},
	"sys.database_scoped_configurations": {scopedConfigurationCols, scopedConfigurationRows},
	"sys.database_service_objectives":    {serviceObjectiveCols, serviceObjectiveRows},
})

// databaseCols are those of sys-databases-transact-sql.md that the engine can
// answer.
var databaseCols = documented(`
	name sysname; database_id int; source_database_id int; owner_sid varbinary(85); create_date datetime; compatibility_level tinyint;
	collation_name sysname; user_access tinyint; user_access_desc nvarchar(60); is_read_only bit; is_auto_close_on bit; is_auto_shrink_on bit;
	state tinyint; state_desc nvarchar(60); is_in_standby bit; is_cleanly_shutdown bit; is_supplemental_logging_enabled bit;
	snapshot_isolation_state tinyint; snapshot_isolation_state_desc nvarchar(60); is_read_committed_snapshot_on bit; recovery_model tinyint;
	recovery_model_desc nvarchar(60); is_auto_create_stats_on bit; is_auto_update_stats_on bit; is_auto_update_stats_async_on bit;
	is_ansi_null_default_on bit; is_ansi_nulls_on bit; is_ansi_padding_on bit; is_ansi_warnings_on bit; is_arithabort_on bit;
	is_concat_null_yields_null_on bit; is_numeric_roundabort_on bit; is_quoted_identifier_on bit; is_recursive_triggers_on bit;
	is_cursor_close_on_commit_on bit; is_local_cursor_default bit; is_fulltext_enabled bit; is_trustworthy_on bit; is_db_chaining_on bit;
	is_parameterization_forced bit; is_query_store_on bit; is_published bit; is_subscribed bit; is_merge_published bit; is_distributor bit;
	is_broker_enabled bit; log_reuse_wait tinyint; log_reuse_wait_desc nvarchar(60); is_date_correlation_on bit; is_cdc_enabled bit;
	is_encrypted bit; replica_id uniqueidentifier; containment tinyint; containment_desc nvarchar(60); target_recovery_time_in_seconds int;
	delayed_durability int; delayed_durability_desc nvarchar(60); is_memory_optimized_elevate_to_snapshot_on bit;
	is_remote_data_archive_enabled bit; is_mixed_page_allocation_on bit; is_temporal_history_retention_enabled bit; catalog_collation_type int;
	catalog_collation_type_desc nvarchar(60); physical_database_name nvarchar(128); is_accelerated_database_recovery_on bit;
	is_memory_optimized_enabled bit; is_ledger_on bit; is_optimized_locking_on bit`)

// databaseRows: the database of an engine in memory has no encryption, log or
// recovery to speak of: those columns are NULL. Optimized locking is not what its
// locks do. Accelerated database recovery is always on in Azure (sql-docs,
// "Accelerated database recovery").
func databaseRows(s *session) [][]sqltype.Value {
	d, edition := s.engine.database, s.engine.config.Edition
	row := func(name string, id int) []sqltype.Value {
		values := map[string]any{
			"name": name, "database_id": id, "create_date": s.engine.started, "compatibility_level": int(d.compatibility.Load()),
			"collation_name": d.collation.Name, "user_access": 0, "user_access_desc": "MULTI_USER", "is_read_only": d.readOnly.Load(),
			"state": 0, "state_desc": "ONLINE", "snapshot_isolation_state": 1, "snapshot_isolation_state_desc": "ON",
			"is_read_committed_snapshot_on": d.readCommittedSnapshot.Load(), "recovery_model": 1, "recovery_model_desc": "FULL",
			"is_parameterization_forced": d.forcedParameters.Load(), "is_auto_create_stats_on": true, "is_auto_update_stats_on": true,
			"log_reuse_wait": 0, "log_reuse_wait_desc": "NOTHING", "containment": 0, "containment_desc": "NONE", "delayed_durability": 0,
			"delayed_durability_desc": "DISABLED", "catalog_collation_type": 0, "catalog_collation_type_desc": "DATABASE_DEFAULT",
			"is_accelerated_database_recovery_on": !edition.boxed(), "physical_database_name": name,
		}
		for _, c := range databaseCols {
			if _, set := values[c.name]; !set && c.typ.Kind == sqltype.Bit && c.name != "is_encrypted" {
				values[c.name] = false // not done here, or not on in a new database
			}
		}
		return partRow(databaseCols, values)
	}
	return [][]sqltype.Value{row("master", 1), row(s.engine.config.Database, databaseID)}
}

// databaseID is the user database's: master to msdb come before it.
const databaseID = 5

// The columns of sys-database-scoped-configurations-transact-sql.md.
var scopedConfigurationCols = []outCol{
	vInt("configuration_id"),
	{name: "name", typ: nvarcharType(60), nullable: true},
	vAny("value"), vAny("value_for_secondary"),
	{name: "is_value_default", typ: bitType, nullable: true},
}

// scopedConfigurationRows are the defaults of
// alter-database-scoped-configuration-transact-sql.md, which nothing can change
// here.
func scopedConfigurationRows(s *session) [][]sqltype.Value {
	parallel := int64(8) // Azure SQL Database since September 2020
	if s.engine.config.Edition != AzureSQLDatabase {
		parallel = 0
	}
	var rows [][]sqltype.Value
	for _, c := range []struct {
		id    int
		name  string
		value sqltype.Value
	}{
		{1, "MAXDOP", intValue(parallel)},
		{2, "LEGACY_CARDINALITY_ESTIMATION", intValue(0)},
		{3, "PARAMETER_SNIFFING", intValue(1)},
		{4, "QUERY_OPTIMIZER_HOTFIXES", intValue(0)},
		{6, "IDENTITY_CACHE", intValue(1)},
		{11, "ELEVATE_ONLINE", nvarcharValue("OFF")},
		{12, "ELEVATE_RESUMABLE", nvarcharValue("OFF")},
		{13, "OPTIMIZE_FOR_AD_HOC_WORKLOADS", intValue(0)},
		{24, "LAST_QUERY_PLAN_STATS", intValue(0)},
		{25, "PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES", intValue(1440)},
	} {
		rows = append(rows, catalogRow(scopedConfigurationCols, c.id, c.name, c.value, nil, true))
	}
	return rows
}

// The columns of sys-database-service-objectives-azure-sql-database.md.
var serviceObjectiveCols = documented(`database_id int; edition sysname; service_objective sysname; elastic_pool_name sysname`)

func serviceObjectiveRows(s *session) [][]sqltype.Value {
	objective := s.engine.config.ServiceObjective
	return [][]sqltype.Value{catalogRow(serviceObjectiveCols, databaseID, serviceTier(objective), objective, nil)}
}
