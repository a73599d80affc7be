package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

// MaxBatch is the most rows one claim may take. SQL Server tries to escalate
// to a table lock from 5,000 locks of one statement on (sql-docs,
// sql-server-transaction-locking-and-row-versioning-guide.md), and a table lock
// is what READPAST cannot skip. Each row may bring the intent lock of a page of
// its own along, so half of that is what is safe.
const MaxBatch = worker.MaxBatch

// The claim reads, locks and skips; it does not write. An UPDATE … OUTPUT that
// did all at once would read and write status in one index, pay a spool for
// Halloween protection, and lose its row goal to READPAST.
//
//   - INDEX: a missing or unmatched index is error 308 or 8622, never a scan of
//     the table.
//   - FORCESEEK: never a scan of the index, when its statistics say that it is
//     small (hints-transact-sql-table.md allows both on one table).
//   - UPDLOCK: what is read stays ours until the commit.
//   - ROWLOCK: READPAST skips row locks, not page locks.
//   - READPAST: what another claim holds is skipped, not waited for.
//   - READCOMMITTEDLOCK: READPAST needs it where READ_COMMITTED_SNAPSHOT is on
//     (sql-docs, hints-transact-sql-table.md), as it is on Azure SQL.
//   - MAXDOP 1: the threads of a parallel plan read ahead of TOP, and would lock
//     rows that this claim does not return and others then skip.
//
// @from is inclusive, so that one text, and one plan, serves the first round of
// a cycle too, which has no lower bound; the casts keep both comparisons in the
// column's type, which a seek needs. DATALENGTH keeps an oversize event's payload
// and headers in the database. status is not in the list: a covering index has no
// room for what its filter says.
//
// withheld_bytes is 0 where the payload comes along: every larger number costs the
// driver an allocation.
const claimEventsSQL = `SELECT /* outbox:ClaimEvents */ TOP (@batch)
       e.id,
       CASE WHEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) > @max_bytes THEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) ELSE 0 END AS withheld_bytes,
       CONVERT({payload_read_t}, CASE WHEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) <= @max_bytes THEN e.payload END) AS payload,
       CONVERT({headers_read_t}, CASE WHEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) <= @max_bytes THEN e.headers END) AS headers,
       {event_type} AS event_type,
       {aggregate_type} AS aggregate_type,
       {aggregate_id} AS aggregate_id,
       e.created_at,
       e.retry_count
FROM   {events} AS e WITH (INDEX({claim_index}), FORCESEEK, UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  e.event_type = CAST(@event_type AS {event_type_t})
AND    e.status = 0
AND    e.id >= CAST(@from AS {id_t})
ORDER BY e.id
OPTION (MAXDOP 1);`

// The same for a while after a flip has waited in vain (1222). A covering index is
// all that the read above locks, and U goes beside S: someone's open UPDATE of a
// column that the index does not have, or a row read under REPEATABLE READ, is not
// skipped there, and the flip would wait for it with every try. So this read takes
// what the flip will need, on the entry and on the row, and skips what is held.
//
//   - INNER LOOP JOIN: the order as written, so that no row is locked whose entry
//     was skipped; one seek an id, of a page that the flip reads anyway.
//   - XLOCK: the flip's own lock; held by someone in any mode means skipped.
const claimUnlockedSQL = `SELECT /* outbox:ClaimUnlocked */ TOP (@batch)
       e.id,
       CASE WHEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) > @max_bytes THEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) ELSE 0 END AS withheld_bytes,
       CONVERT({payload_read_t}, CASE WHEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) <= @max_bytes THEN e.payload END) AS payload,
       CONVERT({headers_read_t}, CASE WHEN ISNULL(DATALENGTH(e.payload), 0) + ISNULL(DATALENGTH(e.headers), 0) <= @max_bytes THEN e.headers END) AS headers,
       {event_type} AS event_type,
       {aggregate_type} AS aggregate_type,
       {aggregate_id} AS aggregate_id,
       e.created_at,
       e.retry_count
FROM   {events} AS i WITH (INDEX({claim_index}), FORCESEEK, XLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
INNER LOOP JOIN {events} AS e WITH (FORCESEEK, XLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) ON e.id = i.id
WHERE  i.event_type = CAST(@event_type AS {event_type_t})
AND    i.status = 0
AND    i.id >= CAST(@from AS {id_t})
ORDER BY i.id
OPTION (MAXDOP 1);`

