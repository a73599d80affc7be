package engine

import (
	"sync/atomic"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// databaseOptions are what ALTER DATABASE … SET changes and sys.databases
// shows.
type databaseOptions struct {
	collation *sqltype.Collation

	readCommittedSnapshot atomic.Bool
	forcedParameters      atomic.Bool
	readOnly              atomic.Bool
	compatibility         atomic.Int32
}

// newDatabaseOptions are those of a new Azure SQL database: RCSI on,
// compatibility level 170.
func newDatabaseOptions() *databaseOptions {
	o := &databaseOptions{collation: sqltype.DefaultCollation}
	o.readCommittedSnapshot.Store(true)
	o.compatibility.Store(170)
	return o
}
