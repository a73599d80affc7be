package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// fits checks a row against the columns. unsure means that a value has
// characters beyond ASCII on their way into a code page: whether it has them,
// and how many bytes they take there, only the server knows.
func (t *table) fits(r newRow) (unsure bool, err error) {
	if r.EventType == "" {
		return false, errors.New("event_type is empty: it chooses the route")
	}
	headers := ""
	if r.Headers != nil {
		headers = *r.Headers
	}
	for _, v := range []struct{ name, value string }{
		{"aggregate_type", r.AggregateType},
		{"aggregate_id", r.AggregateID},
		{"event_type", r.EventType},
		{"payload", r.Payload},
		{"headers", headers},
	} {
		u, err := t.columns[v.name].fits(v.value)
		if err != nil {
			return false, fmt.Errorf("%s: %w", v.name, err)
		}
		unsure = unsure || u
	}
	return unsure, nil
}

func (c column) fits(value string) (unsure bool, err error) {
	if !utf8.ValidString(value) {
		return false, errors.New("is not valid UTF-8")
	}
	ascii := isASCII(value)
	var size int
	switch {
	case c.isInteger():
		return false, c.fitsNumber(value)
	case c.isUnicode():
		size = 2 * len(value)
		if !ascii {
			size = 2 * len(utf16.Encode([]rune(value)))
		}
	case ascii || c.utf8():
		// Every code page of SQL Server has ASCII at one byte a character.
		size = len(value)
	default:
		unsure = true
		size = utf8.RuneCountInString(value) // one byte each at the least
	}
	if c.bytes >= 0 && size > c.bytes {
		return false, fmt.Errorf("has %d bytes, the column %s takes %d", size, c.declaration(), c.bytes)
	}
	return unsure, nil
}

func (c column) fitsNumber(value string) error {
	bits := map[string]int{"smallint": 16, "int": 32, "bigint": 64}[c.kind]
	var err error
	if c.kind == "tinyint" {
		_, err = strconv.ParseUint(value, 10, 8)
	} else {
		_, err = strconv.ParseInt(value, 10, bits)
	}
	if err != nil {
		return fmt.Errorf("%q is none of the whole numbers that the column %s takes", value, c.declaration())
	}
	return nil
}

// A value fits when it comes back from the column's own type and collation as
// it went in. The conversion cuts and replaces in silence, so the way back
// differs; compared as bytes, because a collation may call different characters
// equal. The dot makes trailing blanks and zero bytes count.
const fitsCollationSQL = `SELECT /* outbox:FitsCollation */ TOP (1) v.n,
       CASE WHEN {aggregate_type_misfit} THEN 'aggregate_type'
            WHEN {aggregate_id_misfit} THEN 'aggregate_id'
            WHEN {event_type_misfit} THEN 'event_type'
            WHEN {payload_misfit} THEN 'payload'
            ELSE 'headers'
       END AS column_name
FROM   (SELECT e.n,
               e.aggregate_type{aggregate_type_collate} AS aggregate_type,
               e.aggregate_id{aggregate_id_collate} AS aggregate_id,
               e.event_type{event_type_collate} AS event_type,
               e.payload{payload_collate} AS payload,
               e.headers{headers_collate} AS headers
        FROM   OPENJSON(@events) WITH (
                   n              BIGINT        '$.n',
                   aggregate_type NVARCHAR(MAX) '$.a',
                   aggregate_id   NVARCHAR(MAX) '$.i',
                   event_type     NVARCHAR(MAX) '$.t',
                   payload        NVARCHAR(MAX) '$.p',
                   headers        NVARCHAR(MAX) '$.h') AS e) AS v
WHERE  {aggregate_type_misfit}
OR     {aggregate_id_misfit}
OR     {event_type_misfit}
OR     {payload_misfit}
OR     {headers_misfit}
ORDER BY v.n
OPTION (MAXDOP 1);`

// misfit is true for a value that the column would change.
func (c column) misfit() string {
	return fmt.Sprintf("CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), CONVERT(%s, v.%s)) + N'.') <> CONVERT(VARBINARY(MAX), v.%s + N'.')",
		c.varying(), c.name, c.name)
}

func checkFits(ctx context.Context, tx *sql.Tx, text string, rows []newRow) error {
	var n int
	var name string
	err := tx.QueryRowContext(ctx, text, sql.Named("events", rowsJSON(rows))).Scan(&n, &name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("ask whether the text survives its columns: %w", err)
	case n < 0 || n >= len(rows):
		return fmt.Errorf("asked about %d events, the answer is about number %d", len(rows), n)
	}
	return fmt.Errorf("event %d: %s is too long for its column, or has characters that its collation cannot hold", rows[n].at, name)
}
