package emulator

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// backend stands between the protocol and the engine: it knows the password,
// logs statements by name and lets scripted faults happen, so that neither of
// the two has to.
type backend struct {
	server *Server
	inner  tds.Backend
}

func (b *backend) Login(ctx context.Context, l tds.Login) (tds.Session, error) {
	fault, err := b.server.faults.meet(ctx, Login)
	switch {
	case err != nil:
		return nil, err
	case fault.Error != nil:
		return nil, fault.Error.wire()
	case fault.Drop == DropBefore:
		return nil, tds.ErrDropped
	}
	config := b.server.config
	admin := l.User == config.User && l.Password == config.Password
	if !admin && !b.server.engine.Authenticate(l.User, l.Password) {
		return nil, &tds.Error{
			Number: 18456, State: 1, Class: 14,
			Message: "Login failed for user '" + l.User + "'.",
		}
	}
	inner, err := b.inner.Login(ctx, l)
	if err != nil {
		return nil, err
	}
	if fault.Drop == DropAfter {
		inner.Close()
		return nil, tds.ErrDropped
	}
	return &session{server: b.server, inner: inner}, nil
}

type session struct {
	server *Server
	inner  tds.Session
}

// run is the frame of every request: faults, then the engine.
func (s *session) run(ctx context.Context, name string, w tds.ResultWriter, do func(w tds.ResultWriter) error) error {
	fault, err := s.server.faults.meet(ctx, name)
	switch {
	case err != nil:
		return nil // cancelled: the protocol answers
	case fault.Error != nil:
		return s.fail(ctx, fault, w)
	case fault.Drop == DropBefore:
		return tds.ErrDropped
	case fault.Drop == DropAfter:
		_ = do(discard{}) // nobody is left to hear of an error
		return tds.ErrDropped
	}
	return do(w)
}

// rollbackOpen is how a doomed transaction ends: through the engine, which
// tells the client.
const rollbackOpen = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"

func (s *session) fail(ctx context.Context, fault Fault, w tds.ResultWriter) error {
	if fault.Error.Class >= classEndsConnection {
		return fault.Error.wire()
	}
	if err := w.Error(fault.Error.wire()); err != nil {
		return err
	}
	if fault.dooms() {
		return s.inner.Batch(ctx, rollbackOpen, w)
	}
	return nil
}

func (s *session) Batch(ctx context.Context, text string, w tds.ResultWriter) error {
	name := s.server.log.add(text)
	return s.run(ctx, name, w, func(w tds.ResultWriter) error { return s.inner.Batch(ctx, text, w) })
}

func (s *session) RPC(ctx context.Context, proc string, params []tds.Param, w tds.ResultWriter) error {
	name := s.server.log.add(textOf(proc, params))
	return s.run(ctx, name, w, func(w tds.ResultWriter) error { return s.inner.RPC(ctx, proc, params, w) })
}

// textOf is the statement that a system procedure is asked to run.
func textOf(proc string, params []tds.Param) string {
	at := -1
	switch proc {
	case "sp_executesql":
		at = 0
	case "sp_prepexec", "sp_prepare": // handle, declarations, statement
		at = 2
	}
	if at < 0 || at >= len(params) {
		return ""
	}
	return params[at].Value.S
}

func (s *session) Begin(ctx context.Context, isolation uint8, name string, w tds.ResultWriter) error {
	return s.run(ctx, Begin, w, func(w tds.ResultWriter) error { return s.inner.Begin(ctx, isolation, name, w) })
}

func (s *session) Commit(ctx context.Context, name string, w tds.ResultWriter) error {
	return s.run(ctx, Commit, w, func(w tds.ResultWriter) error { return s.inner.Commit(ctx, name, w) })
}

func (s *session) Rollback(ctx context.Context, name string, w tds.ResultWriter) error {
	return s.run(ctx, Rollback, w, func(w tds.ResultWriter) error { return s.inner.Rollback(ctx, name, w) })
}

func (s *session) Bulk(ctx context.Context, columns []tds.Column, next func() ([]sqltype.Value, bool, error), w tds.ResultWriter) error {
	return s.run(ctx, Bulk, w, func(w tds.ResultWriter) error { return s.inner.Bulk(ctx, columns, next, w) })
}

func (s *session) Reset(ctx context.Context) { s.inner.Reset(ctx) }

func (s *session) Close() { s.inner.Close() }

// discard is the answer that nobody gets.
type discard struct{}

func (discard) Columns([]tds.Column) error           { return nil }
func (discard) Row([]sqltype.Value) error            { return nil }
func (discard) Done(int64, bool) error               { return nil }
func (discard) ReturnStatus(int32) error             { return nil }
func (discard) ReturnValue(tds.Param) error          { return nil }
func (discard) Error(*tds.Error) error               { return nil }
func (discard) Info(*tds.Error) error                { return nil }
func (discard) Flush() error                         { return nil }
func (discard) TransactionBegan(uint64) error        { return nil }
func (discard) TransactionCommitted(uint64) error    { return nil }
func (discard) TransactionRolledBack(uint64) error   { return nil }
func (discard) DatabaseChanged(string, string) error { return nil }
func (discard) ExpectBulk([]tds.Column) error        { return nil }
