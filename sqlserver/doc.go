// Package sqlserver is the outbox table: it opens connections to Azure SQL and
// SQL Server, sorts their errors, and runs the statements by which a worker
// claims, settles, reaps and counts events, and a writer adds them. It needs
// SQL Server 2019 or later and compatibility level 130 or higher.
//
// Every statement is a constant right above the method that sends it, with its name
// in a comment behind the verb: SELECT /* outbox:ClaimEvents */. There it shows in
// the plan cache, in a profiler and in Query Store, which leaves out what stands
// before a statement (sql-docs, sys-query-store-query-text-transact-sql.md). What the
// statements have in common:
//
//   - status is compared with literals only, because the claim and retry
//     indexes are filtered: a parameter never matches the filter.
//   - Lists travel as one JSON parameter, so that there is one text and one plan
//     whatever their length, and no limit of 2,100 parameters.
//   - Times are the database's own; none is ever sent.
//   - Every statement has a variable or OPTION (RECOMPILE): without either, forced
//     parameterization could turn its literals into parameters.
package sqlserver
