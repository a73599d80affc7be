package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
)

// Everything that is due goes by the retry index, and nothing else does: with
// nothing due it is one seek that finds the first key too young. READPAST
// leaves rows to whoever has them, a manual retry or another worker. The cast keeps
// the comparison in the column's type, as in the claim: DATETIME2 has precedence
// over a DATETIME column, which would be converted (sql-docs,
// data-type-precedence-transact-sql.md), and FORCESEEK wants a seek.
const retryDueSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @moved INT;

UPDATE /* outbox:RetryDue */ TOP (@batch) e
SET    status = 0,
       retry_at = NULL
FROM   {events} AS e WITH (INDEX({retry_index}), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  e.status = 2
AND    e.retry_at <= CAST(@now AS {retry_at_t})
OPTION (MAXDOP 1);
SET @moved = @@ROWCOUNT;

SELECT /* outbox:RetryDue */ @moved AS moved;`

// retryBatch keeps a burst of due events to short transactions.
const retryBatch = 500

// RetryDue implements worker.Keeper.
func (s *Store) RetryDue(ctx context.Context) (int, error) {
	total := 0
	for {
		var moved int
		err := s.retrying(ctx, fmt.Sprintf("bring back the due events of %s", s.names), func(ctx context.Context) error {
			return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
				return conn.QueryRowContext(ctx, st.retryDue, sql.Named("batch", retryBatch)).Scan(&moved)
			})
		})
		if err != nil {
			return total, err
		}
		total += moved
		if moved < retryBatch || ctx.Err() != nil {
			return total, nil
		}
	}
}
