package sqlserver

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	mssql "github.com/microsoft/go-mssqldb"
	"go.opentelemetry.io/otel/trace"

	"azsqloutbox/internal/quantity"
)

// OutboxEvent is an event on its way into the table.
type OutboxEvent struct {
	AggregateType string
	AggregateID   string
	// EventType chooses the route; required. For an INT column it is the decimal
	// number.
	EventType string
	// Payload becomes the message body, as it is; valid UTF-8.
	Payload []byte
	// Headers become application properties: strings, whole numbers, doubles and
	// booleans. nil writes NULL, unless ctx carries a span.
	Headers map[string]any
}

// Enqueue writes events into dbo.outbox_event in the caller's transaction, so
// that they exist exactly when its business data does. It looks at the table's
// columns first, a round trip; a Writer keeps them and needs one round trip for
// up to a thousand events. A Writer may live through a migration of the table:
// the statement that writes makes sure that the columns are still those that the
// events were checked against, and where they are not, they are read and the
// events checked again.
//
// Every event is checked before anything is written: what is too long for its
// column, or would not survive the column's collation, is refused, never cut or
// replaced. Any error, a refusal too, rolls tx back: a caller that overlooks it
// cannot commit the business data without its events. The traceparent of the
// span in ctx goes into the headers of events that have none.
//
// The login needs INSERT on the table and, where the id is not an IDENTITY
// column, UPDATE on the sequence.
func Enqueue(ctx context.Context, tx *sql.Tx, events ...OutboxEvent) error {
	return new(Writer).Enqueue(ctx, tx, events...)
}

// Writer writes events into one table and remembers that table's columns. It
// may be used by many transactions at once.
type Writer struct {
	names Names
	table atomic.Pointer[table]
}

// NewWriter makes a Writer; it does not touch the database.
func NewWriter(names Names) (*Writer, error) {
	if err := names.Validate(); err != nil {
		return nil, fmt.Errorf("sqlserver writer: %w", err)
	}
	return &Writer{names: names}, nil
}

// One request takes the ids and writes the events. Each value of the sequence
// stands for INCREMENT BY ids, so the events take as many whole blocks as they
// need; the increment is read here because ALTER SEQUENCE may change it, and
// writers of other languages count on the same blocks.
//
// XACT_ABORT: any error ends the transaction on the server, which the driver
// notices. The caller's own setting comes back when the request is over (sql-docs,
// set-statements-transact-sql.md, on sp_executesql).
//
// A conversion into a code page replaces what that does not have in silence, so
// the INSERT itself looks whether the columns are those that the events were
// checked against, and else writes nothing. No other statement could tell: this
// one holds its lock on the table from before it looks, which ALTER TABLE waits
// for, until the end of the transaction. FORCE ORDER has it look once, and first
// (sql-docs, hints-transact-sql-query.md).
const enqueueSQL = `SET XACT_ABORT ON;
DECLARE @increment BIGINT, @blocks BIGINT, @range SQL_VARIANT, @first BIGINT, @used SQL_VARIANT;

SELECT /* outbox:Enqueue */ @increment = CAST(s.increment AS BIGINT)
FROM   sys.sequences AS s
WHERE  s.object_id = OBJECT_ID(@sequence);

IF @increment IS NULL OR @increment < 1
    THROW 50000, N'outbox: the sequence of event ids is missing, does not ascend, or this login has no UPDATE right on it', 1;

SET @blocks = (@count + @increment - 1) / @increment;
EXEC sys.sp_sequence_get_range
     @sequence_name      = @sequence,
     @range_size         = @blocks,
     @range_first_value  = @range OUTPUT,
     @sequence_increment = @used OUTPUT;
SET @first = CAST(@range AS BIGINT);

IF CAST(@used AS BIGINT) <> @increment
    THROW 50000, N'outbox: the increment of the sequence has just changed', 1;

INSERT /* outbox:Enqueue */ INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers)
SELECT @first + e.n, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.headers
FROM   (SELECT COUNT(*) AS same
        FROM   sys.columns AS c
        WHERE  c.object_id = OBJECT_ID(@table)
        AND    ({text_columns_same})
        HAVING COUNT(*) = 5) AS look
CROSS JOIN OPENJSON(@events) WITH (
           n              BIGINT        '$.n',
           aggregate_type NVARCHAR(MAX) '$.a',
           aggregate_id   NVARCHAR(MAX) '$.i',
           event_type     NVARCHAR(MAX) '$.t',
           payload        NVARCHAR(MAX) '$.p',
           headers        NVARCHAR(MAX) '$.h') AS e
OPTION (FORCE ORDER, MAXDOP 1);

SET @written = @@ROWCOUNT;
IF @written NOT IN (0, @count)
    THROW 50000, N'outbox: not every event was written', 1;`

