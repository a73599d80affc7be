// Package claimbench measures ways to claim events on the user's own database,
// so that nobody has to believe an estimate. It makes a scratch table with the
// column types of the event table, has the server fill it, claims from it by each
// strategy, with the covering and with the slim claim index, and reads what that
// cost: CPU, time and logical reads from sys.dm_exec_query_stats, the log from the
// transaction's own row of sys.dm_tran_database_transactions, before it commits.
// The event table itself is neither read nor written; of it only the catalog is
// asked for.
//
// Every claim commits, as a worker's does: on Azure SQL accelerated database
// recovery is always on, and the versions that a rollback leaves behind would be
// read past by whatever is measured next. So each strategy has event types, and
// rows, of its own, and the strategies take turns, round by round: what disturbs
// one disturbs all.
//
// The table is dropped at the end, after an error and after Ctrl-C too. What a
// killed run leaves behind is known by its name and removed by the next one.
package claimbench
