package sqlserver

import (
	"context"
	"database/sql"
	"fmt"

	"azsqloutbox/worker"
)

// The comparison is the column's own: its type, and its collation, which may
// call two spellings equal.
const equalKeysSQL = `-- outbox:EqualKeys
SELECT a.i, b.i
FROM   (SELECT CAST(c.[key] AS INT) AS i, CAST(c.value AS {event_type_t}){event_type_collate} AS event_type
        FROM   OPENJSON(@types) AS c) AS a
INNER JOIN (SELECT CAST(c.[key] AS INT) AS i, CAST(c.value AS {event_type_t}){event_type_collate} AS event_type
        FROM   OPENJSON(@types) AS c) AS b ON a.event_type = b.event_type
WHERE  a.i < b.i
ORDER BY a.i, b.i;`

// CheckKeys refuses event types that the table's column cannot tell apart: a
// claim of one would take the rows of the other, and which route they go would
// be chance.
func (s *Store) CheckKeys(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	op := fmt.Sprintf("compare the event types as %s does", s.names)
	return s.retrying(ctx, op, func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			for _, key := range keys {
				if err := st.checkEventType(key); err != nil {
					return err
				}
			}
			rows, err := conn.QueryContext(ctx, st.equalKeys, sql.Named("types", stringsJSON(keys)))
			if err != nil {
				return err
			}
			defer rows.Close()
			if !rows.Next() {
				return rows.Err()
			}
			var a, b int
			if err := rows.Scan(&a, &b); err != nil {
				return err
			}
			return fmt.Errorf("the column event_type calls %q and %q equal: %w", keys[a], keys[b], worker.ErrPermanent)
		})
	})
}
