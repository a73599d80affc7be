package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// besideLockTimeout is above what any engine needs for a claim that finds nothing.
const besideLockTimeout = 500 * time.Millisecond

// besideWriters claims events of a type that only a transaction has which is still
// open. Under optimized locking, as Azure SQL Database has it, that transaction holds a
// lock on its own id in place of one on the row, and no page says whether READPAST
// passes by such a row (sql-docs, optimized-locking.md, hints-transact-sql-table.md).
// The event is rolled back; it costs one block of ids.
func (v *visit) besideWriters(ctx context.Context) ([]Finding, error) {
	const check = "claims beside writers"
	for _, f := range v.report.Findings {
		if f.Check == "rehearsal" && f.Verdict != OK {
			return one(check, Unknown, "not tried, for the rehearsal did not go through", ""), nil
		}
	}
	for _, n := range []need{{v.Events(), "INSERT"}, {v.Sequence(), "UPDATE"}} {
		var has sql.NullBool
		if err := v.conn.QueryRowContext(ctx, doctorRightSQL, sql.Named("object", n.object), sql.Named("permission", n.permission)).Scan(&has); err != nil {
			return nil, err
		}
		if !has.Bool {
			return one(check, Unknown, fmt.Sprintf("not tried: user %s has no %s on %s, with which it would write an event and roll it back", v.facts.user, n.permission, n.object),
				"run doctor once as someone who has it, a db_owner for one; a worker needs no such right"), nil
		}
	}

	writer, err := sqlserver.NewWriter(v.Names)
	if err != nil {
		return nil, err
	}
	store, err := sqlserver.New(sqlserver.Config{DB: v.DB, Names: v.Names, Owner: "outboxctl doctor", LockTimeout: besideLockTimeout, Logger: v.Logger})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	tx, err := v.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it may be over already; then it is rolled back too
	event := sqlserver.OutboxEvent{AggregateType: "outbox-doctor", AggregateID: "1", EventType: "outbox-doctor-" + uuid.NewString(), Payload: []byte("{}")}
	if err := writer.Enqueue(ctx, tx, event); err != nil {
		return one(check, Unknown, "not tried, for no event could be written: "+err.Error(), ""), nil
	}
	claim, err := store.Claim(ctx, worker.ClaimRequest{EventType: event.EventType, Batch: 1})
	switch {
	case sqlserver.ClassOf(err) == sqlserver.Contention:
		return one(check, Warn, "a claim waits for a transaction that is open and has written an event of its type: READPAST does not pass by it in this database",
			"nothing is lost, and a claim gives up after its lock timeout and tries again. Keep transactions that write events short: as long as one is open, no event of its types is claimed"), nil
	case err != nil:
		return nil, err
	case len(claim.Events) > 0:
		return one(check, NoGo, "a claim took an event whose transaction is still open", "do not start a worker: it would send what may be rolled back. Ask who has changed the isolation level or the locks of this table"), nil
	}
	return one(check, OK, "a claim passes by the event of a transaction that is open, at once", ""), nil
}
