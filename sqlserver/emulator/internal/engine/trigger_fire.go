package engine

import (
	"errors"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// firing is a statement that has changed rows, as its triggers see it.
type firing struct {
	trigger *trigger
	def     *tableDef
	event   triggerEvents
	// columns are those that UPDATE assigns.
	columns []int
	// tran is the transaction of the statement, which may have one for itself.
	tran *transaction
	rows *transition
}

// transition is a statement's inserted and deleted rows.
type transition struct{ inserted, deleted [][]sqltype.Value }

func (t *transition) add(inserted, deleted []sqltype.Value) {
	if inserted != nil {
		t.inserted = append(t.inserted, inserted)
	}
	if deleted != nil {
		t.deleted = append(t.deleted, deleted)
	}
}

// change runs a statement that changes rows of a table, and then its triggers,
// all within one transaction. write returns how many rows it has changed.
func (x *exec) change(t *target, event triggerEvents, columns []int, res *results, write func(sc *statementScope) (int64, error)) (count int64, err error) {
	due := x.due(t, event)
	if len(due) == 0 {
		err = x.inTransaction(t.variable < 0, func(sc *statementScope) (err error) {
			count, err = write(sc)
			return err
		})
		return count, err
	}
	s := x.s
	f := firing{def: t.def, event: event, columns: columns, rows: new(transition)}
	res.changed = f.rows
	implied := s.imply()
	f.tran = s.tran
	err = x.inTransaction(true, func(sc *statementScope) (err error) {
		if count, err = write(sc); err != nil {
			return err
		}
		for _, tr := range due {
			f.trigger = tr
			s.rowCountVar = count
			if err := x.fire(f); err != nil {
				return err
			}
		}
		return nil
	})
	return count, s.endImplied(implied, err)
}

// due are the triggers that a statement is about to fire. A trigger does not
// fire itself: RECURSIVE_TRIGGERS is OFF. After a ROLLBACK within a trigger
// nothing fires until it has ended (sql-docs, "ROLLBACK TRANSACTION").
func (x *exec) due(t *target, event triggerEvents) []*trigger {
	if t.variable >= 0 || !t.def.fires(event) {
		return nil
	}
	var within *firing
	for y := x; y != nil; y = y.caller {
		if y.firing == nil {
			continue
		}
		if within == nil {
			within = y.firing
		}
		if y.firing.tran != x.s.tran {
			return nil
		}
	}
	var list []*trigger
	for _, tr := range t.def.triggers {
		if !tr.disabled && tr.events&event != 0 && (within == nil || within.trigger.id != tr.id) {
			list = append(list, tr)
		}
	}
	return list
}

// imply opens the transaction that a statement outside any has, so that its
// triggers can see and end it; nil where there is one.
func (s *session) imply() *transaction {
	if s.tran != nil {
		return nil
	}
	s.tran = &transaction{
		tx: s.store.Begin(s.set.isolation), id: s.engine.lastTransaction.Add(1),
		isolation: s.set.isolation, implied: true,
	}
	s.publish()
	return s.tran
}

func (s *session) endImplied(t *transaction, err error) error {
	if t == nil || s.tran != t {
		return err
	}
	s.tran = nil
	defer s.publish()
	if err != nil {
		t.undo.rollbackTo(0)
		t.tx.Rollback()
		return err
	}
	return t.tx.Commit()
}

// fire runs one trigger. @@TRANCOUNT is one more within it, and XACT_ABORT is
// ON (sql-docs, "ROLLBACK TRANSACTION" and "SET XACT_ABORT").
func (x *exec) fire(f firing) error {
	s, tr := x.s, f.trigger
	if s.nesting >= maxProcedureNesting {
		return raiseBatch(217, 16, 1, "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).")
	}
	y := &exec{s: s, ctx: x.ctx, w: x.w, caller: x, tries: x.tries, proc: &tr.procedure, chain: &tr.objectHeader, firing: &f}
	users := len(s.users)
	y.users = users
	defer func() { s.users = s.users[:users] }()
	y.enter(tr.mod)
	before, saved, identity := f.tran.count, s.set, s.scopeIdentity
	f.tran.count++
	s.set.quotedIdentifier, s.set.ansiNulls, s.set.xactAbort = tr.quotedIdentifier, tr.ansiNulls, true
	s.scopeIdentity = sqltype.Value{}
	s.nesting++
	err := y.runModule()
	s.nesting--
	s.scopeIdentity = identity
	s.set = saved
	s.store.LockTimeout = s.set.lockTimeout
	left := f.tran.count
	f.tran.count = before
	switch {
	case err != nil:
		return catchableOutside(err)
	case s.tran != f.tran:
		return raiseBatch(3609, 16, 1, "The transaction ended in the trigger. The batch has been aborted.")
	case s.tran.doomed:
		e := raise(3616, 16, 1, "An error was raised during trigger execution. The batch has been aborted and the user transaction, if any, has been rolled back.")
		e.effect = endsTransaction
		return e
	case left != before+1:
		return notModelled("a trigger that leaves another @@TRANCOUNT than it found")
	}
	return nil
}

// undoStatement takes back what a statement that failed has done, unless the
// whole transaction went with it.
func (s *session) undoStatement(t *transaction, mark storage.Mark, undo int, err error) {
	if err == nil || s.tran != t || errors.Is(err, storage.ErrDeadlock) {
		return
	}
	t.tx.RollbackTo(mark)
	t.undo.rollbackTo(undo)
}

// inTriggerOf: the module runs within a trigger of that table.
func (x *exec) inTriggerOf(t *tableDef) bool {
	for y := x; y != nil; y = y.caller {
		if y.firing != nil && y.firing.def.id == t.id {
			return true
		}
	}
	return false
}

// triggerNesting is TRIGGER_NESTLEVEL().
func (x *exec) triggerNesting() (n int64) {
	for y := x; y != nil; y = y.caller {
		if y.firing != nil {
			n++
		}
	}
	return n
}
