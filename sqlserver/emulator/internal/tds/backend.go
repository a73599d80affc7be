package tds

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Backend is the engine behind the protocol.
type Backend interface {
	// Login opens a session; an *Error (18456, 4060, …) refuses it.
	Login(ctx context.Context, l Login) (Session, error)
}

// Login is what LOGIN7 said.
type Login struct {
	User, Password string
	Database       string
	Host, App      string
	// ODBC is fODBC of OptionFlags2: the session starts with the ANSI options
	// on.
	ODBC       bool
	ReadOnly   bool
	PacketSize int
}

// Session is one connection. The protocol calls one method at a time, save
// Close, and cancels ctx when the client sends an attention or goes away.
// Every method reports what it has to say through w; the error it returns is
// only for what must end the connection: ErrDropped, which sends nothing more,
// or an *Error with a severity of 20 or more, which is still sent.
//
// After an attention the methods of w fail, save those about transactions and
// the database, which the client must hear of; what the session method returns
// then is not looked at.
//
// A savepoint asked for by a transaction manager request comes as a Batch,
// SAVE TRANSACTION [name].
type Session interface {
	// Batch runs a text without parameters.
	Batch(ctx context.Context, sql string, w ResultWriter) error
	// RPC runs a procedure by name, system procedures (sp_executesql, …)
	// included: the protocol maps ProcIDs to names.
	RPC(ctx context.Context, proc string, params []Param, w ResultWriter) error
	// Begin, Commit and Rollback are the transaction manager requests.
	Begin(ctx context.Context, isolation uint8, name string, w ResultWriter) error
	Commit(ctx context.Context, name string, w ResultWriter) error
	Rollback(ctx context.Context, name string, w ResultWriter) error
	// Bulk receives the rows of an INSERT BULK that Batch announced by
	// ResultWriter.ExpectBulk. next returns false at the end.
	Bulk(ctx context.Context, columns []Column, next func() ([]sqltype.Value, bool, error), w ResultWriter) error
	// Reset is sp_reset_connection.
	Reset(ctx context.Context)
	// Close rolls back and releases; it is called exactly once.
	Close()
}

// Param is an argument of an RPC. Name holds the @, and is empty for
// positional ones.
type Param struct {
	Name   string
	Type   sqltype.Type
	Value  sqltype.Value
	Output bool
	// Default asks for the parameter's default.
	Default bool
	// Table is set for a table-valued parameter.
	Table *Table
}

// Table is a table-valued parameter.
type Table struct {
	TypeName string
	Columns  []Column
	Rows     [][]sqltype.Value
}

// Column describes one column of a result.
type Column struct {
	Name     string
	Type     sqltype.Type
	Nullable bool
	Identity bool
}

// ResultWriter is the answer to one request. Calls for one result set come in
// the order Columns, Row…, Done.
type ResultWriter interface {
	Columns(cols []Column) error
	// Row may not keep values after it returns. A value need not be of the
	// column's kind, only of its family: any integer in an integer column, any
	// text in a text column, and so on.
	Row(values []sqltype.Value) error
	// Done ends one statement; count is its row count where counted is true
	// (NOCOUNT OFF). The protocol adds the final DONE of the request itself. A
	// statement that counts nothing and had neither Columns nor Error is not
	// reported to the client, so calling Done for every SET and DECLARE is fine.
	Done(count int64, counted bool) error
	// ReturnStatus and ReturnValue are for procedures, at the end and in this
	// order. Without ReturnStatus the status is 0, or the number of the last
	// error.
	ReturnStatus(status int32) error
	ReturnValue(p Param) error
	// Error and Info are messages; an Error marks the following Done as failed.
	Error(e *Error) error
	Info(e *Error) error
	// Flush sends what was written so far, which else waits until a good deal
	// has come together or the request ends.
	Flush() error
	// TransactionBegan, …: the ENVCHANGE tokens 8, 9 and 10.
	TransactionBegan(id uint64) error
	TransactionCommitted(id uint64) error
	TransactionRolledBack(id uint64) error
	// DatabaseChanged is the ENVCHANGE after USE.
	DatabaseChanged(from, to string) error
	// ExpectBulk says that the client sends bulk rows for these columns next.
	ExpectBulk(cols []Column) error
}

// Error is a SQL Server error or message.
type Error struct {
	Number   int32
	State    uint8
	Class    uint8 // severity: 10 and below is information
	Message  string
	Server   string
	Procname string
	Line     int32
}

func (e *Error) Error() string { return e.Message }
