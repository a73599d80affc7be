package maintenance

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/golang-sql/civil"

	"azsqloutbox/internal/quantity"
)

// SettleFailed ends the waiting of FAILED events: it gives them back to the
// workers, or discards them. It lists those that the filter means when it begins
// (about 50 bytes of memory each) and takes them in small batches with a pause.
// Each is taken once: one that fails again meanwhile spends its attempts as any
// other does.
type SettleFailed struct {
	Target
	Filter FailedFilter
	// Discard makes the rows PROCESSED, with who and the reason in last_error
	// before the error that was there; the purge takes them in its time. Else they
	// become PENDING with no attempt spent.
	Discard    bool
	Reason, By string
	// Limit bounds how many are settled; 0 is no bound.
	Limit int
	// PerSecond paces a retry; default 200 events/s, so that what was parked in an
	// outage does not come back as a flood.
	PerSecond float64
}

const defaultRetryRate = 200

// Validate names the field that cannot be.
func (s SettleFailed) Validate() error {
	switch {
	case s.Discard && strings.TrimSpace(s.Reason) == "":
		return errors.New("field Reason is empty: a discarded event is never sent, so someone will ask why")
	case s.Discard && s.By == "":
		return errors.New("field By is empty: who discards?")
	case s.Limit < 0:
		return fmt.Errorf("field Limit is %d, must not be negative", s.Limit)
	case s.PerSecond < 0:
		return fmt.Errorf("field PerSecond is %g, must not be negative", s.PerSecond)
	}
	return errors.Join(s.Target.Validate(), s.Filter.Validate())
}

// SettledFailed is what was done, or what would be.
type SettledFailed struct {
	Executed bool   `json:"executed"`
	Action   string `json:"action"` // retry or discard
	// Reason is what a discard writes into last_error, before the error that is
	// there; empty for a retry.
	Reason string `json:"reason"`
	// Matching is how many events the filter means, counted up to
	// FailedCountCap.
	Matching int `json:"matching"`
	// Settled were given back or discarded. Stopped is "limit" or "interrupted"
	// where some may be left, else empty.
	Settled int     `json:"settled"`
	Seconds float64 `json:"seconds"`
	Stopped string  `json:"stopped"`
}

// FailedCountCap is where counting stops.
const FailedCountCap = 100_000

