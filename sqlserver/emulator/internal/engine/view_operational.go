package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

var _ = registerServerFunctions(map[string]serverFunction{
	"dm_db_index_operational_stats": {[]string{"database_id", "object_id", "index_id", "partition_number"}, operationalCols, operationalRows},
})

// operationalCols are those of sys-dm-db-index-operational-stats-transact-sql.md.
var operationalCols = documented(`
	database_id smallint; object_id int; index_id int; partition_number int; hobt_id bigint; leaf_insert_count bigint; leaf_delete_count bigint;
	leaf_update_count bigint; leaf_ghost_count bigint; nonleaf_insert_count bigint; nonleaf_delete_count bigint; nonleaf_update_count bigint;
	leaf_allocation_count bigint; nonleaf_allocation_count bigint; leaf_page_merge_count bigint; nonleaf_page_merge_count bigint;
	range_scan_count bigint; singleton_lookup_count bigint; forwarded_fetch_count bigint; lob_fetch_in_pages bigint; lob_fetch_in_bytes bigint;
	lob_orphan_create_count bigint; lob_orphan_insert_count bigint; row_overflow_fetch_in_pages bigint; row_overflow_fetch_in_bytes bigint;
	column_value_push_off_row_count bigint; column_value_pull_in_row_count bigint; row_lock_count bigint; row_lock_wait_count bigint;
	row_lock_wait_in_ms bigint; page_lock_count bigint; page_lock_wait_count bigint; page_lock_wait_in_ms bigint;
	index_lock_promotion_attempt_count bigint; index_lock_promotion_count bigint; page_latch_wait_count bigint; page_latch_wait_in_ms bigint;
	page_io_latch_wait_count bigint; page_io_latch_wait_in_ms bigint; tree_page_latch_wait_count bigint; tree_page_latch_wait_in_ms bigint;
	tree_page_io_latch_wait_count bigint; tree_page_io_latch_wait_in_ms bigint; page_compression_attempt_count bigint;
	page_compression_success_count bigint`)

// operationalRows: a key that leaves an index becomes a ghost first, so that
// leaf_delete_count is 0; of a heap it is the deletes. There are no page locks,
// latches or reads from a disk to wait for: those counts are 0. Pages and row
// locks are not counted: NULL.
func operationalRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	wanted, err := hobtArguments(args)
	if err != nil {
		return nil, err
	}
	var rows [][]sqltype.Value
	for _, h := range s.engine.hobts() {
		if !wanted(h) {
			continue
		}
		o := h.storage().Operations()
		values := map[string]any{
			"database_id": databaseID, "object_id": h.table.id, "index_id": h.id(), "partition_number": 1,
			"leaf_insert_count": o.Inserts, "leaf_update_count": o.Updates, "leaf_delete_count": 0, "leaf_ghost_count": o.Ghosts,
			"row_lock_wait_count": o.RowLockWaits, "row_lock_wait_in_ms": o.RowLockWait.Milliseconds(),
			"index_lock_promotion_attempt_count": o.PromotionAttempts, "index_lock_promotion_count": o.Promotions,
		}
		if h.index == nil {
			values["leaf_delete_count"], values["leaf_ghost_count"] = o.Ghosts, 0
		}
		for _, name := range []string{
			"page_lock_count", "page_lock_wait_count", "page_lock_wait_in_ms", "page_latch_wait_count", "page_latch_wait_in_ms",
			"page_io_latch_wait_count", "page_io_latch_wait_in_ms", "tree_page_latch_wait_count", "tree_page_latch_wait_in_ms",
			"tree_page_io_latch_wait_count", "tree_page_io_latch_wait_in_ms", "forwarded_fetch_count", "page_compression_attempt_count",
			"page_compression_success_count",
		} {
			values[name] = 0
		}
		rows = append(rows, partRow(operationalCols, values))
	}
	return rows, nil
}

// hobtArguments reads database_id, object_id, index_id and partition_number. The
// defaults, NULL and 0, or -1 for an index, stand for all.
func hobtArguments(args []sqltype.Value) (func(h hobt) bool, error) {
	for i := range args[:4] {
		n, err := sqltype.Convert(args[i], bigType, 0)
		if err != nil {
			return nil, err
		}
		args[i] = n
	}
	is := func(arg sqltype.Value, all, is int64) bool { return arg.IsNull() || arg.N == all || arg.N == is }
	return func(h hobt) bool {
		return is(args[0], 0, databaseID) && is(args[1], 0, int64(h.table.id)) && is(args[2], -1, int64(h.id())) && is(args[3], 0, 1)
	}, nil
}
