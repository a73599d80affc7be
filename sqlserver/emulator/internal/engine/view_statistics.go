package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

var _ = registerServerFunctions(map[string]serverFunction{
	"dm_db_stats_properties": {[]string{"object_id", "stats_id"}, statPropertyCols, statPropertyRows},
})

// The columns of sys-dm-db-stats-properties-transact-sql.md.
var statPropertyCols = documented(`
	object_id int; stats_id int; last_updated datetime2; rows bigint; rows_sampled bigint; steps int; unfiltered_rows bigint;
	modification_counter bigint; persisted_sample_percent float`)

// statPropertyRows: the engine plans without statistics and never makes any. A row
// says so as SQL Server does where none were made yet.
func statPropertyRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	if s.hides(int32(args[0].N)) {
		return nil, nil
	}
	for _, row := range statRows(s) {
		if !args[0].IsNull() && !args[1].IsNull() && row[0].N == args[0].N && row[columnIn(statCols, "stats_id")].N == args[1].N {
			return [][]sqltype.Value{partRow(statPropertyCols, map[string]any{"object_id": int(args[0].N), "stats_id": int(args[1].N)})}, nil
		}
	}
	return nil, nil
}
