package engine

import (
	"testing"
)

func TestStatisticsAreNeverMade(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, outboxTable)
	const properties = `SELECT st.name, p.last_updated, p.rows, p.modification_counter FROM sys.stats AS st CROSS APPLY sys.dm_db_stats_properties(st.object_id, st.stats_id) AS p WHERE st.name = 'PK_e'`
	if got := must(t, s, properties).text(); got != "PK_e|NULL|NULL|NULL" {
		t.Errorf("got %q", got)
	}
	if got := must(t, s, `SELECT COUNT(*) FROM sys.dm_db_stats_properties(OBJECT_ID('e'), 99)`).text(); got != "0" {
		t.Errorf("of none: %q", got)
	}
}
