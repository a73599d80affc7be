package sqlserver

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/worker"
)

// The answer is what people have told the workers, so that it costs no round trip
// of its own. A process begins with @first, because a container that is started
// again has the name of the one before. An owner is one process, so nobody else
// writes its row and update-then-insert needs no lock between the two; the cast
// keeps the seek in the key's type. @before is what the row held until now, which
// shows where an owner is two processes: a variable that is set to a column beside
// the assignment to that column has the value from before (sql-docs,
// update-transact-sql.md).
//
// Rows of workers that have not been seen for a day go with it, and those of a day
// ahead, which a hand or a restored database has left: the table holds a few rows,
// so they are looked for in all of it. READPAST, because two workers
// that rehearse their start, each with its own new row in an open transaction,
// would wait for each other's and one would be a deadlock's victim; who is locked
// is not long gone. READCOMMITTEDLOCK, because READPAST may not stand alone where
// READ_COMMITTED_SNAPSHOT is ON (sql-docs, hints-transact-sql-table.md).
const heartbeatSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @before VARCHAR(MAX);

UPDATE /* outbox:Heartbeat */ {workers}
SET    version = @version,
       source = @source,
       lease_ms = @lease_ms,
       lanes = @lanes,
       in_flight = @in_flight,
       breakers = @breakers,
       rates = @rates,
       @before = state,
       state = @state,
       started_at = CASE WHEN @first = 1 THEN @now ELSE started_at END,
       seen_at = @now
WHERE  owner = CAST(@owner AS VARCHAR(100));

IF @@ROWCOUNT = 0
    INSERT /* outbox:Heartbeat */ INTO {workers} (owner, version, source, lease_ms, lanes, in_flight, breakers, rates, state, started_at, seen_at)
    VALUES (@owner, @version, @source, @lease_ms, @lanes, @in_flight, @breakers, @rates, @state, @now, @now);

DELETE /* outbox:Heartbeat */ FROM {workers} WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  seen_at < DATEADD(DAY, -1, @now)
OR     seen_at > DATEADD(DAY, 1, @now);

SELECT /* outbox:Heartbeat */ @before AS before;

SELECT /* outbox:Heartbeat */ c.scope, c.name, c.paused, c.changed_by, ISNULL(c.reason, N'') AS reason, c.changed_at,
       CAST(CASE WHEN c.changed_at > w.started_at THEN 1 ELSE 0 END AS BIT) AS since_start
