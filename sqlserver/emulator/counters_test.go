package emulator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What READPAST passes by is work that was done, though it brings no row.
func TestSkippedRowsAreCounted(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	for n := range 10 {
		if err := insert(t.Context(), db, n); err != nil {
			t.Fatal(err)
		}
	}
	holder, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback() }()
	if _, err := holder.Exec("UPDATE t SET n = n WHERE n BETWEEN 2 AND 4"); err != nil {
		t.Fatal(err)
	}
	const rest = "SELECT COUNT(*) FROM t WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)"
	var n int
	if err := db.QueryRow(rest).Scan(&n); err != nil || n != 7 {
		t.Errorf("%d rows, %v", n, err)
	}
	if diff := cmp.Diff(Counters{Skipped: 3}, s.Counters()); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	const reads = `SELECT MAX(q.last_logical_reads) FROM sys.dm_exec_query_stats AS q CROSS APPLY sys.dm_exec_sql_text(q.sql_handle) AS x WHERE x.text = '` + rest + `'`
	if err := db.QueryRow(reads).Scan(&n); err != nil || n != 10 {
		t.Errorf("%d reads, %v; want those of the rows that were skipped as well", n, err)
	}
}
