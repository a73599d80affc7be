package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"azsqloutbox/worker"
)

// Check implements worker.Keeper. It reads the table's columns and indexes
// afresh, then runs every statement of a worker with nothing to do, in a
// transaction that is rolled back: the server checks rights and compiles plans
// all the same.
func (s *Store) Check(ctx context.Context) error {
	op := fmt.Sprintf("check %s", s.names)
	return s.retrying(ctx, op, func(ctx context.Context) error {
		s.ready.Store(nil)
		if err := s.session(ctx, s.checkTable); err != nil {
			return err
		}
		err := s.transact(ctx, s.rehearse)
		if errors.Is(err, errNothingToCommit) {
			return nil
		}
		return err
	})
}

func (s *Store) checkTable(ctx context.Context, conn *sql.Conn, st *statements) error {
	if err := st.table.problem(); err != nil {
		return err
	}
	if err := s.checkDatabase(ctx, conn); err != nil {
		return err
	}
	indexes, err := readIndexes(ctx, conn, s.names)
	if err != nil {
		return err
	}
	if err := stopping(indexDefects(indexes, s.names)); err != nil {
		return err
	}
	return s.checkStatusValues(ctx, conn, st)
}

// Updateability is READ_ONLY on a secondary (sql-docs,
// databasepropertyex-transact-sql.md; no right needed). A login always sees its
// own database in sys.databases, there by its name and not by DB_ID() (sql-docs,
// sys-databases-transact-sql.md, on Azure SQL Database).
const databaseStateSQL = `DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT /* outbox:DatabaseState */ CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(@database, 'Updateability')) AS updateability,
       (SELECT d.compatibility_level FROM sys.databases AS d WHERE d.name = @database) AS compatibility_level;`

// openJSONLevel is where OPENJSON begins (sql-docs, openjson-transact-sql.md).
// Below it the server says 208, as of a table.
const openJSONLevel = 130

// An engine that is not SQL Server may report a low level and know OPENJSON all
// the same, so the level explains a failure and does not make one.
const openJSONSQL = `DECLARE @json NVARCHAR(10) = N'[1]';
SELECT /* outbox:OpenJSON */ COUNT(*) FROM OPENJSON(@json) AS j;`

func takesOpenJSON(ctx context.Context, conn *sql.Conn) bool {
	var n int
	return conn.QueryRowContext(ctx, openJSONSQL).Scan(&n) == nil
}

// databaseState is what of the database keeps a worker from working.
type databaseState struct {
	readOnly, noOpenJSON bool
	level                int64
}

func readDatabaseState(ctx context.Context, conn *sql.Conn) (databaseState, error) {
	var updateability sql.NullString
	var level sql.NullInt64
	if err := conn.QueryRowContext(ctx, databaseStateSQL).Scan(&updateability, &level); err != nil {
		return databaseState{}, fmt.Errorf("ask for the state of the database: %w", err)
	}
	return databaseState{
		readOnly:   updateability.String == "READ_ONLY",
		noOpenJSON: level.Valid && level.Int64 < openJSONLevel && !takesOpenJSON(ctx, conn),
		level:      level.Int64,
	}, nil
}

func (s *Store) checkDatabase(ctx context.Context, conn *sql.Conn) error {
	state, err := readDatabaseState(ctx, conn)
	switch {
	case err != nil:
		return err
	case state.noOpenJSON:
		return fmt.Errorf("the database has compatibility level %d and OPENJSON needs %d: ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = %d or higher: %w",
			state.level, openJSONLevel, openJSONLevel, worker.ErrPermanent)
	case state.readOnly:
		return &Error{
			Number: 3906, Class: Reconnect, Advice: knownErrors[3906].advice,
			err: errors.New("the database is READ_ONLY"),
		}
	}
	return nil
}

// rehearse runs the worker's statements with nothing to do and rolls back. Its
// receipt has an id of its own: workers that start together would wait for each
// other's.
func (s *Store) rehearse(ctx context.Context, tx *sql.Tx, st *statements) error {
	var (
		none     = uuid.NewString()
		anyTypes = stringsJSON([]string{st.anyType()})
		noType   = sql.Named("event_type", textParam(st.anyType()))
		noIDs    = sql.Named("ids", textParam("[]"))
		theClaim = sql.Named("claim_id", textParam(none))
	)
	beat, err := s.heartbeatArgs(worker.Heartbeat{})
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name, text string
		args       []any
	}{
		{"claim", st.claimEvents, []any{sql.Named("batch", 1), sql.Named("max_bytes", 0), noType, sql.Named("from", 0)}},
		{"claim past locks", st.claimUnlocked, []any{sql.Named("batch", 1), sql.Named("max_bytes", 0), noType, sql.Named("from", 0)}},
		{"flip", st.flipClaim, []any{noIDs, theClaim, sql.Named("owner", textParam(s.cfg.Owner)), noType, sql.Named("lease_ms", s.cfg.Lease.Milliseconds())}},
		{"look for its own claim", st.findClaim, []any{theClaim}},
		{"probe", st.pending, []any{sql.Named("types", anyTypes)}},
		{"look for pending event types", st.discoverPending, []any{sql.Named("begun", true), sql.Named("from", []byte{}), sql.Named("limit", 0)}},
		{"count the backlog", st.backlogTypes, []any{sql.Named("types", anyTypes), sql.Named("cap", 1)}},
		{"settle what was sent", st.settleSent, []any{sql.Named("claim_ids", textParam(`["`+none+`"]`))}},
		{"settle", st.settle, []any{theClaim, sql.Named("returned", textParam("[]")), sql.Named("failed", textParam("[]"))}},
		{"look for overdue claims", st.overdueClaims, []any{sql.Named("skip", 0), sql.Named("limit", 1)}},
		{"reap", st.reapClaim, []any{theClaim, noIDs, sql.Named("max_attempts", s.cfg.MaxAttempts)}},
		{"bring back due events", st.retryDue, []any{sql.Named("batch", 0)}},
		{"heartbeat", st.heartbeat, beat},
		{"leave", st.leave, []any{sql.Named("owner", textParam(s.cfg.Owner))}},
	} {
		rows, err := tx.QueryContext(ctx, step.text, step.args...)
		if err == nil {
			err = errors.Join(drain(rows), rows.Close())
		}
		if err != nil {
			return fmt.Errorf("rehearse %s: %w", step.name, err)
		}
	}
	return errNothingToCommit
}

// anyType is a key that the event type column can be asked for.
func (st *statements) anyType() string {
	if st.table.columns["event_type"].isInteger() {
		return "0"
	}
	return ""
}
