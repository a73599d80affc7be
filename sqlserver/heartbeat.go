package sqlserver

import (
	"context"
	"database/sql"
	"fmt"

	"azsqloutbox/worker"
)

// An owner is one process, so nobody else writes its row and update-then-insert
// needs no lock between the two; the cast keeps the seek in the key's type. Rows
// of workers that have not been seen for a day go with it: the table holds a few
// rows.
const heartbeatSQL = `-- outbox:Heartbeat
DECLARE @now DATETIME2(3) = SYSUTCDATETIME();

UPDATE {workers}
SET    version = @version,
       source = @source,
       lease_ms = @lease_ms,
       lanes = @lanes,
       in_flight = @in_flight,
       breakers = @breakers,
       seen_at = @now
WHERE  owner = CAST(@owner AS VARCHAR(100));

IF @@ROWCOUNT = 0
    INSERT INTO {workers} (owner, version, source, lease_ms, lanes, in_flight, breakers, started_at, seen_at)
    VALUES (@owner, @version, @source, @lease_ms, @lanes, @in_flight, @breakers, @now, @now);

DELETE FROM {workers}
WHERE  seen_at < DATEADD(DAY, -1, @now);`

// Heartbeat implements worker.Keeper.
func (s *Store) Heartbeat(ctx context.Context, h worker.Heartbeat) error {
	return s.retrying(ctx, fmt.Sprintf("write the heartbeat of %s", s.names), func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			_, err := conn.ExecContext(ctx, st.heartbeat, s.heartbeatArgs(h)...)
			return err
		})
	})
}

func (s *Store) heartbeatArgs(h worker.Heartbeat) []any {
	breakers := any(sql.NullString{}) // an untyped nil goes out as a type that not every server takes
	if h.Breakers != nil {
		breakers = textParam(asciiJSON(string(h.Breakers)))
	}
	return []any{
		sql.Named("owner", textParam(s.cfg.Owner)),
		sql.Named("version", textParam(s.cfg.Version)),
		sql.Named("source", textParam(s.cfg.Source)),
		sql.Named("lease_ms", s.cfg.Lease.Milliseconds()),
		sql.Named("lanes", h.Lanes),
		sql.Named("in_flight", h.InFlight),
		sql.Named("breakers", breakers),
	}
}
