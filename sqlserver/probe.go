package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
)

// One seek a type that stops at its first entry. A plain read: under row
// versioning it takes no locks, and a row that a claim is just taking counts as
// pending. The key is the position in the list, so that an answer is the
// caller's own spelling. COLLATE: a column of OPENJSON has the database's
// collation, and comparing it with a column of another one is error 468
// (sql-docs, collation-precedence-transact-sql.md).
const pendingSQL = `-- outbox:Pending
SELECT t.i
FROM   (SELECT CAST(c.[key] AS INT) AS i, CAST(c.value AS {event_type_t}){event_type_collate} AS event_type
        FROM   OPENJSON(@types) AS c) AS t
WHERE  EXISTS (SELECT 1
               FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
               WHERE  e.event_type = t.event_type
               AND    e.status = 0)
OPTION (MAXDOP 1);`

// Pending implements worker.Claimer.
func (s *Store) Pending(ctx context.Context, types []string) ([]string, error) {
	if len(types) == 0 {
		return nil, nil
	}
	var pending []string
	err := s.retrying(ctx, fmt.Sprintf("probe %s", s.names), func(ctx context.Context) error {
		pending = nil
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			for _, t := range types {
				if err := st.checkEventType(t); err != nil {
					return err
				}
			}
			rows, err := conn.QueryContext(ctx, st.pending, sql.Named("types", stringsJSON(types)))
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var i int
				if err := rows.Scan(&i); err != nil {
					return err
				}
				if i < 0 || i >= len(types) {
					return fmt.Errorf("the probe answered position %d of %d types", i, len(types))
				}
				pending = append(pending, types[i])
			}
			return rows.Err()
		})
	})
	return pending, err
}

// A skip scan: one seek per distinct type, however many events wait. A GROUP BY
// would read the whole backlog. Every type is a result set of one row; the last
// one, NULL, is the marker.
const discoverPendingSQL = `-- outbox:DiscoverPending
DECLARE @next {event_type_t}, @last {event_type_t}, @found INT = 0;

SELECT TOP (1) @next = e.event_type
FROM   {events} AS e WITH (INDEX({claim_index}))
WHERE  e.status = 0
ORDER BY e.event_type;

WHILE @next IS NOT NULL AND @found < @limit
BEGIN
    SELECT CONVERT(NVARCHAR(4000), @next) AS event_type;
    SET @found = @found + 1;
    SET @last = @next;
    SET @next = NULL;

    SELECT TOP (1) @next = e.event_type
    FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
    WHERE  e.status = 0
    AND    e.event_type > @last
    ORDER BY e.event_type;
END;

SELECT CAST(NULL AS NVARCHAR(4000)) AS event_type;`

// DiscoverPending implements worker.Claimer.
func (s *Store) DiscoverPending(ctx context.Context, limit int) ([]string, error) {
	var types []string
	err := s.retrying(ctx, fmt.Sprintf("look for pending event types of %s", s.names), func(ctx context.Context) error {
		types = nil
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			rows, err := conn.QueryContext(ctx, st.discoverPending, sql.Named("limit", limit))
			if err != nil {
				return err
			}
			defer rows.Close()
			for {
				var t sql.NullString
				if !rows.Next() {
					if err := rows.Err(); err != nil {
						return err
					}
					return errNoMarker
				}
				if err := rows.Scan(&t); err != nil {
					return err
				}
				if !t.Valid {
					return drain(rows)
				}
				types = append(types, t.String)
				if rows.Next() {
					return fmt.Errorf("a type came with more than one row")
				}
				if !rows.NextResultSet() {
					if err := rows.Err(); err != nil {
						return err
					}
					return errNoMarker
				}
			}
		})
	})
	return types, err
}
