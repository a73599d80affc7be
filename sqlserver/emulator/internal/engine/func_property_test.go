package engine

import "testing"

func TestPropertiesOfServerAndDatabase(t *testing.T) {
	play(t, []batch{
		{`SELECT SERVERPROPERTY('ProductVersion'), SERVERPROPERTY('ProductMajorVersion'), SERVERPROPERTY('ProductBuild'), SERVERPROPERTY('EngineEdition'), SERVERPROPERTY('EditionID')`, "12.0.2000.8|12|2000|5|1674378470"},
		{`SELECT SERVERPROPERTY('IsXTPSupported'), SERVERPROPERTY('Collation'), SERVERPROPERTY('IsClustered'), SERVERPROPERTY('no such')`, "0|SQL_Latin1_General_CP1_CI_AS|0|NULL"},
		{`SELECT DATABASEPROPERTYEX(DB_NAME(), 'IsAutoClose'), DATABASEPROPERTYEX(DB_NAME(), 'Version'), DATABASEPROPERTYEX(DB_NAME(), 'IsParameterizationForced'), DATABASEPROPERTYEX('other', 'Collation')`, "0|NULL|0|NULL"},
		{`ALTER DATABASE CURRENT SET PARAMETERIZATION FORCED`, ""},
		{`DECLARE @d SYSNAME = DB_NAME(); SELECT DATABASEPROPERTYEX(@d, 'IsParameterizationForced'), DATABASEPROPERTYEX(@d, 'Updateability'), DATABASEPROPERTYEX(@d, 'LCID')`, "1|READ_WRITE|1033"},
		{`SELECT CONNECTIONPROPERTY('net_transport'), CONNECTIONPROPERTY('auth_scheme'), CONNECTIONPROPERTY('client_net_address')`, "TCP|SQL|NULL"},
	})
}

func TestPropertiesOfObjects(t *testing.T) {
	play(t, []batch{
		{outboxTable, ""},
		{`SET QUOTED_IDENTIFIER OFF`, ""},
		{`CREATE PROCEDURE p @id INT, @out VARCHAR(10) OUTPUT AS SELECT 1`, ""},
		{`SELECT OBJECTPROPERTY(OBJECT_ID('p'), 'ExecIsQuotedIdentOn'), OBJECTPROPERTY(OBJECT_ID('p'), 'ExecIsAnsiNullsOn'), OBJECTPROPERTY(OBJECT_ID('p'), 'IsProcedure'), OBJECTPROPERTY(OBJECT_ID('p'), 'TableHasIndex')`, "0|1|1|NULL"},
		{`SELECT OBJECT_DEFINITION(OBJECT_ID('p')), OBJECT_DEFINITION(OBJECT_ID('e'))`, "CREATE PROCEDURE p @id INT, @out VARCHAR(10) OUTPUT AS SELECT 1|NULL"},
		{`SELECT name, TYPE_NAME(user_type_id), max_length, is_output FROM sys.parameters WHERE object_id = OBJECT_ID('p') ORDER BY parameter_id`, "@id|int|4|0\n@out|varchar|10|1"},
		{`INSERT e (id, event_type, payload) VALUES (1, 'a', 'x'), (2, 'a', 'x')`, "error 1934"},
		{`SET QUOTED_IDENTIFIER ON`, ""},
		{`INSERT e (id, event_type, payload) VALUES (1, 'a', 'x'), (2, 'a', 'x')`, ""},
		{`SELECT OBJECTPROPERTYEX(OBJECT_ID('e'), 'Cardinality'), OBJECTPROPERTYEX(OBJECT_ID('e'), 'BaseType'), OBJECTPROPERTY(OBJECT_ID('e'), 'TableHasNonclustIndex'), OBJECTPROPERTY(OBJECT_ID('e'), 'TableHasForeignKey'), OBJECTPROPERTY(1, 'IsTable')`, "2|U |1|0|NULL"},
		{`CREATE TRIGGER tr ON e AFTER INSERT, UPDATE AS SET NOCOUNT ON`, ""},
		{`DISABLE TRIGGER tr ON e; SELECT OBJECTPROPERTY(OBJECT_ID('tr'), 'ExecIsTriggerDisabled'), OBJECTPROPERTY(OBJECT_ID('tr'), 'ExecIsDeleteTrigger'), OBJECTPROPERTY(OBJECT_ID('e'), 'TableHasUpdateTrigger'), OBJECTPROPERTY(OBJECT_ID('tr'), 'IsTrigger')`, "1|0|1|1"},
		{`SELECT INDEXPROPERTY(OBJECT_ID('e'), 'PK_e', 'IsPadIndex'), INDEXPROPERTY(OBJECT_ID('e'), 'PK_e', 'IndexDepth'), INDEXPROPERTY(OBJECT_ID('e'), 'none', 'IsUnique')`, "0|NULL|NULL"},
		{`SELECT INDEXKEY_PROPERTY(object_id, index_id, 1, 'IsDescending'), COL_NAME(object_id, INDEXKEY_PROPERTY(object_id, index_id, 2, 'ColumnId')), INDEX_COL('dbo.e', index_id, 1), INDEXKEY_PROPERTY(object_id, index_id, 9, 'ColumnId') FROM sys.indexes WHERE name = 'IX_claim'`, "0|id|event_type|NULL"},
		{`SELECT STATS_DATE(OBJECT_ID('e'), 1)`, "NULL"},
		{`SELECT COUNT(*) FROM sys.default_constraints AS d WHERE OBJECT_DEFINITION(d.object_id) = d.definition`, "3"},
	})
}

// Columns that are about what does not exist here are off, not absent.
func TestCatalogViewsHaveTheirColumns(t *testing.T) {
	play(t, []batch{
		{outboxTable, ""},
		{`SELECT is_published, temporal_type_desc, durability_desc, history_table_id, is_external FROM sys.tables`, "0|NON_TEMPORAL_TABLE|SCHEMA_AND_DATA|NULL|0"},
		{`SELECT name, rule_object_id, is_filestream, is_column_set, generated_always_type_desc, encryption_type_desc, is_masked FROM sys.columns WHERE name = 'id'`, "id|0|0|0|NOT_APPLICABLE|NULL|0"},
		{`SELECT name, compression_delay, auto_created FROM sys.indexes WHERE index_id = 1`, "PK_e|NULL|0"},
		{`SELECT COUNT(*) FROM sys.foreign_keys WHERE is_disabled = 0 AND referenced_object_id = 1`, "0"},
		{`SELECT p.name FROM sys.partition_schemes AS p JOIN sys.indexes AS i ON i.data_space_id = p.data_space_id`, ""},
		{`SELECT f.name, d.type_desc, i.name FROM sys.filegroups AS f JOIN sys.data_spaces AS d ON d.data_space_id = f.data_space_id JOIN sys.indexes AS i ON i.data_space_id = d.data_space_id WHERE i.index_id = 1`, "PRIMARY|ROWS_FILEGROUP|PK_e"},
		{`SELECT i.name, a.type_desc, a.total_pages FROM sys.allocation_units AS a JOIN sys.partitions AS p ON p.hobt_id = a.container_id JOIN sys.indexes AS i ON i.object_id = p.object_id AND i.index_id = p.index_id WHERE i.index_id = 1`, "PK_e|IN_ROW_DATA|NULL"},
		{`SELECT COUNT(*) FROM sys.synonyms AS s LEFT JOIN sys.extended_properties AS x ON x.major_id = s.object_id`, "0"},
	})
}
