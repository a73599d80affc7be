// Package sizing is the arithmetic of an outbox table: what a row takes on its
// page, how many rows a page holds, what an event writes to the log in its life,
// and what a service objective of Azure SQL gives to hold against it. It asks no
// database; diagnose feeds it what it measured. Size puts the pieces together: what
// a rate of events needs of database, Service Bus and workers.
//
// Sizes are bytes. GB and MB are those of Azure's limits: 1 GB = 1,024 MB =
// 2^30 bytes.
package sizing

// KB, MB and GB are multiples of a byte as Azure's limits count them.
const (
	KB = 1 << 10
	MB = 1 << 20
	GB = 1 << 30
)