// Text prints the result for a person.
func (r SettledFailed) Text(w io.Writer) error {
	matching := quantity.Of(r.Matching, "failed event")
	if r.Matching >= FailedCountCap {
		matching = fmt.Sprintf("%d+ failed events", FailedCountCap)
	}
	if r.Reason != "" {
		if _, err := fmt.Fprintf(w, "last_error: %s%s<the error before>\n", Printable(r.Reason), errorWas); err != nil {
			return err
		}
	}
	if !r.Executed {
		_, err := fmt.Fprintf(w, "The filter means %s. Nothing was changed: add --execute to %s.\n", matching, r.Action)
		return err
	}
	done := map[string]string{"retry": "PENDING again", "discard": "discarded"}[r.Action]
	_, err := fmt.Fprintf(w, "%d of %s %s, in %.1f s", r.Settled, matching, done, r.Seconds)
	if err == nil && r.Stopped != "" {
		_, err = fmt.Fprintf(w, " (stopped: %s)", r.Stopped)
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

const countFailedSQL = `SELECT /* outbox:CountFailed */ COUNT(*) AS matching
FROM   (SELECT TOP (@cap) e.id
        FROM   {events} AS e WITH (INDEX({retry_index}))
        WHERE  {failed_filter}) AS capped
OPTION (RECOMPILE, MAXDOP 1);`

const listSettledSQL = `SELECT /* outbox:ListFailedToSettle */ TOP (@limit) e.id, e.retry_at
FROM   {events} AS e WITH (INDEX({retry_index}))
WHERE  {failed_filter}
ORDER BY e.retry_at, e.id
OPTION (RECOMPILE, MAXDOP 1);`

// The retry index first, then the row: whoever locks in the other order, as a
// claim does with its own index, could deadlock with this one, and the session's
// low priority makes this one the victim. READPAST passes by what a worker is
// bringing back. {failed_between} is the part of the index where the events of
// @batch were, so that not all others are read again for every batch. The filter
// is asked once more, for what has changed since they were listed.
//
// last_error gets what fits: more than that would be error 2628. @left is what the
// reason, which is ASCII, leaves of it in characters of @unit bytes. A worker's
// error is ASCII too; where an application has written other characters, a quarter
// fits whatever the collation. The cast: two texts below MAX are cut at 8,000 bytes
// when they are joined (sql-docs, string-concatenation-transact-sql.md).
const takeFailedSQL = `DECLARE @taken TABLE (id BIGINT NOT NULL PRIMARY KEY);
DECLARE @count INT;
DECLARE @keep INT = @left - LEN(@cut);

INSERT /* outbox:TakeFailed */ INTO @taken (id)
SELECT e.id
FROM   {events} AS e WITH (INDEX({retry_index}), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  {failed_filter}
AND    {failed_between}
AND    e.id IN (SELECT b.id FROM OPENJSON(@batch) WITH (id BIGINT '$') AS b)
OPTION (RECOMPILE, MAXDOP 1);
SET @count = @@ROWCOUNT;

IF @discard = 1
    UPDATE /* outbox:TakeFailed */ e
    SET    status = 1,
           processed_at = SYSUTCDATETIME(),
           retry_at = NULL,
           last_error = CAST(@reason AS NVARCHAR(MAX))
                      + CASE WHEN e.last_error <> '' THEN @was ELSE '' END
                      + CASE WHEN e.last_error IS NULL THEN ''
                             WHEN DATALENGTH(RTRIM(e.last_error)) <= @unit * @left THEN RTRIM(e.last_error)
                             WHEN DATALENGTH(RTRIM(e.last_error)) = @unit * LEN(e.last_error) THEN LEFT(e.last_error, @keep) + @cut
                             ELSE LEFT(e.last_error, @keep / 4) + @cut
                        END
    FROM   @taken AS t
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = t.id
    WHERE  e.status = 2
    OPTION (MAXDOP 1);
ELSE
    UPDATE /* outbox:TakeFailed */ e
    SET    status = 0,
           processed_at = NULL,
           retry_at = NULL,
           retry_count = 0
    FROM   @taken AS t
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = t.id
    WHERE  e.status = 2
    OPTION (MAXDOP 1);

SELECT /* outbox:TakeFailed */ @count AS taken;`

// The two halves of the index: parked events first, as NULL sorts, then those
// that wait, in the order in which they would come back.
const (
	betweenParked  = "e.retry_at IS NULL AND e.id >= @first AND e.id <= @last"
	betweenWaiting = "e.retry_at >= @first_at AND e.retry_at <= @last_at"
)

// failedKey is a position in the retry index; at is not valid for a parked event.
type failedKey struct {
	id int64
	at sql.NullTime
}

// Plan counts what the filter means. Its error wraps ErrSetting where last_error
// is too narrow for the reason.
func (s SettleFailed) Plan(ctx context.Context) (SettledFailed, error) {
	r, _, err := s.plan(ctx)
	return r, err
}

func (s SettleFailed) plan(ctx context.Context) (r SettledFailed, column lastError, err error) {
	r = SettledFailed{Action: "retry", Reason: s.reason()}
	if s.Discard {
		r.Action = "discard"
	}
	if err := s.Validate(); err != nil {
		return r, column, err
	}
	t := s.Target.withDefaults()
	c := t.connectToRead()
	defer c.close()
	err = c.do(ctx, "count the failed events of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		err := conn.QueryRowContext(ctx, t.failedStatement(countFailedSQL), append(s.Filter.args(), sql.Named("cap", FailedCountCap))...).Scan(&r.Matching)
		if err != nil {
			return err
		}
		column, err = readLastError(ctx, t, conn)
		return err
	})
	if err == nil && s.Discard {
		err = column.fits(r.Reason, s.By)
	}
	return r, column, err
}

// Run settles. When ctx ends it stops between two batches; what was settled
// stays so.
func (s SettleFailed) Run(ctx context.Context) (r SettledFailed, err error) {
	begun := time.Now()
	r, column, err := s.plan(ctx)
	if err != nil {
		return r, err
	}
	r.Executed = true
	defer func() { r.Seconds = time.Since(begun).Seconds() }()
	t := s.Target.withDefaults()
	c := t.connect("")
	defer c.close()
	left, err := s.list(ctx, t, c)
	if s.Limit > 0 && len(left) == s.Limit {
		r.Stopped = "limit"
	}
	most := s.most()
	for err == nil && len(left) > 0 {
		batch := nextBatch(left, most)
		left = left[len(batch):]
		var taken int
		taken, err = s.takeBatch(ctx, t, c, batch, column)
		if err != nil {
			break
		}
		r.Settled += taken
		t.Progress(Progress{Stage: r.Action, Done: int64(r.Settled), Total: int64(r.Matching), Unit: "events"})
		pause := time.Duration(0)
		if !s.Discard {
			pause = time.Duration(float64(taken) / s.rate() * float64(time.Second))
		}
		if len(left) > 0 && !sleep(ctx, pause) {
			break
		}
	}
	if ctx.Err() != nil && (err != nil || len(left) > 0) {
		r.Stopped = "interrupted"
		return r, nil
	}
	return r, err
}

// list reads what the filter means now, in the order of the retry index.
func (s SettleFailed) list(ctx context.Context, t Target, c *connection) (keys []failedKey, err error) {
	limit := int64(math.MaxInt64)
	if s.Limit > 0 {
		limit = int64(s.Limit)
	}
	err = c.do(ctx, "list the failed events of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		keys = nil
		rows, err := conn.QueryContext(ctx, t.failedStatement(listSettledSQL), append(s.Filter.args(), sql.Named("limit", limit))...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var k failedKey
			if err := rows.Scan(&k.id, &k.at); err != nil {
				return err
			}
			keys = append(keys, k)
		}
		return rows.Err()
	})
	return keys, err
}

