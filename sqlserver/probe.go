package sqlserver

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf16"

	"go.uber.org/zap"

	"azsqloutbox/worker"
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
// one, NULL, is the marker, and says whether the scan stopped before the end.
//
// A type is read as NVARCHAR, which loses nothing, but the next seek and the
// claims need it in the column's type, which a variable has in the code page of
// the database (see LostKeys). One that does not survive that is marked, not
// counted, and passed by from its own row: a seek from the variable could find
// it for ever. Types travel as the bytes of their UTF-16, as does @from: the
// driver's strings cannot hold half a surrogate pair, and NVARCHAR can.
const discoverPendingSQL = `DECLARE @next NVARCHAR(4000), @last {event_type_t}, @id {id_t}, @askable INT, @found INT = 0;

IF @begun = 0
    SELECT /* outbox:DiscoverPending */ TOP (1) @next = e.event_type, @id = e.id
    FROM   {events} AS e WITH (INDEX({claim_index}))
    WHERE  e.status = 0
    AND    e.event_type IS NOT NULL
    ORDER BY e.event_type;
ELSE
BEGIN
    SET @last = CAST(CAST(@from AS NVARCHAR(4000)) AS {event_type_t});
    SELECT /* outbox:DiscoverPending */ TOP (1) @next = e.event_type, @id = e.id
    FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK)
    WHERE  e.status = 0
    AND    e.event_type > @last
    ORDER BY e.event_type;
END;

WHILE @next IS NOT NULL AND @found < @limit
BEGIN
    SET @last = CAST(@next AS {event_type_t});
    SET @askable = CASE WHEN CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(4000), @last) + N'.') = CONVERT(VARBINARY(MAX), @next + N'.') THEN 1 ELSE 0 END;
    SELECT /* outbox:DiscoverPending */ CONVERT(VARBINARY(8000), @next) AS event_type, @askable AS askable;
    SET @found = @found + @askable;
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

SELECT /* outbox:DiscoverPending */ CAST(NULL AS VARBINARY(8000)) AS event_type, CASE WHEN @next IS NULL THEN 0 ELSE 1 END AS more;`

// DiscoverPending implements worker.Claimer. It leaves out, with a warning, a
// type that no claim can ask for: one of a VARCHAR column with characters that
// the database's code page does not have, and one of an NVARCHAR column that is
// no Unicode.
func (s *Store) DiscoverPending(ctx context.Context, from worker.ScanPosition, limit int) (types []string, next worker.ScanPosition, err error) {
	err = s.retrying(ctx, fmt.Sprintf("look for pending event types of %s", s.names), func(ctx context.Context) error {
		types, next = nil, nil
		var last worker.ScanPosition
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			rows, err := conn.QueryContext(ctx, st.discoverPending, sql.Named("begun", from != nil), sql.Named("from", []byte(from)), sql.Named("limit", limit))
			if err != nil {
				return err
			}
			defer rows.Close()
			for {
				var text []byte
				var flag bool // askable; of the marker: more
				if !rows.Next() {
					if err := rows.Err(); err != nil {
						return err
					}
					return errNoMarker
				}
				if err := rows.Scan(&text, &flag); err != nil {
					return err
				}
				if text == nil {
					if flag {
						next = last
					}
					return drain(rows)
				}
				t, unicode := utf16Text(text)
				switch {
				case !flag:
					s.warnUnaskable(t, "the code page of the database does not have all its characters; make the column event_type NVARCHAR")
				case !unicode:
					s.warnUnaskable(t, "half a surrogate pair is in it (here \uFFFD), so it is no Unicode; correct event_type in those rows")
				default:
					types = append(types, t)
				}
				if flag {
					last = text
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
	return types, next, err
}

// utf16Text decodes what NVARCHAR holds, which need not be Unicode: then the
// halves of surrogate pairs are U+FFFD, as the driver reads them.
func utf16Text(b []byte) (text string, unicode bool) {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	runes := utf16.Decode(units)
	return string(runes), slices.Equal(utf16.Encode(runes), units)
}

// warnUnaskable says it once a type: the scan runs every second.
func (s *Store) warnUnaskable(eventType, why string) {
	if _, said := s.unaskable.LoadOrStore(eventType, true); said {
		return
	}
	s.log.Warn("events wait whose type no claim can ask for: "+why, zap.String("event_type", eventType))
}
