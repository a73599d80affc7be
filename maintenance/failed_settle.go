package maintenance

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/golang-sql/civil"
)

// SettleFailed ends the waiting of FAILED events: it gives them back to the
// workers, or discards them. It goes on in small batches with a pause, until none
// is left that the filter means and that was FAILED when it began.
type SettleFailed struct {
	Target
	Filter FailedFilter
	// Discard makes the rows PROCESSED, with the reason and who in last_error; the
	// purge takes them in its time. Else they become PENDING with no attempt
	// spent.
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
	matching := fmt.Sprint(r.Matching)
	if r.Matching >= FailedCountCap {
		matching += "+"
	}
	if !r.Executed {
		_, err := fmt.Fprintf(w, "%s failed events match; %s would take them. Nothing was changed: add --execute.\n", matching, r.Action)
		return err
	}
	done := map[string]string{"retry": "are PENDING again", "discard": "are discarded"}[r.Action]
	_, err := fmt.Fprintf(w, "%d of %s failed events %s, in %.1f s", r.Settled, matching, done, r.Seconds)
	if err == nil && r.Stopped != "" {
		_, err = fmt.Fprintf(w, " (stopped: %s)", r.Stopped)
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

const countFailedSQL = `-- outbox:CountFailed
SELECT COUNT(*) AS matching
FROM   (SELECT TOP (@cap) e.id
        FROM   {events} AS e WITH (INDEX({retry_index}))
        WHERE  {failed_filter}) AS capped
OPTION (RECOMPILE, MAXDOP 1);`

// The retry index first, then the row: whoever locks in the other order, as a
// claim does with its own index, could deadlock with this one, and the session's
// low priority makes this one the victim. READPAST passes by what a worker is
// bringing back. {failed_above} is the keyset on the index, so that a filter
// which matches few does not read all others again for every batch.
const takeFailedSQL = `-- outbox:TakeFailed
DECLARE @taken TABLE (id BIGINT NOT NULL PRIMARY KEY, retry_at DATETIME2(7) NULL);
DECLARE @count INT;

INSERT INTO @taken (id, retry_at)
SELECT TOP (@batch) e.id, e.retry_at
FROM   {events} AS e WITH (INDEX({retry_index}), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  {failed_filter}
AND    {failed_above}
ORDER BY e.retry_at, e.id
OPTION (RECOMPILE, MAXDOP 1);
SET @count = @@ROWCOUNT;

IF @discard = 1
    UPDATE e
    SET    status = 1,
           processed_at = SYSUTCDATETIME(),
           retry_at = NULL,
           last_error = LEFT(@reason, 400)
    FROM   @taken AS t
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = t.id
    WHERE  e.status = 2
    OPTION (MAXDOP 1);
ELSE
    UPDATE e
    SET    status = 0,
           processed_at = NULL,
           retry_at = NULL,
           retry_count = 0
    FROM   @taken AS t
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = t.id
    WHERE  e.status = 2
    OPTION (MAXDOP 1);

SELECT TOP (1) @count AS taken, t.id AS last_id, t.retry_at AS last_retry_at
FROM   @taken AS t
ORDER BY t.retry_at DESC, t.id DESC;`

// The two halves of the index: parked events first, as NULL sorts, then those
// that wait, in the order in which they would come back.
const (
	aboveParked  = "e.retry_at IS NULL AND e.id > @after"
	aboveWaiting = "e.retry_at >= @after_at AND (e.retry_at > @after_at OR e.id > @after)"
)

// failedKey is a position in the retry index.
type failedKey struct {
	waiting bool
	at      time.Time
	id      int64
}

// Plan counts what the filter means.
func (s SettleFailed) Plan(ctx context.Context) (SettledFailed, error) {
	r := SettledFailed{Action: "retry"}
	if s.Discard {
		r.Action = "discard"
	}
	if err := s.Validate(); err != nil {
		return r, err
	}
	t := s.Target.withDefaults()
	c := t.connect("")
	defer c.close()
	err := c.do(ctx, "count the failed events of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, t.failedStatement(countFailedSQL), append(s.Filter.args(), sql.Named("cap", FailedCountCap))...).Scan(&r.Matching)
	})
	return r, err
}

// Run settles. When ctx ends it stops between two batches; what was settled
// stays so.
func (s SettleFailed) Run(ctx context.Context) (SettledFailed, error) {
	r, err := s.Plan(ctx)
	if err != nil {
		return r, err
	}
	r.Executed = true
	t := s.Target.withDefaults()
	c := t.connect("")
	defer c.close()
	begun := time.Now()
	defer func() { r.Seconds = time.Since(begun).Seconds() }()
	after := failedKey{id: math.MinInt64}
	for {
		batch := failedBatch
		if s.Limit > 0 {
			batch = min(batch, s.Limit-r.Settled)
		}
		if batch == 0 {
			r.Stopped = "limit"
			return r, nil
		}
		taken, err := s.takeBatch(ctx, t, c, batch, &after)
		if ctx.Err() != nil {
			r.Stopped = "interrupted"
			return r, nil
		}
		if err != nil {
			return r, err
		}
		r.Settled += taken
		t.Progress(Progress{Stage: r.Action, Done: int64(r.Settled), Total: int64(r.Matching), Unit: "events"})
		if taken < batch {
			if after.waiting || s.Filter.Parked {
				return r, nil
			}
			after = failedKey{waiting: true, id: math.MinInt64, at: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)}
		}
		pause := time.Duration(0)
		if !s.Discard {
			pause = time.Duration(float64(taken) / cmp.Or(s.PerSecond, defaultRetryRate) * float64(time.Second))
		}
		if !sleep(ctx, pause) {
			r.Stopped = "interrupted"
			return r, nil
		}
	}
}

// takeBatch settles one batch above the key and moves the key.
func (s SettleFailed) takeBatch(ctx context.Context, t Target, c *connection, batch int, after *failedKey) (taken int, err error) {
	above := aboveParked
	if after.waiting {
		above = aboveWaiting
	}
	text := strings.ReplaceAll(t.failedStatement(takeFailedSQL), "{failed_above}", above)
	args := append(s.Filter.args(),
		sql.Named("batch", batch), sql.Named("after", after.id), sql.Named("after_at", civil.DateTimeOf(after.at)),
		sql.Named("discard", s.Discard), sql.Named("reason", ascii(fmt.Sprintf("discarded by %s: %s", s.By, s.Reason))))
	next := *after
	err = c.do(ctx, "settle failed events of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		taken, next = 0, *after
		// One transaction: with the rows locked nobody brings them back in between.
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		var at sql.NullTime
		err = tx.QueryRowContext(ctx, text, args...).Scan(&taken, &next.id, &at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return errors.Join(err, tx.Rollback())
		}
		if at.Valid {
			next.at = at.Time
		}
		return tx.Commit()
	})
	*after = next
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
