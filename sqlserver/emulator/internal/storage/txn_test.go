package storage_test

import (
	"errors"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// READ_COMMITTED_SNAPSHOT: what commits between two statements is seen by the
// second, what commits in the middle of one is not.
func TestStatementSnapshot(t *testing.T) {
	o := newOutbox(t, 600)
	tx := o.begin()
	c := tx.Scan(t.Context(), o.table, storage.ScanRequest{Index: o.claim})
	_, _, err := c.Next()
	o.must(err)
	o.autocommit(func(w *storage.Txn) error {
		return errors.Join(
			o.set(w, 500, colPayload, text("changed")),
			o.set(w, 501, colStatus, number(1)),
			o.remove(w, 502),
			w.Insert(t.Context(), o.table, values(601, "order", 0, "new")))
	})
	n := 1
	for row, ok, err := c.Next(); ok; row, ok, err = c.Next() {
		o.must(err)
		n++
		if got := row.Values[colPayload].S; got != "p" {
			t.Errorf("in the middle of a statement row %d changed to %q", row.Values[colID].N, got)
		}
	}
	if n != 600 {
		t.Errorf("the statement saw %d rows, want the 600 it began with", n)
	}

	tx.BeginStatement()
	rows := o.read(tx, storage.ScanRequest{Index: o.claim, Lower: bound(true, text("order"), number(499))})
	if len(rows) != 101 || rows[1].Values[colPayload].S != "changed" || rows[2].Values[colID].N != 503 {
		t.Errorf("the next statement sees %d rows: %v", len(rows), ids(rows[:4]))
	}
	tx.EndStatement()
	tx.Rollback()
	o.wantSound()
}

func TestUncommittedIsInvisible(t *testing.T) {
	o := newOutbox(t, 3)
	writer := o.begin()
	o.must(o.set(writer, 1, colStatus, number(1)))
	o.must(o.remove(writer, 2))
	o.must(writer.Insert(t.Context(), o.table, values(4, "order", 0, "new")))
	for _, ix := range []*storage.Index{nil, o.claim} {
		o.wantIDs("others", o.read(o.begin(), storage.ScanRequest{Index: ix}), 1, 2, 3)
	}
	o.wantIDs("itself", o.read(writer, storage.ScanRequest{Index: o.claim}), 3, 4)
	o.wantIDs("itself, by key", o.read(writer, storage.ScanRequest{}), 1, 3, 4)
	o.must(writer.Commit())
	if err := writer.Commit(); !errors.Is(err, storage.ErrTxnDone) {
		t.Errorf("a second commit: %v", err)
	}
	o.wantIDs("others, after the commit", o.read(o.begin(), storage.ScanRequest{Index: o.claim}), 3, 4)
}

func TestSnapshotIsolation(t *testing.T) {
	o := newOutbox(t, 2)
	tx := o.session().Begin(storage.Snapshot)
	tx.BeginStatement()
	o.autocommit(func(w *storage.Txn) error { return o.set(w, 1, colPayload, text("changed")) })
	tx.BeginStatement()
	if rows := o.read(tx, storage.ScanRequest{}); rows[0].Values[colPayload].S != "p" {
		t.Errorf("the second statement has a newer snapshot: %v", rows)
	}
	if err := o.set(tx, 1, colPayload, text("mine")); !errors.Is(err, storage.ErrUpdateConflict) {
		t.Errorf("a lost update was allowed: %v", err)
	}
	o.must(o.set(tx, 2, colPayload, text("mine")))
	o.must(tx.Commit())
	o.wantSound()
}

func TestRollbackRestoresEverything(t *testing.T) {
	o := newOutbox(t, 5)
	tx := o.begin()
	change := func(tx *storage.Txn) {
		o.must(o.set(tx, 1, colStatus, number(1)))
		o.must(o.set(tx, 1, colStatus, number(0)))
		o.must(o.set(tx, 1, colStatus, number(2)))
		o.must(o.set(tx, 2, colType, text("zebra")))
		o.must(o.set(tx, 3, colID, number(30)))
		o.must(o.set(tx, 30, colID, number(3)))
		o.must(o.remove(tx, 4))
		o.must(tx.Insert(t.Context(), o.table, values(4, "order", 0, "again")))
		o.must(tx.Insert(t.Context(), o.table, values(6, "order", 0, "new")))
		o.must(o.remove(tx, 6))
		o.must(o.set(tx, 5, colPayload, text("x")))
	}
	change(tx)
	tx.Rollback()
	o.wantSound()
	rows := o.read(o.begin(), o.claiming())
	o.wantIDs("after the rollback", rows, 1, 2, 3, 4, 5)
	for _, row := range rows {
		if row.Values[colPayload].S != "p" {
			t.Errorf("row %v was not restored", row.Values)
		}
	}

	o2 := newOutbox(t, 5)
	tx = o2.begin()
	o, first := o2, tx.Savepoint()
	change(tx)
	second := tx.Savepoint()
	o.must(o.set(tx, 5, colPayload, text("y")))
	tx.RollbackTo(second)
	o.wantIDs("at the second savepoint", o.read(tx, storage.ScanRequest{}), 1, 2, 3, 4, 5)
	tx.RollbackTo(first)
	o.must(o.set(tx, 2, colStatus, number(1)))
	o.must(tx.Commit())
	o.wantSound()
	o.wantIDs("after the commit", o.read(o.begin(), o.claiming()), 1, 3, 4, 5)
}

func TestCloseRollsBack(t *testing.T) {
	bubble(t, 2, func(t *testing.T, o *outbox) {
		s := o.session()
		tx := begin(s)
		o.must(o.set(tx, 1, colStatus, number(1)))
		reader := o.begin()
		request := o.claiming()
		request.ReadPast = false
		var rows []storage.Row
		a := o.attempt(func() (err error) {
			rows, err = read(t.Context(), reader, o.table, request, 0)
			return err
		})
		a.wantWaiting("a reader")
		s.Close()
		o.must(a.wantDone("the reader"))
		o.wantIDs("the reader", rows, 1, 2)
		if c := o.db.Counters(); c.Rollbacks != 1 {
			t.Errorf("counted %d rollbacks", c.Rollbacks)
		}
		reader.Rollback()
		o.wantSound()
		if err := o.set(tx, 1, colStatus, number(1)); !errors.Is(err, storage.ErrTxnDone) {
			t.Errorf("a closed session's transaction goes on: %v", err)
		}
	})
}