// unlockedFor is how long claims read by ClaimUnlocked after a flip has waited in
// vain. What a person holds is held for minutes, and each look whether it is free
// costs one claim a LOCK_TIMEOUT.
const unlockedFor = time.Minute

// claimText is the claim's read for now.
func (s *Store) claimText(st *statements) string {
	if at := s.flipWaited.Load(); at != nil && time.Since(*at) < unlockedFor {
		return st.claimUnlocked
	}
	return st.claimEvents
}

// Flip and receipt in one request, with one @now: processed_at = claimed_at
// ties each row to its receipt.
//
//   - INNER LOOP JOIN: OPENJSON is estimated at 50 rows whatever it holds; the
//     hint forces the order and one seek an id.
//   - FORCESEEK: never a scan of the table, whatever the statistics say.
//   - ROWLOCK: the other claims must not meet a page lock.
//   - MAXDOP 1: a few hundred seeks do not need threads.
//
// The receipt's event_type is for people, so it is cut to its column, which an
// explicit CAST does without an error. The last row is the marker: without it
// the request did not run to its end.
const flipClaimSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @lease_until DATETIME2(3) = DATEADD(MILLISECOND, @lease_ms, @now);
DECLARE @flipped INT;

UPDATE /* outbox:FlipClaim */ e
SET    status = 1,
       processed_at = @now
FROM   OPENJSON(@ids) WITH (id {id_t} '$') AS c
INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = c.id
WHERE  e.status = 0
OPTION (MAXDOP 1);
SET @flipped = @@ROWCOUNT;

