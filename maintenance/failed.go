package maintenance

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// FailedFilter says which FAILED events are meant. Its zero value means all.
type FailedFilter struct {
	IDs       []int64
	EventType string
	// OlderThan is the least age by created_at, in seconds, rounded up.
	OlderThan time.Duration
	// Error is a part of last_error, compared by the column's collation.
	Error string
	// Parked leaves out those that wait for their retry_at, Waiting the others.
	Parked, Waiting bool
}

// Validate names the field that cannot be.
func (f FailedFilter) Validate() error {
	switch {
	case f.OlderThan != 0 && (f.OlderThan < time.Second || f.OlderThan > longestAge):
		return fmt.Errorf("field OlderThan is %s, may be 1s to %s; leave it out for any age", f.OlderThan, longestAge)
	case f.Parked && f.Waiting:
		return errors.New("fields Parked and Waiting exclude each other")
	case len(f.IDs) > maxFailedIDs:
		return fmt.Errorf("field IDs has %d ids, at most %d may be named", len(f.IDs), maxFailedIDs)
	}
	return nil
}

const (
	// maxFailedIDs keeps the text of one parameter short.
	maxFailedIDs = 10_000
	// longestAge is what DATEADD can take away in seconds.
	longestAge = math.MaxInt32 * time.Second
	// failedBatch is far below lock escalation, and small enough that a worker
	// which brings back due events at the same time waits for nothing.
	failedBatch = 200
)

// failedFilter is joined into the statements below: it holds no value, only
// parameters, and names columns of e. ESCAPE: what a person typed is no pattern.
const failedFilter = `e.status = 2
AND    (@ids IS NULL OR e.id IN (SELECT j.id FROM OPENJSON(@ids) WITH (id BIGINT '$') AS j))
AND    (@event_type IS NULL OR CAST(e.event_type AS NVARCHAR(4000)) = @event_type)
AND    (@older_s = 0 OR e.created_at < DATEADD(SECOND, -@older_s, SYSUTCDATETIME()))
AND    (@error IS NULL OR CAST(e.last_error AS NVARCHAR(4000)) LIKE N'%' + @error + N'%' ESCAPE N'\')
AND    (@parked = 0 OR e.retry_at IS NULL)
AND    (@waiting = 0 OR e.retry_at IS NOT NULL)`

func (f FailedFilter) args() []any {
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
	ids := sql.NullString{}
	if len(f.IDs) > 0 {
		b, _ := json.Marshal(f.IDs) // numbers always marshal
		ids = sql.NullString{String: string(b), Valid: true}
	}
	return []any{
		sql.Named("ids", ids),
		sql.Named("event_type", text(f.EventType)),
		sql.Named("older_s", int64((f.OlderThan+time.Second-1)/time.Second)),
		sql.Named("error", text(strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `[`, `\[`).Replace(f.Error))),
		sql.Named("parked", f.Parked),
		sql.Named("waiting", f.Waiting),
	}
}

// The retry index holds the FAILED rows alone, so whatever the filter, no more
// is read than what failed. RECOMPILE: the parts of the filter that are off are
// folded away. Text as NVARCHAR: the driver knows no UTF-8 collations. ISNULL,
// and a created_at that may be NULL: a table that was there before may have what a
// worker parks or cannot read, and a person must still see it.
const listFailedSQL = `SELECT /* outbox:ListFailed */ TOP (@limit) e.id, ISNULL(CAST(e.event_type AS NVARCHAR(4000)), N'') AS event_type,
       ISNULL(CAST(e.aggregate_type AS NVARCHAR(4000)), N'') AS aggregate_type, ISNULL(CAST(e.aggregate_id AS NVARCHAR(4000)), N'') AS aggregate_id,
       e.created_at, e.retry_at, ISNULL(e.retry_count, 0) AS retry_count, ISNULL(CAST(e.last_error AS NVARCHAR(4000)), N'') AS last_error,
       ISNULL(DATALENGTH(e.payload), 0) AS payload_bytes
FROM   {events} AS e WITH (INDEX({retry_index}))
WHERE  {failed_filter}
ORDER BY e.retry_at, e.id
OPTION (RECOMPILE, MAXDOP 1);`

