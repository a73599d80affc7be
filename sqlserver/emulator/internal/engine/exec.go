package engine

import (
	"context"
	"errors"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

type writer = tds.ResultWriter

// exec is a running module: a batch, a procedure, dynamic SQL.
type exec struct {
	s   *session
	ctx context.Context
	w   writer
	mod *module
	// vars and tables hold the module's variables by ordinal.
	vars   []sqltype.Value
	tables []*memTable
	// caller is the module that called this one.
	caller *exec
	proc   *procedure
	// chain is the procedure or trigger that the module is; nil for a batch and for
	// dynamic SQL. What its owner owns needs no permission.
	chain *objectHeader
	// users is how many of the session's users REVERT leaves alone.
	users int
	// firing is set for a trigger: the statement that fires it.
	firing *firing
	scope  *statementScope
	// tries counts the TRY blocks around the current statement, callers'
	// included.
	tries int
	// caught is the error that the running CATCH block handles.
	caught *sqlError
	status int32
}

// env is what a statement's expressions see while it runs: one slot for each
// table source of the statement, subqueries included.
type env struct {
	x    *exec
	tx   *storage.Txn
	rows [][]sqltype.Value
	refs []storage.RowRef
	// seeks is the space of the scans, by slot.
	seeks []*seekSpace
	// version is the catalog's that the statement was planned for.
	version int64
	// opened are the scans that index usage has counted.
	opened slotSet
	// now is the statement's clock: SYSUTCDATETIME() does not move within one.
	now sqltype.Value
	// tranID is the statement's own transaction, where CURRENT_TRANSACTION_ID()
	// has asked for it.
	tranID int64
}

func (x *exec) newEnv(slots int, version int64) *env {
	return &env{x: x, version: version, rows: make([][]sqltype.Value, slots), refs: make([]storage.RowRef, slots)}
}

func (e *env) clock() sqltype.Value {
	if e.now.IsNull() {
		e.now = sqltype.Now()
	}
	return e.now
}

// node is one step of a module.
type node interface {
	run(x *exec) (signal, error)
}

// signal is how a statement leaves its block.
type signal uint8

const (
	goOn signal = iota
	breakLoop
	continueLoop
	leaveModule
)

// errAborted ends a batch whose error has been reported already.
var errAborted = errors.New("batch aborted")

// runList runs statements until one leaves the list. Errors are reported here,
// where a statement that failed is left behind and the next one runs.
func (x *exec) runList(list []node) (signal, error) {
	for _, n := range list {
		if err := x.ctx.Err(); err != nil {
			return goOn, err
		}
		sig, err := n.run(x)
		if err != nil {
			if err = x.fail(err); err != nil {
				return goOn, err
			}
			continue
		}
		if sig != goOn {
			return sig, nil
		}
	}
	return goOn, nil
}

// fail decides what an error does. nil lets the batch go on.
func (x *exec) fail(err error) error {
	if errors.Is(err, errAborted) {
		return err
	}
	se, other := asSQLError(err)
	if se == nil {
		return other
	}
	if se.Procname == "" && x.proc != nil {
		se.Procname = x.proc.name
	}
	x.s.lastError = se.Number
	x.s.rowCountVar = 0
	if x.tries > 0 {
		x.doom(se)
		return se
	}
	if err := x.report(se); err != nil {
		return err
	}
	if se.terminated {
		if err := x.w.Info(&tds.Error{Number: 3621, Class: 0, State: 0, Message: "The statement has been terminated.", Server: x.s.engine.config.Server, Line: se.Line}); err != nil {
			return err
		}
	}
	if err := x.w.Done(0, false); err != nil {
		return err
	}
	abort := x.s.set.xactAbort && se.effect != sparesTransaction
	if (abort || se.effect == endsTransaction) && x.s.tran != nil {
		if err := x.s.rollback(x.w); err != nil {
			return err
		}
	}
	if inner := x.caller != nil && x.caller.mod != nil && x.firing == nil; inner && se.compile && !abort && se.effect == endsBatch {
		return errModuleEnded
	}
	if abort || se.effect == endsBatch || se.effect == endsTransaction {
		return errAborted
	}
	return nil
}

// report sends an error, and those that come before it.
func (x *exec) report(se *sqlError) error {
	if se.before != nil {
		se.before.Line = se.Line
		if err := x.report(se.before); err != nil {
			return err
		}
	}
	return x.w.Error(se.wire(x.s))
}

// doom makes the transaction uncommittable when an error that would have
// rolled it back is caught by TRY.
func (x *exec) doom(se *sqlError) {
	if x.s.tran == nil || se.effect == sparesTransaction {
		return
	}
	if x.s.set.xactAbort || se.effect == endsTransaction {
		x.s.tran.doomed = true
	}
}

// wire is the error as the protocol sends it.
func (e *sqlError) wire(s *session) *tds.Error {
	out := tds.Error(e.message)
	if out.Server == "" {
		out.Server = s.engine.config.Server
	}
	if out.State == 0 && out.Class > 10 {
		out.State = 1
	}
	if out.Line == 0 {
		out.Line = 1
	}
	return &out
}

// done ends a statement that counts rows.
func (x *exec) done(count int64) error {
	x.s.rowCountVar = count
	x.s.lastError = 0
	return x.w.Done(count, !x.s.set.noCount)
}

// quiet ends a statement that says nothing to the client.
func (x *exec) quiet(count int64) {
	x.s.rowCountVar = count
	x.s.lastError = 0
}
