package tds

import (
	"context"
	"strings"
)

// Requests of the transaction manager (MS-TDS 2.2.6.9).
const (
	transactionBegin    = 5
	transactionCommit   = 7
	transactionRollback = 8
	transactionSave     = 9

	// transactionThenBegin in the flags of a commit or rollback asks for a new
	// transaction at once.
	transactionThenBegin = 0x01
)

// transactionRequest is a decoded transaction manager request.
type transactionRequest struct {
	kind      uint16
	isolation uint8
	name      string
	thenBegin bool
	next      string // name of the transaction that thenBegin asks for
}

func decodeTransaction(m *message) transactionRequest {
	t := transactionRequest{kind: m.u16()}
	switch t.kind {
	case transactionBegin:
		t.isolation, t.name = m.u8(), m.shortText()
	case transactionCommit, transactionRollback:
		t.name = m.shortText()
		if t.thenBegin = m.u8()&transactionThenBegin != 0; t.thenBegin {
			t.isolation, t.next = m.u8(), m.shortText()
		}
	case transactionSave:
		t.name = m.shortText()
	}
	return t
}

func (t transactionRequest) run(ctx context.Context, s Session, w ResultWriter) error {
	var err error
	switch t.kind {
	case transactionBegin:
		return s.Begin(ctx, t.isolation, t.name, w)
	case transactionCommit:
		err = s.Commit(ctx, t.name, w)
	case transactionRollback:
		err = s.Rollback(ctx, t.name, w)
	case transactionSave:
		// The same work, so the engine has it once.
		return s.Batch(ctx, "SAVE TRANSACTION ["+strings.ReplaceAll(t.name, "]", "]]")+"]", w)
	default:
		return w.Error(&Error{Number: errorNoDTC, State: 3, Class: classUser, Message: messageNoDTC})
	}
	if err == nil && t.thenBegin {
		err = s.Begin(ctx, t.isolation, t.next, w)
	}
	return err
}
