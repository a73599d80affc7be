package sqlserver

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

// What is overdue is listed first, outside a transaction: a healthy outbox has
// none, and this runs every few seconds on every worker. The receipts must be
// read before any is deleted, because one that this version cannot read has to
// stay. The table holds a row per batch in flight, so the scan is of a page or
// two. READPAST: where row versioning is off, the look would wait for every
// claim that is committing. @skip passes by what this Reap has seen and left:
// otherwise a hundred receipts that cannot be read would hide all others.
//
// Whether RetryDue has something to do comes with it, as one seek: a statement of
// its own every few seconds would be one in ten of an idle worker's.
const overdueClaimsSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();

SELECT /* outbox:OverdueClaims */ CONVERT(CHAR(36), r.claim_id) AS claim_id,
       r.owner,
       r.event_type,
       r.event_count,
       r.event_ids
FROM   {receipts} AS r WITH (READPAST, READCOMMITTEDLOCK)
WHERE  r.lease_until < @now
ORDER BY r.lease_until, r.claim_id
OFFSET @skip ROWS FETCH NEXT @limit ROWS ONLY;

SELECT /* outbox:OverdueClaims */ CASE WHEN EXISTS (SELECT 1
                         FROM   {events} AS e WITH (INDEX({retry_index}), FORCESEEK, READPAST, READCOMMITTEDLOCK)
                         WHERE  e.status = 2
                         AND    e.retry_at <= CAST(@now AS {retry_at_t})) THEN 1 ELSE 0 END AS retry_due;`

// One receipt and its events, at most reapLimit rows. Whoever deletes the
// receipt has the events; READPAST leaves one to the worker that is settling it
// this moment, or to another reaper, and READCOMMITTEDLOCK goes with it under
// row versioning. The fence is the receipt's own time, as in Settle.
//
// A reap spends an attempt: a batch that kills its worker must not do so for
// ever. The parked ones go first, and leave the fence of the second update.
//
// LOCK_TIMEOUT: a row that someone holds must not keep the other receipts
// waiting for the session's timeout each. The end of the request restores it.
const reapClaimSQL = `SET LOCK_TIMEOUT 500;
DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @fence DATETIME2(3);
DECLARE @deleted INT = 0, @parked INT = 0, @back INT = 0;

SELECT /* outbox:ReapClaim */ @fence = r.claimed_at
FROM   {receipts} AS r WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  r.claim_id = CAST(@claim_id AS UNIQUEIDENTIFIER)
AND    r.lease_until < @now;

IF @fence IS NOT NULL
BEGIN
    DELETE /* outbox:ReapClaim */ FROM {receipts} WITH (ROWLOCK)
    WHERE  claim_id = CAST(@claim_id AS UNIQUEIDENTIFIER);
    SET @deleted = @@ROWCOUNT;

    SELECT /* outbox:ReapClaim */ c.id
    FROM   OPENJSON(@ids) WITH (id {id_t} '$') AS c
    WHERE  NOT EXISTS (SELECT 1
                       FROM   {events} AS e WITH (FORCESEEK)
                       WHERE  e.id = c.id
                       AND    e.status = 1
                       AND    e.processed_at = @fence)
    OPTION (MAXDOP 1);

    UPDATE /* outbox:ReapClaim */ e
    SET    status = 2,
           processed_at = NULL,
           retry_at = NULL,
           retry_count = {retry_count_next},
           last_error = 'the lease ran out in its last attempt'
    FROM   OPENJSON(@ids) WITH (id {id_t} '$') AS c
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = c.id
    WHERE  e.status = 1
    AND    e.processed_at = @fence
    AND    e.retry_count >= @max_attempts - 1
    OPTION (MAXDOP 1);
    SET @parked = @@ROWCOUNT;

    UPDATE /* outbox:ReapClaim */ e
    SET    status = 0,
           processed_at = NULL,
           retry_count = {retry_count_next}
    FROM   OPENJSON(@ids) WITH (id {id_t} '$') AS c
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = c.id
    WHERE  e.status = 1
    AND    e.processed_at = @fence
    OPTION (MAXDOP 1);
    SET @back = @@ROWCOUNT;
END;