// rate is that of a retry, in events a second.
func (s SettleFailed) rate() float64 { return cmp.Or(s.PerSecond, defaultRetryRate) }

// most is how many events one statement takes. A retry comes back by what a second
// has room for, and at least one by one: a larger batch would be the flood that the
// rate is there against.
func (s SettleFailed) most() int {
	if s.Discard {
		return failedBatch
	}
	return int(max(1, min(s.rate(), failedBatch)))
}

// nextBatch is the beginning of keys that one statement takes, at most so many and
// never of both halves of the index.
func nextBatch(keys []failedKey, most int) []failedKey {
	n := min(len(keys), most)
	for i, k := range keys[:n] {
		if k.at.Valid != keys[0].at.Valid {
			return keys[:i]
		}
	}
	return keys[:n]
}

// takeBatch settles those of the batch that still are as the filter means.
func (s SettleFailed) takeBatch(ctx context.Context, t Target, c *connection, batch []failedKey, column lastError) (taken int, err error) {
	ids := make([]int64, len(batch))
	for i, k := range batch {
		ids[i] = k.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return 0, err
	}
	first, last, between := batch[0], batch[len(batch)-1], betweenParked
	if first.at.Valid {
		between = betweenWaiting
	}
	text := strings.ReplaceAll(t.failedStatement(takeFailedSQL), "{failed_between}", between)
	args := append(s.Filter.args(),
		sql.Named("batch", string(list)),
		sql.Named("first", first.id), sql.Named("last", last.id),
		sql.Named("first_at", civil.DateTimeOf(first.at.Time)), sql.Named("last_at", civil.DateTimeOf(last.at.Time)),
		sql.Named("discard", s.Discard), sql.Named("reason", s.reason()), sql.Named("was", errorWas), sql.Named("cut", errorCut),
		sql.Named("left", column.left(s.reason())), sql.Named("unit", column.unit))
	err = c.do(ctx, "settle failed events of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		// One transaction: with the rows locked nobody brings them back in between.
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		var now int
		if err := tx.QueryRowContext(ctx, text, args...).Scan(&now); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		// Where the answer to a commit is lost, the next try finds the events settled
		// and takes nothing more: what the first one took is what counts.
		taken = max(taken, now)
		return tx.Commit()
	})
	return taken, err
}

// ascii keeps last_error what its column promises.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
