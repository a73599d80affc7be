package sqlserver

import (
	"context"
	"database/sql"
	"fmt"

	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

// The rows are PROCESSED since the claim, so a batch that went out whole needs
// nothing but the end of its receipt. The loop join makes it one seek a
// receipt; a DELETE with a join takes any plan otherwise.
const settleSentSQL = `DECLARE @deleted INT;

DELETE /* outbox:SettleSent */ r
FROM   OPENJSON(@claim_ids) WITH (claim_id CHAR(36) '$') AS c
INNER LOOP JOIN {receipts} AS r WITH (FORCESEEK, ROWLOCK) ON r.claim_id = CAST(c.claim_id AS UNIQUEIDENTIFIER)
OPTION (MAXDOP 1);
SET @deleted = @@ROWCOUNT;

SELECT /* outbox:SettleSent */ @deleted AS deleted;`

// SettleSent implements worker.Settler: one statement, one round trip. Where an
// answer was lost and the call is repeated, receipts that the first one has
// deleted are counted as lost.
func (s *Store) SettleSent(ctx context.Context, receipts []worker.Receipt) (lost int, err error) {
	if len(receipts) == 0 {
		return 0, nil
	}
	ids := claimIDsJSON(receipts)
	var deleted int
	err = s.retrying(ctx, fmt.Sprintf("settle %s of %s", quantity.Of(len(receipts), "claim"), s.names), func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			return conn.QueryRowContext(ctx, st.settleSent, sql.Named("claim_ids", ids)).Scan(&deleted)
		})
	})
	if err != nil {
		return 0, err
	}
	return len(receipts) - deleted, nil
}

// status = 1 AND processed_at = claimed_at is the fence: a worker whose lease
// ran out must not touch rows that were claimed again since, nor rows of a
// reused id. The time comes from the receipt itself, never from the client,
// which might read or write it differently. Without the receipt nothing is
// changed at all. UPDLOCK: what is read is still there for the DELETE.
const settleSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @fence DATETIME2(3);
DECLARE @deleted INT = 0, @back INT = 0, @broken INT = 0;

SELECT /* outbox:Settle */ @fence = r.claimed_at
FROM   {receipts} AS r WITH (UPDLOCK, ROWLOCK)
WHERE  r.claim_id = CAST(@claim_id AS UNIQUEIDENTIFIER);

IF @fence IS NOT NULL
BEGIN
    DELETE /* outbox:Settle */ FROM {receipts} WITH (ROWLOCK)
    WHERE  claim_id = CAST(@claim_id AS UNIQUEIDENTIFIER);
    SET @deleted = @@ROWCOUNT;

    UPDATE /* outbox:Settle */ e
    SET    status = 0,
           processed_at = NULL
    FROM   OPENJSON(@returned) WITH (id {id_t} '$') AS c
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = c.id
    WHERE  e.status = 1
    AND    e.processed_at = @fence
    OPTION (MAXDOP 1);
    SET @back = @@ROWCOUNT;

    UPDATE /* outbox:Settle */ e
    SET    status = 2,
           processed_at = NULL,
           retry_count = CASE c.spend WHEN 1 THEN {retry_count_next} ELSE e.retry_count END,
           retry_at = CASE WHEN c.retry_ms > 0 THEN DATEADD(MILLISECOND, c.retry_ms, @now) END,
           last_error = c.error
    FROM   OPENJSON(@failed) WITH (id {id_t} '$.id', spend INT '$.spend', retry_ms INT '$.retry_ms', error {last_error_t} '$.error') AS c
    INNER LOOP JOIN {events} AS e WITH (FORCESEEK, ROWLOCK) ON e.id = c.id
    WHERE  e.status = 1
    AND    e.processed_at = @fence
    OPTION (MAXDOP 1);
    SET @broken = @@ROWCOUNT;
END;

SELECT /* outbox:Settle */ @deleted AS deleted, @back AS returned, @broken AS failed;`

// Settle implements worker.Settler. Where the answer to its commit was lost and
// the call is repeated, ErrLeaseLost may mean that the first one did it all.
func (s *Store) Settle(ctx context.Context, set worker.Settlement) error {
	op := fmt.Sprintf("settle the claim %s of %s", set.Receipt.ID, s.names)
	returned := idsJSON(set.Returned)
	var deleted, back, broken int
	err := s.retrying(ctx, op, func(ctx context.Context) error {
		return s.transact(ctx, func(ctx context.Context, tx *sql.Tx, st *statements) error {
			row := tx.QueryRowContext(ctx, st.settle,
				sql.Named("claim_id", textParam(set.Receipt.ID.String())),
				sql.Named("returned", returned),
				sql.Named("failed", failuresJSON(set.Failed, st.table.columns["last_error"])))
			if err := row.Scan(&deleted, &back, &broken); err != nil {
				return err
			}
			if deleted == 0 {
				return worker.ErrLeaseLost
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if back != len(set.Returned) || broken != len(set.Failed) {
		// Someone deleted or changed rows of a living claim by hand.
		s.log.Warn("rows of a claim were not as the claim left them, and stay as they are",
			zap.Stringer("claim", set.Receipt.ID),
			zap.Int("returned", back), zap.Int("to_return", len(set.Returned)),
			zap.Int("failed", broken), zap.Int("to_fail", len(set.Failed)))
	}
	return nil
}
