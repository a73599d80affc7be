package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"azsqloutbox/worker"
)

// READCOMMITTEDLOCK waits for claims that are committing, and no READPAST: a
// claim that took its time long ago and hangs before its commit would otherwise
// be missed, its rows be free the moment it commits, and be deleted while they
// may still have to go back to PENDING. A claim whose receipt comes after the
// scan took its time at most a request's length before @now, which is younger
// than any retention; so a cutoff stays right however long it is used.
const purgeCutoffSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @claimed_at DATETIME2(3), @receipts INT, @receipt_lease BIGINT, @worker_lease BIGINT;

SELECT /* outbox:PurgeCutoff */ @claimed_at = MIN(r.claimed_at),
       @receipts = COUNT(*),
       @receipt_lease = MAX(DATEDIFF_BIG(MILLISECOND, r.claimed_at, r.lease_until))
FROM   {receipts} AS r WITH (READCOMMITTEDLOCK);

SELECT /* outbox:PurgeCutoff */ @worker_lease = MAX(w.lease_ms)
FROM   {workers} AS w;

SELECT /* outbox:PurgeCutoff */ @now AS now,
       DATEADD(SECOND, -@retention, @now) AS by_retention,
       @claimed_at AS claimed_at,
       @receipts AS receipts,
       @receipt_lease AS receipt_lease,
       @worker_lease AS worker_lease;`

const purgeHolderSQL = `SELECT /* outbox:PurgeHolder */ TOP (1)
       CONVERT(CHAR(36), r.claim_id) AS claim_id,
       r.owner,
       r.claimed_at,
       r.lease_until
FROM   {receipts} AS r WITH (READCOMMITTEDLOCK)
ORDER BY r.claimed_at, r.claim_id
OPTION (RECOMPILE);`

// cutoffEvery is how old a cutoff gets: it would be right for longer, but grows
// when receipts are settled.
const cutoffEvery = 10 * time.Second

// longestLease is what a longer one counts as, that of a lease_until in the year
// 9999: twice of it is more than any retention, and less than the 292 years that a
// Duration holds.
const longestLease = 2 * longestRetention

// cutoff is up to where events are old enough.
type cutoff struct {
	now, at  time.Time
	receipts int
	lease    time.Duration
	// held says that an open receipt, not the retention, sets it.
	held bool
}

func (p Purge) readCutoff(ctx context.Context, conn *sql.Conn, s purgeTexts) (cutoff, error) {
	var c cutoff
	var claimed sql.NullTime
	var receiptLease, workerLease sql.NullInt64
	row := conn.QueryRowContext(ctx, s.cutoff, sql.Named("retention", int64(p.Retention/time.Second)))
	if err := row.Scan(&c.now, &c.at, &claimed, &c.receipts, &receiptLease, &workerLease); err != nil {
		return c, err
	}
	if claimed.Valid && claimed.Time.Before(c.at) {
		c.at, c.held = claimed.Time, true
	}
	c.lease = time.Duration(min(max(receiptLease.Int64, workerLease.Int64), longestLease.Milliseconds())) * time.Millisecond
	if !receiptLease.Valid && !workerLease.Valid {
		c.lease = worker.DefaultLease
	}
	return c, nil
}

// check holds the retention to the lease: within it a claim may still come back.
func (p Purge) check(c cutoff) error {
	if p.Retention < 2*c.lease {
		return fmt.Errorf("the retention of %s is below twice the lease, which is %s here: it must be at least %s: %w", p.Retention, c.lease, 2*c.lease, ErrSetting)
	}
	return nil
}

func readHolder(ctx context.Context, conn *sql.Conn, s purgeTexts) (*HoldingReceipt, error) {
	var h HoldingReceipt
	err := conn.QueryRowContext(ctx, s.holder).Scan(&h.ClaimID, &h.Owner, &h.ClaimedAt, &h.LeaseUntil)
	if err == sql.ErrNoRows { // settled since
		return nil, nil
	}
	return &h, err
}
