package claimbench

import (
	"azsqloutbox/maintenance/sizing"
	"azsqloutbox/sqlserver"
)

// What a row of the scratch table has beside its payload, in bytes: the whole
// numbers and times of the script's types, and a few dozen characters of key and
// aggregate.
const (
	fixedBytes     = 34
	smallTextBytes = 24
	entryBytes     = 12 // of an index entry: header and version tag aside, both small
)

// estimate is what a run writes to the log at most, and what one scratch table
// takes. It is the arithmetic of sizing, as if every row were inserted, claimed
// and taken away: no promise, and on the safe side.
func estimate(rows, payload int, column sqlserver.ColumnType) (log, space int64) {
	bytes := float64(payload)
	if column.Unicode {
		bytes *= 2
	}
	row := sizing.Row{Columns: 12, FixedBytes: fixedBytes, VariableColumns: 6, VariableBytes: bytes + smallTextBytes, Versioned: true}.Bytes()
	covering := entryBytes + fixedBytes + smallTextBytes + bytes
	slim := float64(entryBytes + smallTextBytes)
	perRow := 0.0
	for _, entry := range []float64{covering, slim} {
		perRow += sizing.LogPerEvent(row, sizing.IndexLog{EntryBytes: entry, PendingOnly: true})
	}
	return int64(perRow * float64(rows)), int64(sizing.TableBytes(int64(rows), row, 0) + sizing.TableBytes(int64(rows), covering, 0))
}