// The same for a table whose id is an IDENTITY column.
const enqueueIdentitySQL = `SET XACT_ABORT ON;
INSERT /* outbox:EnqueueIdentity */ INTO {events} (aggregate_type, aggregate_id, event_type, payload, headers)
SELECT e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.headers
FROM   (SELECT COUNT(*) AS same
        FROM   sys.columns AS c
        WHERE  c.object_id = OBJECT_ID(@table)
        AND    ({text_columns_same})
        HAVING COUNT(*) = 5) AS look
CROSS JOIN OPENJSON(@events) WITH (
           n              BIGINT        '$.n',
           aggregate_type NVARCHAR(MAX) '$.a',
           aggregate_id   NVARCHAR(MAX) '$.i',
           event_type     NVARCHAR(MAX) '$.t',
           payload        NVARCHAR(MAX) '$.p',
           headers        NVARCHAR(MAX) '$.h') AS e
ORDER BY e.n
OPTION (FORCE ORDER, MAXDOP 1);

SET @written = @@ROWCOUNT;
IF @written NOT IN (0, @count)
    THROW 50000, N'outbox: not every event was written', 1;`

const (
	// enqueueRows and enqueueBytes bound one statement: far from the 5,000 locks
	// at which SQL Server would want the whole table, and from keeping a large
	// text in the server's memory for long.
	enqueueRows  = 1000
	enqueueBytes = 4 << 20
	// enqueueTries bounds how often the columns are read again. One change takes
	// two tries; a table that changes under each is somebody's mistake.
	enqueueTries = 3
)

// Enqueue is the package's Enqueue on this Writer's table.
func (w *Writer) Enqueue(ctx context.Context, tx *sql.Tx, events ...OutboxEvent) error {
	if len(events) == 0 {
		return nil
	}
	err := w.enqueue(ctx, tx, events)
	if err != nil {
		// The server has done so where the error is its own; what is refused
		// here has not reached it. A rollback that fails leaves a dead connection.
		_ = tx.Rollback()
	}
	return err
}

func (w *Writer) enqueue(ctx context.Context, tx *sql.Tx, events []OutboxEvent) error {
	op := fmt.Sprintf("enqueue %s into %s", quantity.Of(len(events), "event"), w.names)
	t := w.table.Load()
	for try := 1; ; try++ {
		remembered := t != nil
		if !remembered {
			var err error
			if t, err = readTable(ctx, tx, w.names); err != nil {
				return Classify(op, err)
			}
			w.table.Store(t)
		}
		rows, doubtful, refused := prepare(ctx, t, events)
		err := refused
		if refused == nil {
			err = w.write(ctx, tx, t, rows, doubtful)
		}
		switch {
		case err == nil:
			return nil
		case remembered && refused != nil, errors.Is(err, errColumnChanged) && try < enqueueTries:
			t = nil // nothing is written yet
		case refused != nil:
			return fmt.Errorf("%s: %w", op, err)
		default:
			w.table.Store(nil) // it may have changed
			return Classify(op, err)
		}
	}
}