// FailedEvent is one FAILED row.
type FailedEvent struct {
	ID            int64  `json:"id,string"`
	EventType     string `json:"event_type"`
	AggregateType string `json:"aggregate_type"`
	AggregateID   string `json:"aggregate_id"`
	// CreatedAt is nil where the table lets it be NULL and nobody said it.
	CreatedAt *time.Time `json:"created_at"`
	// RetryAt is when it comes back by itself; nil for a parked one.
	RetryAt      *time.Time `json:"retry_at"`
	Attempts     int        `json:"attempts"`
	Error        string     `json:"error"`
	PayloadBytes int64      `json:"payload_bytes"`
}

// ListFailed returns up to limit FAILED events, the parked ones first.
func ListFailed(ctx context.Context, t Target, f FailedFilter, limit int) ([]FailedEvent, error) {
	if err := errors.Join(t.Validate(), f.Validate()); err != nil {
		return nil, err
	}
	t = t.withDefaults()
	c := t.connectToRead()
	defer c.close()
	list := []FailedEvent{}
	err := c.do(ctx, "list the failed events of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		list = list[:0]
		rows, err := conn.QueryContext(ctx, t.failedStatement(listFailedSQL), append(f.args(), sql.Named("limit", limit))...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e FailedEvent
			if err := rows.Scan(&e.ID, &e.EventType, &e.AggregateType, &e.AggregateID, &e.CreatedAt, &e.RetryAt, &e.Attempts, &e.Error, &e.PayloadBytes); err != nil {
				return err
			}
			list = append(list, e)
		}
		return rows.Err()
	})
	return list, err
}

func (t Target) failedStatement(text string) string {
	return t.Replacer().Replace(strings.ReplaceAll(text, "{failed_filter}", failedFilter))
}

// As NVARCHAR, which says the same characters whatever the column is.
const showFailedSQL = `SELECT /* outbox:ShowFailed */ ISNULL(CAST(e.event_type AS NVARCHAR(4000)), N'') AS event_type,
       ISNULL(CAST(e.aggregate_type AS NVARCHAR(4000)), N'') AS aggregate_type, ISNULL(CAST(e.aggregate_id AS NVARCHAR(4000)), N'') AS aggregate_id,
       e.created_at, e.retry_at, ISNULL(e.retry_count, 0) AS retry_count, ISNULL(CAST(e.last_error AS NVARCHAR(4000)), N'') AS last_error,
       ISNULL(DATALENGTH(e.payload), 0) AS payload_bytes,
       CAST(e.payload AS NVARCHAR(MAX)) AS payload,
       CAST(e.headers AS NVARCHAR(MAX)) AS headers
FROM   {events} AS e
WHERE  e.id = @id
AND    e.status = 2;`

// FailedDetail is one FAILED row with all that it holds.
type FailedDetail struct {
	FailedEvent
	Payload string  `json:"payload"`
	Headers *string `json:"headers"`
}

// ErrNotFailed is returned for an id that is no FAILED event.
var ErrNotFailed = errors.New("there is no failed event with this id")

// ShowFailed returns one FAILED event.
func ShowFailed(ctx context.Context, t Target, id int64) (FailedDetail, error) {
	d := FailedDetail{FailedEvent: FailedEvent{ID: id}}
	if err := t.Validate(); err != nil {
		return d, err
	}
	t = t.withDefaults()
	c := t.connectToRead()
	defer c.close()
	found := true
	err := c.do(ctx, fmt.Sprintf("show the event %d of %s", id, t.Names), func(ctx context.Context, conn *sql.Conn) error {
		var payload sql.NullString
		err := conn.QueryRowContext(ctx, t.Replacer().Replace(showFailedSQL), sql.Named("id", id)).
			Scan(&d.EventType, &d.AggregateType, &d.AggregateID, &d.CreatedAt, &d.RetryAt, &d.Attempts, &d.Error, &d.PayloadBytes, &payload, &d.Headers)
		d.Payload = payload.String
		if errors.Is(err, sql.ErrNoRows) {
			found = false
			return nil
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("event %d of %s: %w", id, t.Names, ErrNotFailed)
	}
	return d, err
}
