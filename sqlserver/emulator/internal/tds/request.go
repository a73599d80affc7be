package tds

import (
	"context"
	"errors"
	"fmt"
)

// work answers requests until the connection ends, and says why it did.
func (c *conn) work() error {
	for {
		first, err := c.receive()
		if errors.Is(err, errAttention) {
			// Its request has been answered, in full or cut short.
			c.r.begin(c.ctx, false)
			c.r.endCancelled()
			if err := c.out.finish(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := c.request(first); err != nil {
			return err
		}
	}
}

// request runs one request and writes its answer; an error ends the
// connection.
func (c *conn) request(first packet) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.interrupt = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.interrupt = nil
		c.mu.Unlock()
	}()

	c.m.begin(first)
	c.r.begin(ctx, first.kind == packetRPC)
	return c.answer(c.execute(ctx, first))
}

// answer ends the reply to a request that returned err.
func (c *conn) answer(err error) error {
	var ending *Error
	switch {
	case errors.Is(err, ErrDropped):
		return err
	case errors.Is(c.m.err, errAttention):
		c.r.endCancelled()
		return c.out.finish()
	case errors.Is(c.m.err, errIgnored):
		c.r.failed = true
		c.r.end(false)
		return c.out.finish()
	case errors.Is(c.m.err, errMalformed), errors.Is(c.m.err, errTooLarge):
		c.fatal(streamError(c.m.err))
		return c.m.err
	case c.m.err != nil:
		return c.m.err
	case c.attention.Load():
		// The answer ends here, as failed. The attention itself is still among the
		// packets, and work acknowledges it in a message of its own, which tedious
		// waits for (MS-TDS 3.2.5.9 has clients discard answers until it comes).
		if !c.r.ended {
			c.r.failed = true
			c.r.end(false)
		}
		return c.out.finish()
	case errors.As(err, &ending):
		c.fatal(ending)
		return err
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.r.err != nil:
		// What the engine handed over cannot be written: a defect that must not
		// look like a result.
		c.fatal(&Error{Number: errorBadStream, State: 1, Class: classFatal, Message: c.r.err.Error()})
		return c.r.err
	case err != nil:
		return err
	}
	return c.out.finish()
}

// streamError is how SQL Server reports a request that it cannot read; what
// exactly is wrong goes behind its text.
func streamError(err error) *Error {
	return &Error{
		Number: errorBadStream, State: 1, Class: classFatal,
		Message: messageBadStream + " " + err.Error() + ".",
	}
}

// execute decodes and runs one request, DONE included.
func (c *conn) execute(ctx context.Context, first packet) error {
	announced := c.bulk
	c.bulk = nil
	if first.kind == packetBulk {
		return c.runBulk(ctx, announced)
	}
	reset := first.status & (statusReset | statusResetSkipTran)
	switch first.kind {
	case packetBatch, packetRPC, packetTransaction:
	default:
		c.m.malformed("a request of packet type %d", first.kind)
		return nil
	}
	descriptor := c.m.allHeaders()

	// A request is decoded whole before any of it runs.
	var (
		text  string
		calls []rpc
		tran  transactionRequest
	)
	switch first.kind {
	case packetBatch:
		b := c.m.rest()
		if len(b)%2 != 0 {
			c.m.malformed("a batch of %d bytes, where UTF-16 has an even number", len(b))
		}
		text = decodeUTF16(b)
	case packetRPC:
		calls = decodeRPC(&c.m)
	case packetTransaction:
		tran = decodeTransaction(&c.m)
		c.m.rest()
	}
	if c.m.err != nil || c.attention.Load() {
		return nil
	}
	if reset != 0 {
		if !c.reset(ctx, reset) {
			return nil
		}
	} else if descriptor != 0 && descriptor != c.transaction {
		// The client means a transaction that has ended.
		if err := c.r.Error(&Error{
			Number: errorResume, State: 1, Class: classUser,
			Message: fmt.Sprintf("The server failed to resume the transaction. Desc:%x.", descriptor),
		}); err != nil {
			return err
		}
		c.r.end(false)
		return nil
	}

	var err error
	switch first.kind {
	case packetBatch:
		err = c.session.Batch(ctx, text, &c.r)
	case packetTransaction:
		err = tran.run(ctx, c.session, &c.r)
	case packetRPC:
		return c.runCalls(ctx, calls)
	}
	if err == nil && c.r.err == nil {
		c.bulk = c.r.bulk
		c.r.end(false)
	}
	return err
}

// reset is sp_reset_connection, asked for by a bit in the packet header.
func (c *conn) reset(ctx context.Context, bits uint8) bool {
	if bits&statusResetSkipTran != 0 && c.transaction != 0 {
		// Only clients in distributed transactions ask to keep one open.
		_ = c.r.Error(&Error{Number: errorNoDTC, State: 3, Class: classUser, Message: messageNoDTC})
		c.r.end(false)
		return false
	}
	open := c.transaction
	c.session.Reset(ctx)
	if open != 0 && c.transaction == open {
		_ = c.r.TransactionRolledBack(open)
	}
	c.out.tokens = appendEnvReset(c.out.tokens)
	return true
}

// runCalls runs the calls of an RPC message one after the other.
func (c *conn) runCalls(ctx context.Context, calls []rpc) error {
	for i, call := range calls {
		if i > 0 {
			c.r.begin(ctx, true)
		}
		if err := c.session.RPC(ctx, call.proc, call.params, &c.r); err != nil {
			return err
		}
		if c.r.err != nil || c.attention.Load() {
			return nil
		}
		c.bulk = c.r.bulk
		c.r.end(i < len(calls)-1)
	}
	return nil
}

func (c *conn) runBulk(ctx context.Context, announced []Column) error {
	rows := readBulk(&c.m)
	if announced == nil && c.m.err == nil {
		c.m.malformed("a bulk load that no INSERT BULK announced")
	}
	if c.m.err != nil {
		return nil
	}
	err := c.session.Bulk(ctx, rows.columns, rows.next, &c.r)
	if errors.Is(err, ErrDropped) {
		return err
	}
	if rows.drain() != nil {
		return nil // what went wrong is in the message
	}
	if err == nil && c.r.err == nil {
		c.r.end(false)
	}
	return err
}