// write sends the rows in pieces. Where some have characters that only the
// server can judge, it is asked about all of them before the first is written.
// errColumnChanged means that nothing is written.
func (w *Writer) write(ctx context.Context, tx *sql.Tx, t *table, rows []newRow, doubtful bool) error {
	pieces := cut(rows)
	r := w.names.renderer(t)
	if doubtful {
		fits := r.Replace(fitsCollationSQL)
		for _, piece := range pieces {
			if err := checkFits(ctx, tx, fits, piece); err != nil {
				return err
			}
		}
	}
	text := r.Replace(enqueueSQL)
	if t.columns["id"].identity {
		text = r.Replace(enqueueIdentitySQL)
	}
	for i, piece := range pieces {
		written := int64(-1)
		args := []any{
			sql.Named("table", w.names.Events()),
			sql.Named("count", int64(len(piece))),
			sql.Named("events", rowsJSON(piece)),
			sql.Named("written", sql.Out{Dest: &written, In: true}),
		}
		if !t.columns["id"].identity {
			args = append(args, sql.Named("sequence", w.names.Sequence()))
		}
		_, err := tx.ExecContext(ctx, text, args...)
		switch {
		case err != nil:
			return err
		case written == int64(len(piece)):
		case written == 0 && i == 0:
			return errColumnChanged
		default: // the first piece's lock keeps the columns as they are
			return fmt.Errorf("%d of the %d events of part %d were written", written, len(piece), i+1)
		}
	}
	return nil
}

// newRow is one event as the statements read it. The keys are short because
// they are sent with every event.
type newRow struct {
	N             int     `json:"n"`
	AggregateType string  `json:"a"`
	AggregateID   string  `json:"i"`
	EventType     string  `json:"t"`
	Payload       string  `json:"p"`
	Headers       *string `json:"h,omitempty"`

	// at is the position in the caller's list.
	at int
}

// size is about what the row adds to the JSON.
func (r newRow) size() int {
	n := 64 + len(r.AggregateType) + len(r.AggregateID) + len(r.EventType) + len(r.Payload)
	if r.Headers != nil {
		n += len(*r.Headers)
	}
	return n
}

// cut makes pieces of bounded rows and bytes and numbers each from zero.
func cut(rows []newRow) [][]newRow {
	var pieces [][]newRow
	from, size := 0, 0
	for i := range rows {
		if i > from && (i-from == enqueueRows || size+rows[i].size() > enqueueBytes) {
			pieces = append(pieces, rows[from:i])
			from, size = i, 0
		}
		rows[i].N = i - from
		size += rows[i].size()
	}
	return append(pieces, rows[from:])
}

// rowsJSON is sent as VARCHAR: half the bytes of NVARCHAR, and what is not
// ASCII is escaped.
func rowsJSON(rows []newRow) mssql.VarCharMax {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rows); err != nil {
		panic("rows of strings always marshal: " + err.Error())
	}
	return mssql.VarCharMax(asciiJSON(b.String()))
}

// prepare turns the events into rows and checks every one. doubtful says that
// some hold characters which only the server can judge.
func prepare(ctx context.Context, t *table, events []OutboxEvent) (rows []newRow, doubtful bool, err error) {
	traceparent := traceparentOf(ctx)
	rows = make([]newRow, len(events))
	for i, e := range events {
		r := newRow{
			at: i, AggregateType: e.AggregateType, AggregateID: e.AggregateID,
			EventType: e.EventType, Payload: string(e.Payload),
		}
		if r.Headers, err = headersJSON(e.Headers, traceparent); err != nil {
			return nil, false, fmt.Errorf("event %d: headers: %w", i, err)
		}
		unsure, err := t.fits(r)
		if err != nil {
			return nil, false, fmt.Errorf("event %d: %w", i, err)
		}
		doubtful = doubtful || unsure
		rows[i] = r
	}
	return rows, doubtful, nil
}

const traceparentHeader = "traceparent"

// traceparentOf is the W3C header of the span in ctx; empty without one.
func traceparentOf(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
}

func headersJSON(headers map[string]any, traceparent string) (*string, error) {
	if _, has := headers[traceparentHeader]; traceparent != "" && !has {
		headers = maps.Clone(headers)
		if headers == nil {
			headers = make(map[string]any, 1)
		}
		headers[traceparentHeader] = traceparent
	}
	if headers == nil {
		return nil, nil
	}
	for name, value := range headers {
		text, _ := value.(string)
		if !utf8.ValidString(name) || !utf8.ValidString(text) {
			return nil, fmt.Errorf("%q is not valid UTF-8", name)
		}
		switch value.(type) {
		case nil, string, bool, int, int8, int16, int32, int64, uint8, uint16, uint32, float32, float64, json.Number:
		default:
			return nil, fmt.Errorf("%q is a %T: strings, numbers and booleans can become application properties", name, value)
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(headers); err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(b.String(), "\n")
	return &text, nil
}