INSERT /* outbox:FlipClaim */ INTO {receipts} (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
VALUES (CAST(@claim_id AS UNIQUEIDENTIFIER), @owner, CAST(@event_type AS {receipt_event_type_t}), @now, @lease_until, @flipped, @ids);

SELECT /* outbox:FlipClaim */ @flipped AS flipped, @now AS claimed_at, @lease_until AS lease_until;`

// Claim implements worker.Claimer. A claim costs four round trips: begin,
// read, flip, commit; one that finds nothing costs three. Deadlocks and lock
// timeouts are tried again at once, a few times; after a lock timeout of the flip,
// rows that someone else has locked are left out. They keep their status, so a later
// cycle finds them.
func (s *Store) Claim(ctx context.Context, req worker.ClaimRequest) (worker.Claim, error) {
	op := fmt.Sprintf("claim %q events of %s", req.EventType, s.names)
	if req.Batch < 1 || req.Batch > MaxBatch {
		return worker.Claim{}, fmt.Errorf("%s: batch is %d, must be 1 to %d: %w", op, req.Batch, MaxBatch, worker.ErrPermanent)
	}
	var claim worker.Claim
	err := s.retrying(ctx, op, func(ctx context.Context) error {
		var err error
		claim, err = s.claimOnce(ctx, req)
		return err
	})
	return claim, err
}

func (s *Store) claimOnce(ctx context.Context, req worker.ClaimRequest) (worker.Claim, error) {
	claim := worker.Claim{Receipt: worker.Receipt{ID: uuid.New(), EventType: req.EventType}}
	err := s.transact(ctx, func(whole context.Context, tx *sql.Tx, st *statements) error {
		if err := st.checkEventType(req.EventType); err != nil {
			return err
		}
		from, some := st.table.columns["id"].above(req.After)
		if !some {
			return errNothingToCommit
		}
		// The read may be broken off by ctx. A flip that has begun goes on: to roll
		// it back would cost the database what finishing it does.
		if err := s.readEvents(ctx, tx, st, req, from, &claim); err != nil {
			return err
		}
		if len(claim.Events) == 0 {
			return errNothingToCommit
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.flip(whole, tx, st, &claim)
	})
	switch {
	case errors.Is(err, errNothingToCommit):
		return worker.Claim{}, nil
	case errors.Is(err, errCommitUnknown):
		return s.ownAfterAll(ctx, claim, err)
	case err != nil:
		return worker.Claim{}, err
	}
	return claim, nil
}

// readEvents runs the claim's SELECT and fills the events and their ids.
func (s *Store) readEvents(ctx context.Context, tx *sql.Tx, st *statements, req worker.ClaimRequest, from int64, claim *worker.Claim) error {
	rows, err := tx.QueryContext(ctx, s.claimText(st),
		sql.Named("batch", req.Batch),
		sql.Named("max_bytes", s.cfg.MaxEventBytes),
		sql.Named("event_type", textParam(req.EventType)),
		sql.Named("from", from))
	if err != nil {
		return err
	}
	defer rows.Close()

	var (
		read = newEventReader(st.table, req.Batch, s.lastClaim.Load())
		size int64
		seen int
	)
	for rows.Next() {
		seen++
		if claim.More {
			continue // beyond the byte bound: read past, not claimed
		}
		if err := read.scan(rows); err != nil {
			return err
		}
		if seen > 1 && size+read.size() > s.cfg.MaxBatchBytes {
			claim.More = true
			continue
		}
		size += read.size()
		read.take(req.EventType)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	claim.Events = read.finish()
	s.lastClaim.Store(size)
	claim.More = claim.More || seen == req.Batch
	claim.Receipt.EventIDs = make([]int64, len(claim.Events))
	for i := range claim.Events {
		claim.Receipt.EventIDs[i] = claim.Events[i].ID
	}
	return nil
}

// flip marks the events PROCESSED and writes their receipt.
func (s *Store) flip(ctx context.Context, tx *sql.Tx, st *statements, claim *worker.Claim) error {
	ids := idsJSON(claim.Receipt.EventIDs)
	row := tx.QueryRowContext(ctx, st.flipClaim,
		sql.Named("ids", ids),
		sql.Named("claim_id", textParam(claim.Receipt.ID.String())),
		sql.Named("owner", textParam(s.cfg.Owner)),
		sql.Named("event_type", textParam(claim.Receipt.EventType)),
		sql.Named("lease_ms", s.cfg.Lease.Milliseconds()))
	var flipped int
	if err := row.Scan(&flipped, &claim.Receipt.ClaimedAt, &claim.Receipt.LeaseUntil); err != nil {
		if isLockTimeout(err) {
			now := time.Now()
			s.flipWaited.Store(&now)
		}
		return fmt.Errorf("flip %d events: %w", len(claim.Events), err)
	}
	// Every row is locked by this transaction since the SELECT read it as
	// PENDING, so anything else means that the locks did not hold.
	if flipped != len(claim.Events) {
		return fmt.Errorf("flip %s: %s changed; rolled back", quantity.Of(len(claim.Events), "event"), quantity.Of(flipped, "row"))
	}
	return nil
}

// READCOMMITTEDLOCK: under row versioning a plain read would not see the
// receipt of a transaction that is still committing and call it absent; this
// one waits for its outcome.
const findClaimSQL = `SELECT /* outbox:FindClaim */ r.claimed_at, r.lease_until
FROM   {receipts} AS r WITH (READCOMMITTEDLOCK)
WHERE  r.claim_id = CAST(@claim_id AS UNIQUEIDENTIFIER);`

// ownAfterAll decides about a claim whose commit was sent but not answered. A
// receipt that is there proves that it committed, so the batch is ours. One
// that is not there, or cannot be asked for, proves nothing: the batch is let
// go, and the reaper gives back what may have been claimed after all.
func (s *Store) ownAfterAll(ctx context.Context, claim worker.Claim, cause error) (worker.Claim, error) {
	ctx, cancel := outlive(ctx, finishGrace)
	defer cancel()
	var there bool
	err := s.retrying(ctx, "look for the claim "+claim.Receipt.ID.String(), func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			row := conn.QueryRowContext(ctx, st.findClaim,
				sql.Named("claim_id", textParam(claim.Receipt.ID.String())))
			err := row.Scan(&claim.Receipt.ClaimedAt, &claim.Receipt.LeaseUntil)
			there = err == nil
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		})
	})
	switch {
	case err != nil:
		return worker.Claim{}, fmt.Errorf("%w; its receipt could not be asked for: %w", cause, err)
	case !there:
		return worker.Claim{}, fmt.Errorf("%w; its receipt is not there, the claim is given up", cause)
	}
	s.log.Info("a claim whose commit was not answered is there: going on with it")
	return claim, nil
}

// checkEventType refuses a key that the column cannot hold: the CAST would cut
// it, and claim the rows of another type, or fail with every claim.
func (st *statements) checkEventType(key string) error {
	if _, err := st.table.columns["event_type"].fits(key); err != nil {
		return fmt.Errorf("event type %q: %w: %w", key, err, worker.ErrPermanent)
	}
	return nil
}

// finishGrace is how long a step that must not be torn in two, a commit above
// all, may outlive the context it was begun under.
const finishGrace = 2 * time.Second