FROM   {controls} AS c
CROSS JOIN {workers} AS w
WHERE  w.owner = CAST(@owner AS VARCHAR(100));`

// WorkerState is what the column state of a heartbeat holds, as JSON. It is NULL
// where the worker is of a version without it.
type WorkerState struct {
	// Start is the process: another one with the same owner has another.
	Start string `json:"start,omitempty"`
	// Paused says that the worker was started paused and waits for a resume.
	Paused bool `json:"paused,omitempty"`
	// Trouble is what of its work it cannot do, in printable ASCII, at most maxTrouble
	// bytes; empty where it can.
	Trouble string `json:"trouble,omitempty"`
	// Destinations are the queues and topics that its routes lead to.
	Destinations []string `json:"destinations,omitempty"`
	// Unrouted are event types that have something pending and that no route of the
	// worker names, at most maxUnrouted of them.
	Unrouted []string `json:"unrouted,omitempty"`
}

// heartbeatGrace is how long a heartbeat under way may outlive its context. One that
// the stop breaks off may reach the table after Leave has, and the row would stay
// as if the worker had been killed.
const heartbeatGrace = time.Second

// maxUnrouted and maxTrouble bound what a heartbeat writes every few seconds.
const (
	maxUnrouted = 50
	maxTrouble  = 500
)

// Heartbeat implements worker.Keeper.
func (s *Store) Heartbeat(ctx context.Context, h worker.Heartbeat) (told []worker.Control, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var before sql.NullString
	ctx, cancel := outlive(ctx, heartbeatGrace)
	defer cancel()
	err = s.retrying(ctx, fmt.Sprintf("write the heartbeat of %s", s.names), func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			args, err := s.heartbeatArgs(h)
			if err != nil {
				return err
			}
			rows, err := conn.QueryContext(ctx, st.heartbeat, args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			before, told, err = readHeartbeat(rows)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	// The first heartbeat of a process meets the row of the one before it, which was
	// killed. Where there is none the other one has stopped since, and is none now.
	if s.beaten.Swap(true) && before.Valid && startOf(before.String) != s.start {
		s.shared.Do(s.warnOfAnother)
	}
	return told, nil
}

func readHeartbeat(rows *sql.Rows) (before sql.NullString, told []worker.Control, err error) {
	for rows.Next() {
		if err := rows.Scan(&before); err != nil {
			return before, nil, err
		}
	}
	rows.NextResultSet()
	for rows.Next() {
		var c worker.Control
		if err := rows.Scan(&c.Scope, &c.Name, &c.Paused, &c.By, &c.Reason, &c.ChangedAt, &c.SinceStart); err != nil {
			return before, nil, err
		}
		told = append(told, c)
	}
	return before, told, drain(rows)
}

// startOf is the process that wrote a state; empty for a version that did not say.
func startOf(state string) string {
	var said WorkerState
	_ = json.Unmarshal([]byte(state), &said)
	return said.Start
}

func (s *Store) warnOfAnother() {
	s.log.Warn("another process writes the heartbeat of this worker's name: give each --owner to one process, or leave it out. No event is lost, but status shows one worker where there are two. Where one takes the place of the other, as in an upgrade, it passes",
		zap.String("owner", s.cfg.Owner))
}

const leaveSQL = `DELETE /* outbox:Leave */ FROM {workers}
WHERE  owner = CAST(@owner AS VARCHAR(100));`

// Leave implements worker.Keeper.
func (s *Store) Leave(ctx context.Context) error {
	return s.retrying(ctx, fmt.Sprintf("delete the heartbeat of %s", s.names), func(ctx context.Context) error {
		return s.session(ctx, func(ctx context.Context, conn *sql.Conn, st *statements) error {
			_, err := conn.ExecContext(ctx, st.leave, sql.Named("owner", textParam(s.cfg.Owner)))
			return err
		})
	})
}

func (s *Store) heartbeatArgs(h worker.Heartbeat) ([]any, error) {
	breakers, err := jsonOrNull(h.Breakers, len(h.Breakers))
	if err != nil {
		return nil, fmt.Errorf("write the breakers as JSON: %w", err)
	}
	rates, err := jsonOrNull(h.Rates, len(h.Rates))
	if err != nil {
		return nil, fmt.Errorf("write the rates as JSON: %w", err)
	}
	trouble := ""
	if h.Trouble != nil { // several are joined by line breaks
		trouble = fitError(strings.ReplaceAll(h.Trouble.Error(), "\n", "; "), column{bytes: maxTrouble})
	}
	state, err := json.Marshal(WorkerState{
		Start: s.start, Paused: h.Paused, Trouble: trouble,
		Destinations: s.cfg.Destinations, Unrouted: h.Unrouted[:min(len(h.Unrouted), maxUnrouted)],
	})
	if err != nil {
		return nil, fmt.Errorf("write the state as JSON: %w", err)
	}
	return []any{
		sql.Named("owner", textParam(s.cfg.Owner)),
		sql.Named("version", textParam(s.cfg.Version)),
		sql.Named("source", textParam(s.cfg.Source)),
		sql.Named("lease_ms", s.cfg.Lease.Milliseconds()),
		sql.Named("lanes", h.Lanes),
		sql.Named("in_flight", h.InFlight),
		sql.Named("breakers", breakers),
		sql.Named("rates", rates),
		sql.Named("state", textParam(asciiJSON(string(state)))),
		sql.Named("first", !s.beaten.Load()),
	}, nil
}

// jsonOrNull is v as JSON, or NULL where it has no elements.
func jsonOrNull(v any, elements int) (any, error) {
	if elements == 0 {
		return sql.NullString{}, nil // an untyped nil goes out as a type that not every server takes
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return textParam(asciiJSON(string(text))), nil
}
