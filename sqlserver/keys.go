package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"azsqloutbox/worker"
)

// The comparison is the column's own: its type, and its collation, which may
// call two spellings equal. Those have one rank. It is one sort, whatever the
// server estimates: a join of OPENJSON with itself may compare every pair, and a
// worker has thousands of routes.
const equalKeysSQL = `SELECT /* outbox:EqualKeys */ k.i, DENSE_RANK() OVER (ORDER BY k.event_type) AS rank_of
FROM   (SELECT CAST(c.[key] AS INT) AS i, CAST(c.value AS {event_type_t}){event_type_collate} AS event_type
        FROM   OPENJSON(@types) AS c) AS k;`

// The statements compare event_type with a parameter that is cast to the
// column's type, and the server does that by the code page of the database, not
// by the column's. Here a key goes the same way, on into the column's collation
// and back. The dot makes trailing blanks count.
const lostKeysSQL = `SELECT /* outbox:LostKeys */ TOP (1) k.i
FROM   (SELECT CAST(c.[key] AS INT) AS i, c.value AS key_text, CAST(c.value AS {event_type_varying_t}){event_type_collate} AS event_type
        FROM   OPENJSON(@types) AS c) AS k
WHERE  CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), k.event_type) + N'.') <> CONVERT(VARBINARY(MAX), k.key_text + N'.')
ORDER BY k.i;`

// EqualTypes implements worker.Keeper. In a VARCHAR column it takes event types
// of ASCII, whatever the collations, and others where the code page of the
// database has all their characters; NVARCHAR takes every one.
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
			if err := checkLostKeys(ctx, conn, st, types); err != nil {
				return err
			}
			rows, err := conn.QueryContext(ctx, st.equalKeys, sql.Named("types", stringsJSON(types)))
			if err != nil {
				return err
			}
			defer rows.Close()
			ranks := make([]int64, len(types))
			for rows.Next() {
				var i int
				var rank int64
				if err := rows.Scan(&i, &rank); err != nil {
					return err
				}
				if i < 0 || i >= len(types) {
					return fmt.Errorf("the answer is about position %d of %d types", i, len(types))
				}
				ranks[i] = rank
			}
			if err := rows.Err(); err != nil {
				return err
			}
			first := make(map[int64]string, len(types))
			for i, rank := range ranks {
				if one, was := first[rank]; was {
					pairs = append(pairs, [2]string{one, types[i]})
				} else {
					first[rank] = types[i]
				}
			}
			return nil
		})
	})
	return pairs, err
}

// checkLostKeys asks the server only about what it may lose.
func checkLostKeys(ctx context.Context, conn *sql.Conn, st *statements, types []string) error {
	column := st.table.columns["event_type"]
	if column.isInteger() || column.isUnicode() || isASCII(strings.Join(types, "")) {
		return nil
	}
	var i int
	err := conn.QueryRowContext(ctx, st.lostKeys, sql.Named("types", stringsJSON(types))).Scan(&i)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case i < 0 || i >= len(types):
		return fmt.Errorf("the answer is about position %d of %d types", i, len(types))
	}
	return fmt.Errorf("event type %q: the code page of the database or of the column event_type, %s, does not have all its characters: make the column NVARCHAR: %w",
		types[i], column.declaration(), worker.ErrPermanent)
}
