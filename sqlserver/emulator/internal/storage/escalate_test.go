package storage_test

import (
	"errors"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// held counts a session's row locks and returns its table lock.
func (o *outbox) held(s *storage.Session) (table storage.LockMode, rows int) {
	for _, l := range o.db.Locks() {
		if l.SessionID != s.ID() {
			continue
		}
		if l.Resource == storage.ObjectLock {
			table = l.Mode
		} else {
			rows++
		}
	}
	return table, rows
}

func TestEscalation(t *testing.T) {
	o := newOutbox(t, 8000)
	before := o.db.Counters().Escalations
	s := o.session()
	tx := begin(s)
	claim := o.claiming()
	_, err := read(t.Context(), tx, o.table, claim, 4999)
	o.must(err)
	if table, rows := o.held(s); table.String() != "IX" || rows != 4999 {
		t.Errorf("after 4,999 rows: table %v, %d row locks", table, rows)
	}
	// A new statement counts from zero, but the rows it has cost nothing again.
	tx.BeginStatement()
	_, err = read(t.Context(), tx, o.table, claim, 6000)
	o.must(err)
	if table, rows := o.held(s); table.String() != "IX" || rows != 6000 {
		t.Errorf("after 6,000 rows in two statements: table %v, %d row locks", table, rows)
	}
	tx.BeginStatement()
	request := claim
	request.Index, request.Lower, request.Upper = nil, storage.Bound{}, storage.Bound{}
	_, err = read(t.Context(), tx, o.table, request, 5001)
	o.must(err)
	if table, rows := o.held(s); table.String() != "X" || rows != 0 {
		t.Errorf("after 5,001 rows in one statement: table %v, %d row locks", table, rows)
	}
	if n := o.db.Counters().Escalations - before; n != 1 {
		t.Errorf("counted %d escalations", n)
	}
	// READPAST does not skip a table lock: it waits, here without patience.
	other := o.session()
	other.LockTimeout = 0
	if _, err := read(t.Context(), begin(other), o.table, claim, 1); !errors.Is(err, storage.ErrLockTimeout) {
		t.Errorf("a claim against an escalated lock: %v", err)
	}
	o.must(tx.Commit())
}

func TestEscalationGivesWay(t *testing.T) {
	o := newOutbox(t, 8000)
	other := o.begin()
	o.wantIDs("the other's row", o.read(other, byID(8000, storage.U)), 8000)
	s := o.session()
	tx := begin(s)
	_, err := read(t.Context(), tx, o.table, o.claiming(), 6000)
	o.must(err)
	if table, rows := o.held(s); table.String() != "IX" || rows != 6000 {
		t.Errorf("with another in the way: table %v, %d row locks", table, rows)
	}
	other.Rollback()
	// 5,000 and 6,250 are tried, not what lies between.
	_, err = read(t.Context(), tx, o.table, o.claiming(), 6249)
	o.must(err)
	if table, rows := o.held(s); table.String() != "IX" || rows != 6249 {
		t.Errorf("before the second try: table %v, %d row locks", table, rows)
	}
	_, err = read(t.Context(), tx, o.table, o.claiming(), 6250)
	o.must(err)
	if table, rows := o.held(s); table.String() != "X" || rows != 0 {
		t.Errorf("after the second try: table %v, %d row locks", table, rows)
	}
}

func TestSharedEscalation(t *testing.T) {
	o := newOutbox(t, 5500)
	s := o.session()
	tx := s.Begin(storage.RepeatableRead)
	tx.BeginStatement()
	o.read(tx, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.S})
	if table, rows := o.held(s); table.String() != "S" || rows != 0 {
		t.Errorf("table %v, %d row locks", table, rows)
	}
	if _, err := read(t.Context(), o.begin(), o.table, byID(1, storage.S), 0); err != nil {
		t.Errorf("another reader: %v", err)
	}
}

func TestInsertEscalates(t *testing.T) {
	o := newOutbox(t, 0)
	s := o.session()
	tx := begin(s)
	for id := range int64(6000) {
		o.must(tx.Insert(t.Context(), o.table, values(id, "order", 0, "p")))
	}
	if table, rows := o.held(s); table.String() != "X" || rows != 0 {
		t.Errorf("table %v, %d row locks", table, rows)
	}
	tx.Rollback()
	o.wantSound()
}
