package sqlserver

import (
	"context"
	"database/sql"
	"fmt"

	"go.uber.org/zap"
)

// One seek a type that stops at its first entry. A plain read: under row
// versioning it takes no locks, and a row that a claim is just taking counts as
// pending; without, it waits for that claim. The key is the position in the
// list, so that an answer is the caller's own spelling. COLLATE: a column of
// OPENJSON has the database's collation, and comparing it with a column of
// another one is error 468 (sql-docs, collation-precedence-transact-sql.md).
const pendingSQL = `SELECT /* outbox:Pending */ t.i
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
//
// A type is read as NVARCHAR, which loses nothing, but the next seek and the
// claims need it in the column's type, which a variable has in the code page of
// the database (see LostKeys). One that does not survive that is marked, and
// passed by from its own row: a seek from the variable could find it for ever.
const discoverPendingSQL = `DECLARE @next NVARCHAR(4000), @last {event_type_t}, @id {id_t}, @askable INT, @found INT = 0;

SELECT /* outbox:DiscoverPending */ TOP (1) @next = e.event_type, @id = e.id
FROM   {events} AS e WITH (INDEX({claim_index}))
WHERE  e.status = 0
AND    e.event_type IS NOT NULL
ORDER BY e.event_type;

WHILE @next IS NOT NULL AND @found < @limit
BEGIN
    SET @last = CAST(@next AS {event_type_t});
    SET @askable = CASE WHEN CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(4000), @last) + N'.') = CONVERT(VARBINARY(MAX), @next + N'.') THEN 1 ELSE 0 END;
    SELECT /* outbox:DiscoverPending */ @next AS event_type, @askable AS askable;
    SET @found = @found + 1;
    SET @next = NULL;

    IF @askable = 1
        SELECT /* outbox:DiscoverPending */ TOP (1) @next = e.event_type, @id = e.id
        FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
        WHERE  e.status = 0
        AND    e.event_type > @last
        ORDER BY e.event_type;
    ELSE
        SELECT /* outbox:DiscoverPending */ TOP (1) @next = e.event_type, @id = e.id
        FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
        WHERE  e.status = 0
        AND    e.event_type > (SELECT l.event_type FROM {events} AS l WHERE l.id = @id)
        ORDER BY e.event_type;
END;

SELECT /* outbox:DiscoverPending */ CAST(NULL AS NVARCHAR(4000)) AS event_type, 0 AS askable;`

// DiscoverPending implements worker.Claimer. It leaves out, with a warning, a
// type that no claim can ask for: one of a VARCHAR column with characters that
// the database's code page does not have.
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
				var askable bool
				if !rows.Next() {
					if err := rows.Err(); err != nil {
						return err
					}
					return errNoMarker
				}
				if err := rows.Scan(&t, &askable); err != nil {
					return err
				}
				if !t.Valid {
					return drain(rows)
				}
				if askable {
					types = append(types, t.String)
				} else {
					s.warnUnaskable(t.String)
				}
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

// warnUnaskable says it once a type: the scan runs every second.
func (s *Store) warnUnaskable(eventType string) {
	if _, said := s.unaskable.LoadOrStore(eventType, true); said {
		return
	}
	s.log.Warn("events wait whose type no claim can ask for: the code page of the database does not have all its characters; make the column event_type NVARCHAR",
		zap.String("event_type", eventType))
}
