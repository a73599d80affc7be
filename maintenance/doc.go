// Package maintenance looks after the outbox table: one task a file, its policy
// and its T-SQL together. A task first says what it would do (Plan) and then
// does it (Run), in small transactions between which it can be stopped. Nothing
// here competes with the worker: statements stay under the size of lock
// escalation, lose every deadlock and wait for locks only briefly.
//
// Tasks return plain structs that print as text and as JSON; cmd/outboxctl only
// parses flags and shows them.
package maintenance
