package storage_test

import (
	"errors"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func wantDuplicate(t testing.TB, err error, index string, id int64) {
	t.Helper()
	var duplicate *storage.DuplicateKeyError
	if !errors.As(err, &duplicate) {
		t.Errorf("got %v, want a duplicate key", err)
		return
	}
	if duplicate.Index.Spec().Name != index || duplicate.Key[0].N != id {
		t.Errorf("duplicate key %v in %s", duplicate.Key, duplicate.Index.Spec().Name)
	}
}

func TestDuplicateKey(t *testing.T) {
	o := newOutbox(t, 2)
	tx := o.begin()
	insert := func(id int64) error { return tx.Insert(t.Context(), o.table, values(id, "order", 0, "p")) }
	wantDuplicate(t, insert(1), "PK", 1)
	o.must(insert(3))
	wantDuplicate(t, insert(3), "PK", 3)
	wantDuplicate(t, o.set(tx, 1, colID, number(2)), "PK", 2)
	o.must(o.set(tx, 1, colID, number(1)))
	// A row that holds U, as a claim does, is no reason to wait.
	o.read(o.begin(), byID(2, storage.U))
	wantDuplicate(t, insert(2), "PK", 2)
	// A key that was freed in this transaction can be taken.
	o.must(o.remove(tx, 1))
	o.must(insert(1))
	o.must(o.set(tx, 3, colID, number(4)))
	o.must(insert(3))
	o.must(tx.Commit())
	o.wantIDs("after all", o.read(o.begin(), storage.ScanRequest{}), 1, 2, 3, 4)
}

// An open transaction's insert or delete of the same key is waited for; what
// it does decides.
func TestInsertWaitsForTheKey(t *testing.T) {
	for _, test := range []struct {
		name      string
		change    func(o *outbox, tx *storage.Txn) error
		commit    bool
		duplicate bool
	}{
		{"inserted, committed", insertNine, true, true},
		{"inserted, rolled back", insertNine, false, false},
		{"deleted, committed", removeNine, true, false},
		{"deleted, rolled back", removeNine, false, true},
		{"moved away, committed", moveNine, true, false},
		{"moved away, rolled back", moveNine, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, o *outbox) {
				if test.name[0] != 'i' {
					o.autocommit(func(tx *storage.Txn) error { return insertNine(o, tx) })
				}
				first, second := o.begin(), o.begin()
				o.must(test.change(o, first))
				a := o.attempt(func() error { return insertNine(o, second) })
				a.wantWaiting("an insert of the same key")
				if test.commit {
					o.must(first.Commit())
				} else {
					first.Rollback()
				}
				err := a.wantDone("the insert")
				if test.duplicate {
					wantDuplicate(t, err, "PK", 9)
				} else {
					o.must(err)
				}
				o.must(second.Commit())
				o.wantSound()
			})
		})
	}
}

func insertNine(o *outbox, tx *storage.Txn) error {
	return tx.Insert(o.Context(), o.table, values(9, "order", 0, "nine"))
}
func removeNine(o *outbox, tx *storage.Txn) error { return o.remove(tx, 9) }

func moveNine(o *outbox, tx *storage.Txn) error { return o.set(tx, 9, colID, number(10)) }

// A snapshot keeps the ghost of a committed delete; the key is free all the
// same.
func TestGhostKeptForSnapshotFreesTheKey(t *testing.T) {
	o := newOutbox(t, 1)
	old := o.begin()
	o.autocommit(func(tx *storage.Txn) error { return o.remove(tx, 1) })
	o.autocommit(func(tx *storage.Txn) error {
		return tx.Insert(t.Context(), o.table, values(1, "order", 0, "second"))
	})
	o.autocommit(func(tx *storage.Txn) error { return o.set(tx, 1, colStatus, number(1)) })
	o.autocommit(func(tx *storage.Txn) error { return o.set(tx, 1, colStatus, number(0)) })
	rows := o.read(old, storage.ScanRequest{Index: o.claim})
	if len(rows) != 1 || rows[0].Values[colPayload].S != "p" {
		t.Errorf("the old snapshot sees %v", rows)
	}
	o.wantIDs("a new one", o.read(o.begin(), storage.ScanRequest{Index: o.claim}), 1)
	old.Rollback()
}
