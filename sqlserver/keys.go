package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
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

// EqualTypes implements worker.Keeper.
func (s *Store) EqualTypes(ctx context.Context, types []string) (pairs [][2]string, err error) {
	if len(types) == 0 {
		return nil, nil
	}
	op := fmt.Sprintf("compare the event types as %s does", s.names)
	err = s.retrying(ctx, op, func(ctx context.Context) error {
		pairs = nil
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			for _, t := range types {
				if err := st.checkEventType(t); err != nil {
					return err
				}
			}
			rows, err := conn.QueryContext(ctx, st.equalKeys, sql.Named("types", stringsJSON(types)))
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var a, b int
				if err := rows.Scan(&a, &b); err != nil {
					return err
				}
				pairs = append(pairs, [2]string{types[a], types[b]})
			}
			return rows.Err()
		})
	})
	return pairs, err
}
