package storage

import (
	"context"
)

// Isolation is a transaction's isolation level. The engine decides per scan
// how it reads; the level adds what must hold across scans.
type Isolation uint8

const (
	// ReadCommitted takes a new snapshot each statement and gives S locks back
	// as a locking scan moves on.
	ReadCommitted Isolation = iota
	ReadUncommitted
	// RepeatableRead keeps S locks to the end of the transaction.
	RepeatableRead
	// Serializable does so too, and its locking scans lock whole tables.
	Serializable
	// Snapshot keeps the first statement's snapshot; changing a row that was
	// committed after it is ErrUpdateConflict.
	Snapshot
)

// Txn is a transaction. Statements outside an explicit transaction run in one
// of their own.
type Txn struct {
	db      *DB
	session *Session
	iso     Isolation
	status  *txnStatus
	done    bool

	locks    lockOwner
	accesses []*access
	snap     snapshot

	changes []change
	// moves is where the changes' moves lie, one allocation for many.
	moves []move
	// steps is the last change's plan, kept for its space.
	steps []step
	// stays are the indexes in which that change keeps its place.
	stays []*Index
	// stirred are ghosts of others that were revived here and are ghosts again:
	// their own clean-up has passed them by.
	stirred []move
}

// Mark is a position in a transaction that RollbackTo goes back to.
type Mark int

// BeginStatement starts a statement: reads of versions see what was committed
// by now, and escalation counts from zero. It ends the last statement.
func (tx *Txn) BeginStatement() {
	if tx.done {
		return
	}
	tx.EndStatement()
	if !tx.snap.taken {
		tx.db.history.take(&tx.snap)
	}
}

// EndStatement drops the statement's snapshot and what locks last only for a
// statement. Call it even when the transaction stays open: a snapshot that is
// kept holds back the clean-up of old versions. BeginStatement, Commit and
// Rollback call it too.
func (tx *Txn) EndStatement() {
	if tx.iso != Snapshot || tx.done {
		tx.db.history.end(&tx.snap)
	}
	tx.endStatementLocks()
}

// Commit makes the changes visible to all and releases the locks. The error is
// ErrTxnDone when the transaction is over already.
func (tx *Txn) Commit() error {
	if tx.done {
		return ErrTxnDone
	}
	tx.done = true
	tx.db.history.end(&tx.snap)
	if len(tx.changes) > 0 {
		tx.db.history.commit(tx.status, tx.changes)
	}
	tx.finish()
	tx.db.meters.commits.Add(1)
	return nil
}

// Rollback undoes every change and releases the locks. It does nothing when
// the transaction is over already.
func (tx *Txn) Rollback() {
	if tx.done {
		return
	}
	tx.RollbackTo(0)
	tx.done = true
	tx.db.history.end(&tx.snap)
	tx.finish()
	tx.db.meters.rollbacks.Add(1)
}

// finish releases what the transaction holds.
func (tx *Txn) finish() {
	for _, m := range tx.stirred {
		tx.db.history.leave(m.revived, []change{{table: m.to.index.table, rec: m.to.rec, moves: []move{{from: m.to}}}})
	}
	tx.changes, tx.moves, tx.stirred, tx.accesses = nil, nil, nil, nil
	tx.db.locks.releaseAll(&tx.locks)
	tx.session.setTxn(nil)
}

// Savepoint marks where RollbackTo goes back to.
func (tx *Txn) Savepoint() Mark { return Mark(len(tx.changes)) }

// RollbackTo undoes the changes made since the mark. Locks taken since stay,
// as in SQL Server.
func (tx *Txn) RollbackTo(m Mark) {
	for i := len(tx.changes) - 1; i >= int(m); i-- {
		tx.undo(&tx.changes[i])
	}
	clear(tx.changes[m:])
	tx.changes = tx.changes[:m]
}

// Changes is how many row changes a rollback would undo.
func (tx *Txn) Changes() int { return len(tx.changes) }

// LockTable takes a table lock and keeps it to the end of the transaction:
// SchM for DDL, X for TABLOCKX, S for TABLOCK.
func (tx *Txn) LockTable(ctx context.Context, t *Table, mode LockMode) error {
	if tx.done {
		return ErrTxnDone
	}
	_, err := tx.lockTable(ctx, tx.access(t), mode, true, tx.session.LockTimeout)
	return err
}
