package engine

import (
	"context"
	"errors"
	"fmt"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// NotModelled is the number of every error that says: this is T-SQL, but the
// emulator does not do it. SQL Server has no error of this number.
const NotModelled = 50999

// effect is what an error does beyond ending its statement.
type effect uint8

const (
	// endsStatement: the batch goes on, unless XACT_ABORT is on.
	endsStatement effect = iota
	// endsBatch: the rest of the batch does not run. The transaction stays.
	endsBatch
	// endsTransaction: the batch ends and the transaction is rolled back.
	endsTransaction
	// sparesTransaction: RAISERROR, which XACT_ABORT does not notice.
	sparesTransaction
)

// sqlError is a SQL Server error on its way up through the executor.
type sqlError struct {
	message
	effect effect
	// terminated asks for message 3621 after it.
	terminated bool
	// compile is an error of binding names, which no TRY of the same module
	// catches.
	compile bool
	// before is an error that is reported ahead of it.
	before *sqlError
}

// message is tds.Error without its method, which would hide sqlError's own.
type message tds.Error

func (e *sqlError) Error() string { return e.Message }

func raise(number int32, class, state uint8, format string, args ...any) *sqlError {
	return &sqlError{message: message{
		Number: number, Class: class, State: state, Message: fmt.Sprintf(format, args...),
	}}
}

func raiseBatch(number int32, class, state uint8, format string, args ...any) *sqlError {
	e := raise(number, class, state, format, args...)
	e.effect = endsBatch
	return e
}

func raiseTerminated(number int32, class, state uint8, format string, args ...any) *sqlError {
	e := raise(number, class, state, format, args...)
	e.terminated = true
	return e
}

// notModelled names the T-SQL that is refused.
func notModelled(format string, args ...any) *sqlError {
	e := raise(NotModelled, 16, 1, "the emulator does not model "+format, args...)
	e.effect = endsBatch
	return e
}

func errSyntax(near string) *sqlError {
	return raiseBatch(102, 15, 1, "Incorrect syntax near '%s'.", near)
}

func errUndeclared(name string) *sqlError {
	return raiseBatch(137, 15, 2, "Must declare the scalar variable \"%s\".", name)
}

func errUndeclaredTable(name string) *sqlError {
	return raiseBatch(1087, 15, 2, "Must declare the table variable \"%s\".", name)
}

func errNoObject(name string) *sqlError {
	return raiseBatch(208, 16, 1, "Invalid object name '%s'.", name)
}

func errNoColumn(name string) *sqlError {
	return raiseBatch(207, 16, 1, "Invalid column name '%s'.", name)
}

func errUnbound(name string) *sqlError {
	return raiseBatch(4104, 16, 1, "The multi-part identifier \"%s\" could not be bound.", name)
}

func errAmbiguous(name string) *sqlError {
	return raiseBatch(209, 16, 1, "Ambiguous column name '%s'.", name)
}

func errNoFunction(name string) *sqlError {
	return raiseBatch(195, 15, 10, "'%s' is not a recognized built-in function name.", name)
}

func errNoProcedure(name string) *sqlError {
	return raise(2812, 16, 62, "Could not find stored procedure '%s'.", name)
}

func errNull(column, table, statement string) *sqlError {
	return raiseTerminated(515, 16, 2, "Cannot insert the value NULL into column '%s', table '%s'; column does not allow nulls. %s fails.", column, table, statement)
}

// batchConversions are the conversion errors that end the batch and, as
// SQL Server does, take the transaction with them.
var batchConversions = map[int32]bool{245: true, 241: true, 8114: true, 8169: true}

// asSQLError brings whatever came up to a SQL Server error. Errors that are
// none (the context's, the writer's) come back as they are.
func asSQLError(err error) (*sqlError, error) {
	var se *sqlError
	if errors.As(err, &se) {
		return se, nil
	}
	var te *tds.Error
	if errors.As(err, &te) {
		return &sqlError{message: message(*te)}, nil
	}
	var conv *sqltype.Error
	if errors.As(err, &conv) {
		e := raise(conv.Number, 16, 1, "%s", conv.Message)
		if batchConversions[conv.Number] {
			e.effect = endsTransaction
		} else {
			e.terminated = true
		}
		return e, nil
	}
	var cut *sqltype.Truncation
	switch {
	case errors.Is(err, errStalePlan):
		return notModelled("tables that are replaced while this statement waits for them"), nil
	case errors.As(err, &cut):
		return raiseTerminated(8152, 16, 30, "String or binary data would be truncated."), nil
	case errors.Is(err, storage.ErrLockTimeout):
		return raise(1222, 16, 51, "Lock request time out period exceeded."), nil
	case errors.Is(err, storage.ErrDeadlock):
		e := raise(1205, 13, 51, "Transaction was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction.")
		e.effect = endsTransaction
		return e, nil
	case errors.Is(err, storage.ErrUpdateConflict):
		e := raise(3960, 16, 2, "Snapshot isolation transaction aborted due to update conflict. Retry the transaction or change the isolation level for the update/delete statement.")
		e.effect = endsTransaction
		return e, nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, err
	}
	return nil, err
}