SELECT /* outbox:ReapClaim */ @deleted AS deleted, @back AS returned, @parked AS parked;`

// overdue is one receipt whose lease is over.
type overdue struct {
	id        uuid.UUID
	owner     string
	eventType string
	eventIDs  []int64
	// rawIDs is what the row holds, sent back as it came.
	rawIDs string
}

// reapLimit is the most events of one receipt: what another version may have
// claimed at once, and still below the 5,000 row locks of lock escalation.
const reapLimit = 4000

// overdueLimit is how many receipts one look takes: more than a dead worker
// leaves behind.
const overdueLimit = 100

// Reap implements worker.Keeper. A receipt that cannot be reaped, because someone
// holds one of its rows, does not keep the others from it; the first such error
// is returned when all have had their turn.
func (s *Store) Reap(ctx context.Context) (worker.Reaped, error) {
	var sum worker.Reaped
	var failed error
	for skip := 0; ; {
		list, unreadable, due, err := s.listOverdue(ctx, skip)
		if err != nil {
			return sum, errors.Join(failed, err)
		}
		sum.RetryDue = due
		sum.Unreadable += unreadable
		before := sum.Receipts
		for _, o := range list {
			if ctx.Err() != nil {
				return sum, errors.Join(failed, context.Cause(ctx))
			}
			if err := s.reapOne(ctx, o, &sum); err != nil && failed == nil {
				failed = err
			}
		}
		seen := len(list) + unreadable
		if seen < overdueLimit {
			return sum, failed
		}
		skip += seen - (sum.Receipts - before)
	}
}

func (s *Store) listOverdue(ctx context.Context, skip int) (list []overdue, unreadable int, retryDue bool, err error) {
	err = s.retrying(ctx, fmt.Sprintf("look for overdue claims of %s", s.names), func(ctx context.Context) error {
		list, unreadable = nil, 0
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			rows, err := conn.QueryContext(ctx, st.overdueClaims, sql.Named("skip", skip), sql.Named("limit", overdueLimit))
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var o overdue
				var id string
				var count int
				if err := rows.Scan(&id, &o.owner, &o.eventType, &count, &o.rawIDs); err != nil {
					return err
				}
				if err := o.parse(id, count); err != nil {
					unreadable++
					s.warnUnreadable(id, o.owner, err)
					continue
				}
				list = append(list, o)
			}
			if !rows.NextResultSet() || !rows.Next() {
				return errors.Join(errNoMarker, rows.Err())
			}
			if err := rows.Scan(&retryDue); err != nil {
				return err
			}
			return drain(rows)
		})
	})
	return list, unreadable, retryDue, err
}

// warnUnreadable says it once a receipt: the look is taken every few seconds.
func (s *Store) warnUnreadable(id, owner string, err error) {
	if _, said := s.unreadable.LoadOrStore(id, true); said {
		return
	}
	s.log.Warn("a receipt cannot be read and stays; another version may have written it",
		zap.String("claim", id), zap.String("owner", owner), zap.Error(err))
}

// parse reads what this version writes, and nothing else.
func (o *overdue) parse(id string, count int) error {
	var err error
	if o.id, err = uuid.Parse(id); err != nil {
		return err
	}
	var ids []*int64
	if err := json.Unmarshal([]byte(o.rawIDs), &ids); err != nil {
		return fmt.Errorf("event_ids: %w", err)
	}
	for _, id := range ids {
		if id == nil {
			return errors.New("event_ids holds null")
		}
		o.eventIDs = append(o.eventIDs, *id)
	}
	if !strings.HasPrefix(strings.TrimSpace(o.rawIDs), "[") {
		return errors.New("event_ids is no JSON array") // OPENJSON takes no other
	}
	if len(o.eventIDs) != count {
		return fmt.Errorf("event_ids holds %s, event_count says %d", quantity.Of(len(o.eventIDs), "id"), count)
	}
	if count > reapLimit {
		return fmt.Errorf("%d events are more than one transaction may take", count)
	}
	return nil
}

func (s *Store) reapOne(ctx context.Context, o overdue, sum *worker.Reaped) error {
	var (
		missing                   []int64
		deleted, returned, parked int
	)
	// One try: whoever holds a row of it will be gone at a later look.
	err := s.transact(ctx, func(ctx context.Context, tx *sql.Tx, st *statements) error {
		rows, err := tx.QueryContext(ctx, st.reapClaim,
			sql.Named("claim_id", textParam(o.id.String())),
			sql.Named("ids", textParam(o.rawIDs)),
			sql.Named("max_attempts", s.cfg.MaxAttempts))
		if err != nil {
			return err
		}
		defer rows.Close()
		missing, err = readReaped(rows, &deleted, &returned, &parked)
		if err != nil {
			return err
		}
		if deleted == 0 {
			return errNothingToCommit
		}
		return nil
	})
	if errors.Is(err, errNothingToCommit) {
		return nil // its worker settled it, or another one reaped it
	}
	if err != nil {
		return Classify(fmt.Sprintf("reap the claim %s of %s", o.id, s.names), err)
	}
	sum.Receipts++
	sum.Returned += returned
	sum.Parked += parked
	sum.Missing = append(sum.Missing, missing...)
	s.log.Warn("reaped a claim whose lease was over: its events may be sent again",
		zap.Stringer("claim", o.id), zap.String("owner", o.owner), zap.String("event_type", o.eventType),
		zap.Int("returned", returned), zap.Int("parked", parked),
		zap.Int("missing", len(missing)), zap.Int64s("missing_ids", missing[:min(len(missing), 20)]))
	return nil
}

// readReaped reads the ids that are missing, where the receipt was there, and
// the marker row.
func readReaped(rows *sql.Rows, deleted, returned, parked *int) (missing []int64, err error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	if len(columns) == 1 {
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return nil, err
			}
			missing = append(missing, id)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
		if !rows.NextResultSet() {
			return nil, errors.Join(errNoMarker, rows.Err())
		}
	}
	if !rows.Next() {
		return nil, errors.Join(errNoMarker, rows.Err())
	}
	if err := rows.Scan(deleted, returned, parked); err != nil {
		return nil, err
	}
	return missing, drain(rows)
}
