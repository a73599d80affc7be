package engine

import (
	"cmp"
	"maps"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// transaction is a user transaction, as BEGIN TRANSACTION opens it.
type transaction struct {
	tx   *storage.Txn
	id   uint64
	name string
	// count is @@TRANCOUNT.
	count int
	// doomed is XACT_STATE() = -1: only a rollback is possible.
	doomed bool
	// implied is that of one statement, whose triggers see it.
	implied bool
	began   time.Time
	// isolation is the level it began with.
	isolation storage.Isolation
	saved     map[string]savepoint
	saves     int
	undo      undoLog
}

type savepoint struct {
	mark storage.Mark
	undo int
	// order counts a transaction's savepoints from 1.
	order int
}

// undoLog puts the catalog back when a transaction with DDL rolls back.
type undoLog []func()

func (l *undoLog) rollbackTo(n int) {
	for i := len(*l) - 1; i >= n; i-- {
		(*l)[i]()
	}
	*l = (*l)[:n]
}

// shownName is name of sys.dm_tran_active_transactions.
func (t *transaction) shownName() string { return cmp.Or(t.name, "user_transaction") }

func (s *session) tranCount() int {
	if s.tran == nil {
		return 0
	}
	return s.tran.count
}

func (s *session) xactState() int64 {
	switch {
	case s.tran == nil:
		return 0
	case s.tran.doomed:
		return -1
	}
	return 1
}

// begin opens a transaction, or nests one.
func (s *session) begin(w writer) error {
	if s.tran != nil {
		s.tran.count++
		return nil
	}
	s.tran = &transaction{
		tx:        s.store.Begin(s.set.isolation),
		id:        s.engine.lastTransaction.Add(1),
		count:     1,
		isolation: s.set.isolation,
		began:     time.Now().UTC(),
	}
	s.publish()
	return w.TransactionBegan(s.tran.id)
}

// commit ends one nesting level; the outermost one makes the changes last.
func (s *session) commit(w writer) error {
	t := s.tran
	switch {
	case t == nil:
		return raise(3902, 16, 1, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.")
	case t.doomed:
		return raise(3930, 16, 1, "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.")
	case t.count > 1:
		t.count--
		return nil
	}
	s.tran = nil
	defer s.publish()
	if err := t.tx.Commit(); err != nil || t.implied {
		return err
	}
	return w.TransactionCommitted(t.id)
}

// rollback ends the whole transaction, whatever its nesting.
func (s *session) rollback(w writer) error {
	t := s.tran
	if t == nil {
		return raise(3903, 16, 1, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.")
	}
	s.tran = nil
	// names first: who waits for the locks must find the old ones
	t.undo.rollbackTo(0)
	t.tx.Rollback()
	s.publish()
	if w == nil || t.implied { // nobody was told of its beginning
		return nil
	}
	return w.TransactionRolledBack(t.id)
}

// save is SAVE TRANSACTION.
func (s *session) save(name string) error {
	t := s.tran
	switch {
	case t == nil:
		return raise(628, 16, 0, "Cannot issue SAVE TRANSACTION when there is no active transaction.")
	case t.doomed:
		return raise(3931, 16, 1, "The current transaction cannot be committed and cannot be rolled back to a savepoint. Roll back the entire transaction.")
	}
	if t.saved == nil {
		t.saved = make(map[string]savepoint)
	}
	t.saves++
	t.saved[name] = savepoint{t.tx.Savepoint(), len(t.undo), t.saves}
	return nil
}

// rollbackTo goes back to a savepoint; the transaction stays open.
func (s *session) rollbackTo(name string) error {
	t := s.tran
	if t == nil {
		return s.rollback(nil)
	}
	p, ok := t.saved[name]
	switch {
	case !ok:
		return raise(6401, 16, 1, "Cannot roll back %s. No transaction or savepoint of that name was found.", name)
	case t.doomed:
		return raise(3931, 16, 1, "The current transaction cannot be committed and cannot be rolled back to a savepoint. Roll back the entire transaction.")
	}
	t.tx.RollbackTo(p.mark)
	t.undo.rollbackTo(p.undo)
	maps.DeleteFunc(t.saved, func(_ string, later savepoint) bool { return later.order > p.order })
	return nil
}

// statementScope is one statement inside a transaction, or in one of its own.
type statementScope struct {
	tx   *storage.Txn
	undo *undoLog
}

// inTransaction runs a statement that reads or writes rows. Outside a user
// transaction it has one of its own. A statement that fails leaves nothing
// behind.
func (x *exec) inTransaction(writes bool, f func(sc *statementScope) error) error {
	s := x.s
	if s.tran != nil {
		t := s.tran
		if writes && t.doomed {
			return raise(3930, 16, 1, "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.")
		}
		if x.scope != nil { // a statement inside a statement: one snapshot
			return f(x.scope)
		}
		x.scope = &statementScope{t.tx, &t.undo}
		defer func() { x.scope = nil }()
		t.tx.BeginStatement()
		defer t.tx.EndStatement()
		undo := len(t.undo)
		mark := t.tx.Savepoint()
		err := f(x.scope)
		s.undoStatement(t, mark, undo, err)
		return err
	}
	if x.scope != nil {
		return f(x.scope)
	}
	var undo undoLog
	tx := s.store.Begin(s.set.isolation)
	x.scope = &statementScope{tx, &undo}
	defer func() { x.scope = nil }()
	tx.BeginStatement()
	if err := f(x.scope); err != nil {
		undo.rollbackTo(0)
		tx.Rollback()
		return err
	}
	return tx.Commit()
}
