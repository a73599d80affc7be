package main

import (
	"context"
	"fmt"
	"strings"
)

// rowsTouched is what the statements of each name have read, by name.
type rowsTouched map[string]int64

// A statement is in the view once it has ended (sql-docs,
// sys-dm-exec-query-stats-transact-sql.md); those of one batch share its text.
const rowsTouchedSQL = `SELECT /* outbox:BenchRowsTouched */ t.text, q.total_logical_reads
FROM   sys.dm_exec_query_stats AS q
CROSS APPLY sys.dm_exec_sql_text(q.sql_handle) AS t;`

// rowsTouched counts since the engine was started. On the embedded engine
// logical reads are rows.
func (t benchTable) rowsTouched(ctx context.Context) (rowsTouched, error) {
	rows, err := t.QueryContext(ctx, rowsTouchedSQL)
	if err != nil {
		return nil, fmt.Errorf("read what the statements touched: %w", err)
	}
	defer rows.Close()
	all := rowsTouched{}
	for rows.Next() {
		var text string
		var reads int64
		if err := rows.Scan(&text, &reads); err != nil {
			return nil, fmt.Errorf("read what the statements touched: %w", err)
		}
		_, named, _ := strings.Cut(text, "/* outbox:")
		name, _, _ := strings.Cut(named, " */")
		all[name] += reads
	}
	return all, rows.Err()
}

// since leaves out what bench itself asked.
func (r rowsTouched) since(before rowsTouched) rowsTouched {
	d := rowsTouched{}
	for name, n := range r {
		if !strings.HasPrefix(name, "Bench") {
			d[name] = n - before[name]
		}
	}
	return d
}
