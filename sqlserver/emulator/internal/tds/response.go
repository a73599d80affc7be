package tds

import (
	"context"
	"errors"
	"fmt"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var (
	// ErrDropped ends a connection at once and silently: what was not on the
	// wire yet never gets there. For scripted faults.
	ErrDropped = errors.New("the connection is dropped on purpose")

	errResultOrder = errors.New("a row without columns before it")
)

// response is the ResultWriter of one request. It holds the last DONE back
// until it knows whether another token follows, since every DONE but the last
// carries DONE_MORE.
type response struct {
	ctx     context.Context
	conn    *conn
	out     *packetWriter
	inProc  bool
	columns []column

	open    bool // Columns was called and Done was not
	ended   bool // the last DONE is written
	failed  bool // Error was called and Done was not
	status  *int32
	ordinal int
	last    int32 // number of the last error
	held    done
	holding bool
	bulk    []Column
	err     error
}

func (r *response) begin(ctx context.Context, inProc bool) {
	*r = response{ctx: ctx, conn: r.conn, out: r.out, inProc: inProc, columns: r.columns[:0]}
}

// ready is asked before every token: it releases the DONE that was held, and
// stops an engine whose client has cancelled.
func (r *response) ready() error {
	if r.err != nil {
		return r.err
	}
	if r.conn.attention.Load() || r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.release(doneMore)
	return nil
}

func (r *response) release(status uint16) {
	if r.holding {
		r.holding = false
		r.held.status |= status
		r.out.tokens = appendDone(r.out.tokens, r.held)
	}
}

func (r *response) keep(err error) error {
	if err != nil && r.err == nil {
		r.err = err
	}
	return err
}

// Columns starts a result set.
func (r *response) Columns(cols []Column) error {
	if err := r.ready(); err != nil {
		return err
	}
	r.columns = r.columns[:0]
	for i := range cols {
		c, err := columnFor(cols[i].Name, cols[i].Type, r.conn.utf8)
		if err != nil {
			return r.keep(err)
		}
		r.columns = append(r.columns, c)
	}
	r.open = true
	r.out.tokens = appendColumns(r.out.tokens, cols, r.columns)
	return nil
}

// Row writes a row of the result set that Columns started.
func (r *response) Row(values []sqltype.Value) error {
	if err := r.ready(); err != nil {
		return err
	}
	if !r.open || len(values) != len(r.columns) {
		return r.keep(fmt.Errorf("%w, or with another number of them: %d values", errResultOrder, len(values)))
	}
	whole := len(r.out.tokens)
	tokens, err := appendRow(r.out.tokens, r.columns, values)
	if err != nil {
		r.out.tokens = tokens[:whole]
		return r.keep(err)
	}
	r.out.tokens = tokens
	return r.keep(r.out.spill())
}

// Done ends a statement. One that counts nothing, because NOCOUNT is ON, and
// has neither rows nor errors, is not reported at all
// (set-nocount-transact-sql.md: no DONE_IN_PROC for each statement).
func (r *response) Done(count int64, counted bool) error {
	if err := r.ready(); err != nil {
		return err
	}
	d := done{token: tokenDone}
	if r.inProc {
		d.token = tokenDoneInProc
	}
	if r.failed {
		d.status |= doneError
	}
	if counted {
		d.status |= doneCount
		d.count = count
	}
	if r.open {
		d.command = commandSelect
	}
	if counted || r.open || r.failed {
		r.held, r.holding = d, true
	}
	r.open, r.failed = false, false
	return nil
}

// ReturnStatus is the RETURN of a procedure.
func (r *response) ReturnStatus(status int32) error {
	r.status = &status
	return r.err
}

// ReturnValue is an output parameter. The status goes in front of it.
func (r *response) ReturnValue(p Param) error {
	if err := r.ready(); err != nil {
		return err
	}
	c, err := columnFor(p.Name, p.Type, r.conn.utf8)
	if err != nil {
		return r.keep(err)
	}
	if r.ordinal == 0 {
		r.appendStatus()
	}
	whole := len(r.out.tokens)
	tokens, err := appendReturnValue(r.out.tokens, r.ordinal, p.Name, &c, &p.Value)
	if err != nil {
		tokens = tokens[:whole]
	}
	r.ordinal++
	r.out.tokens = tokens
	return r.keep(err)
}

// appendStatus appends the status: the procedure's own, else 0, else what
// failed.
func (r *response) appendStatus() {
	status := r.last
	if r.status != nil {
		status = *r.status
	}
	r.out.tokens = append(r.out.tokens, tokenReturnStatus,
		byte(status), byte(status>>8), byte(status>>16), byte(status>>24))
}

// Error reports an error. After an attention there is nobody to tell: SQL
// Server sends none then either.
func (r *response) Error(e *Error) error {
	if err := r.ready(); err != nil {
		return err
	}
	r.failed = true
	r.last = e.Number
	r.out.tokens = appendMessage(r.out.tokens, tokenError, e, r.conn.config.ServerName)
	return nil
}

// Info reports a message, such as that of PRINT.
func (r *response) Info(e *Error) error {
	if err := r.ready(); err != nil {
		return err
	}
	r.out.tokens = appendMessage(r.out.tokens, tokenInfo, e, r.conn.config.ServerName)
	return nil
}

// Flush sends what was written so far. A DONE that is held back stays so.
func (r *response) Flush() error {
	if r.err != nil {
		return r.err
	}
	return r.keep(r.out.flush())
}

// The environment changes are sent even after an attention: the client has to
// know whether its transaction lives.

func (r *response) TransactionBegan(id uint64) error {
	return r.transaction(envBegin, id, id)
}

func (r *response) TransactionCommitted(id uint64) error {
	return r.transaction(envCommit, id, 0)
}

func (r *response) TransactionRolledBack(id uint64) error {
	return r.transaction(envRollback, id, 0)
}

func (r *response) transaction(kind byte, id, current uint64) error {
	r.release(doneMore)
	r.conn.transaction = current
	r.out.tokens = appendEnvTransaction(r.out.tokens, kind, id)
	return r.err
}

func (r *response) DatabaseChanged(from, to string) error {
	r.release(doneMore)
	r.out.tokens = appendEnvText(r.out.tokens, envDatabase, to, from)
	return r.err
}

// ExpectBulk makes the next bulk load of this connection a legal request.
func (r *response) ExpectBulk(cols []Column) error {
	r.bulk = cols
	return r.err
}

// end writes the DONE of one request; more says that another RPC of the same
// message follows.
func (r *response) end(more bool) {
	r.ended = !more
	status := uint16(0)
	if more {
		status = doneMore
	}
	if r.failed {
		status |= doneError
	}
	if r.inProc {
		r.release(doneMore)
		if r.ordinal == 0 {
			r.appendStatus()
		}
		r.out.tokens = appendDone(r.out.tokens, done{token: tokenDoneProc, status: status})
		return
	}
	if r.holding && !r.failed {
		r.release(status)
		return
	}
	r.release(doneMore)
	r.out.tokens = appendDone(r.out.tokens, done{token: tokenDone, status: status})
}

// endCancelled acknowledges an attention.
func (r *response) endCancelled() {
	r.release(doneMore)
	r.out.tokens = appendDone(r.out.tokens, done{token: tokenDone, status: doneAttention})
}
