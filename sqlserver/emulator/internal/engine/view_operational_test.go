package engine

import (
	"testing"
)

func TestOperationalStats(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, outboxTable)
	must(t, a, `INSERT e (id, event_type, payload) SELECT value, 'a', 'p' FROM GENERATE_SERIES(1, 10)`)
	must(t, a, `UPDATE e SET status = 1 WHERE id <= 3; UPDATE e SET payload = 'q' WHERE id = 4; DELETE e WHERE id = 1`)
	const stats = `SELECT i.name, s.leaf_insert_count, s.leaf_update_count, s.leaf_delete_count, s.leaf_ghost_count, s.row_lock_wait_count, s.page_latch_wait_count, s.leaf_allocation_count
		FROM sys.dm_db_index_operational_stats(DB_ID(), OBJECT_ID('dbo.e'), NULL, NULL) AS s
		JOIN sys.indexes AS i ON i.object_id = s.object_id AND i.index_id = s.index_id ORDER BY i.name`
	if got := must(t, a, stats).text(); got != "IX_claim|10|1|0|3|0|0|NULL\nPK_e|10|4|0|1|0|0|NULL" {
		t.Errorf("after the statements: %q", got)
	}
	must(t, a, `BEGIN TRAN; UPDATE e SET processed_at = NULL WHERE id = 5`)
	done := start(b, `UPDATE e SET processed_at = NULL WHERE id = 5`)
	untilWaiting(t, e)
	must(t, a, `COMMIT`)
	<-done
	if got := must(t, a, `SELECT row_lock_wait_count FROM sys.dm_db_index_operational_stats(NULL, OBJECT_ID('e'), 1, 1)`).text(); got != "1" {
		t.Errorf("a wait for a row: %q", got)
	}
	if got := must(t, a, `SELECT COUNT(*) FROM sys.dm_db_index_operational_stats(DB_ID(), OBJECT_ID('e'), 99, NULL)`).text(); got != "0" {
		t.Errorf("an index that is not there: %q", got)
	}
}
