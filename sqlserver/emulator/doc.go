// Package emulator is an embedded SQL Server for tests and local use: a real
// TDS server on a socket, met by real drivers, over an engine in memory. It
// executes the T-SQL that an outbox and its tools need, with real row locks, and
// shows what was executed. Faults can be scripted into it, and a restart.
//
// It stands for Azure SQL Database: one user database, engine edition 5,
// READ_COMMITTED_SNAPSHOT on, one login, whose user is dbo, nothing on disk. As
// another Edition it has that one's properties, views and refusals, no more.
// It is meant to be strict rather than wide: what it does not model is an error,
// SQL Server's own where there is one (102, 155, 208, 321 and their like), else
// number 50999, which says so. A result that is made up is a defect.
//
// # Modelled
//
// Protocol: TDS 7.3 and 7.4 with TLS, batches, sp_executesql, prepared
// statements, table-valued parameters, bulk load, transaction manager requests,
// attention, sp_reset_connection.
//
// Language: SELECT with inner and outer joins, APPLY, CTE (not recursive),
// subqueries, GROUP BY, ROW_NUMBER and ranks, UNION, EXCEPT, INTERSECT, TOP,
// OFFSET; INSERT, UPDATE and DELETE with OUTPUT and joins; variables, table
// variables, #tables, IF, WHILE, TRY and CATCH, THROW, RAISERROR, EXEC;
// procedures, AFTER triggers, table types, sequences, schemas; CREATE and ALTER
// of tables and indexes, names of statistics (UPDATE STATISTICS does nothing);
// OPENJSON, STRING_SPLIT, GENERATE_SERIES, STRING_AGG. Text in code page 1252 and
// UTF-8, under SQL, Windows and binary collations: what a code page lacks is lost
// as on SQL Server.
//
// Permissions: users WITHOUT LOGIN and contained users (DSNFor), roles, the fixed
// ones too; GRANT, DENY and REVOKE on the database, schemas, tables and their
// columns, procedures, sequences and users, enforced for what the statements need;
// ownership chains, EXECUTE AS of procedures and EXECUTE AS USER, what a user sees
// of the catalog, VIEW DATABASE STATE, HAS_PERMS_BY_NAME, fn_my_permissions.
//
// Session options: those that the ODBC flag of the login turns on, XACT_ABORT,
// NOCOUNT, ROWCOUNT, LOCK_TIMEOUT, DEADLOCK_PRIORITY, isolation levels, as
// @@OPTIONS and SESSIONPROPERTY show them. A table with a filtered index is not
// written with a wrong one (1934), nor is the index read.
//
// Transactions: row versions for readers; S, U and X locks on index keys, intent
// locks, waiters in order, deadlock victims, escalation to a table lock past
// 5,000 locks of a statement, savepoints, transactions that are doomed.
//
// Plans: a filtered index serves literals that imply its filter and no parameter;
// an NVARCHAR value scans a VARCHAR column of a SQL collation. Plans are cached
// by text and SET options.
//
// Views, from the engine's own state and counters: of plans sys.dm_exec_query_stats,
// _cached_plans and the functions _sql_text, _query_plan, _text_query_plan and
// _plan_attributes; of sessions _sessions, _connections, _requests and _input_buffer;
// of locks and transactions sys.dm_tran_locks, _active_transactions,
// _session_transactions, _database_transactions and _persistent_version_store_stats,
// sys.dm_os_waiting_tasks, sys.dm_os_wait_stats and sys.dm_db_wait_stats; of indexes
// sys.dm_db_index_usage_stats, _index_operational_stats, _index_physical_stats,
// _partition_stats and _stats_properties; sys.databases,
// sys.database_scoped_configurations, and the catalog views of tables, columns,
// indexes, constraints, statistics, sequences, procedures, triggers, types and
// storage. A view has the columns that the engine can answer; others are error 207.
//
//   - logical_reads count rows that scans touched, those that READPAST skipped
//     included, not pages;
//   - worker_time is what of the elapsed time was not spent in waiting for locks;
//   - set_options never has ParallelPlan (2);
//   - showplan has the reads, their predicates and the warnings; no costs and
//     none of the operators above the reads;
//   - figures of pages, bytes and the log are NULL;
//   - waits are those for locks; of latches and the disk there are none (0);
//   - statistics are never made: their dates and rows are NULL.
//
// There and empty, because none is the truth: sys.dm_db_resource_stats, the views of
// Query Store (sys.database_query_store_options says OFF), of missing indexes, and of
// objects that cannot be made here (foreign keys, partitions, synonyms, …). Every
// other view or function of sys that the documentation has for the edition is 50999;
// one that it does not have, or that only master has, is 208.
//
// What an engine in memory cannot have (waits for the log rate, page density, rows
// of Query Store, a permission that is missing) a test may make up with FakeView.
//
// # Accepted as syntax only
//
// ONLINE, RESUMABLE, MAX_DURATION (the operation is done at once, under Sch-M, for
// which WAIT_AT_LOW_PRIORITY really waits; StopRebuild has a resumable one stop),
// SORT_IN_TEMPDB, DATA_COMPRESSION, STATISTICS_NORECOMPUTE; FILLFACTOR, PAD_INDEX,
// ALLOW_PAGE_LOCKS and OPTIMIZE_FOR_SEQUENTIAL_KEY, which sys.indexes shows; ROWLOCK
// and PAGLOCK; the OPTION hints other than RECOMPILE and FORCE ORDER, save that
// joins they leave no way for are refused; SET LANGUAGE, DATEFORMAT, CONTEXT_INFO,
// ARITHIGNORE, CURSOR_CLOSE_ON_COMMIT, FORCEPLAN and QUERY_GOVERNOR_COST_LIMIT;
// RECOMPILE of procedures.
//
// # Refused
//
// MERGE, cursors, INSTEAD OF and DDL triggers, COLUMNS_UPDATED, views, functions,
// foreign keys, computed columns, partitions, temporal and memory-optimized tables,
// columnstore, IGNORE_DUP_KEY, ALLOW_ROW_LOCKS = OFF, FULL joins, CUBE and ROLLUP,
// window frames, FOR JSON and FOR XML, methods of XML values, INSERT … EXEC, SELECT
// INTO a permanent table, global #tables, strings in double quotes, COLLATE right
// behind a literal or a variable, IMPLICIT_TRANSACTIONS, distributed transactions,
// MARS, other databases, Query Store, GOTO, = ANY and = ALL; USE HINT, TABLE HINT
// and OPTIMIZE FOR a value; two NEXT VALUE FOR of one sequence in a row; aggregates
// of columns of the query around; logins, users of Entra and other default schemas
// than dbo, GRANT ALL, AS and on types; system procedures other than sp_executesql,
// sp_prepare and its like, sp_sequence_get_range and sp_getapplock.
//
// # Where it is not SQL Server
//
// Stricter: SERIALIZABLE and HOLDLOCK lock the table, where SQL Server locks key
// ranges; with ANSI_WARNINGS OFF a text that is too long is an error still, and
// so is a division by zero.
//
// Kinder, so that nothing is proved here: catalog views, OBJECT_ID and declarations
// of a table type show at once what an open transaction has made or dropped, where
// they would wait as statements do that name it; plans come from fixed rules, so
// none turns bad with the data; there are no page locks, latches, log or memory
// limits; table types need no permission, nor does a bulk load that passes
// constraints and triggers by more than INSERT; identity columns have no gap after
// a restart.
package emulator
