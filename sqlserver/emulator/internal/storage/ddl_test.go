package storage_test

import (
	"errors"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func TestCreateAndDropIndexRollBack(t *testing.T) {
	o := newOutbox(t, 4)
	tx := o.begin()
	o.must(o.set(tx, 1, colStatus, number(1)))
	retry, err := o.table.CreateIndex(t.Context(), tx, storage.IndexSpec{
		Name: "IX_retry", Key: []storage.KeyPart{part(colStatus)},
		Filter: func(row []sqltype.Value) bool { return row[colStatus].N == 1 },
	})
	o.must(err)
	if retry.Rows() != 1 || len(o.table.Indexes()) != 2 {
		t.Errorf("the new index has %d rows; the table has %d indexes", retry.Rows(), len(o.table.Indexes()))
	}
	o.must(o.set(tx, 2, colStatus, number(1)))
	o.must(o.table.DropIndex(t.Context(), tx, o.claim))
	o.must(o.set(tx, 3, colStatus, number(1)))
	o.wantIDs("the new index", o.read(tx, storage.ScanRequest{Index: retry}), 1, 2, 3)
	if _, err := read(t.Context(), tx, o.table, o.claiming(), 0); !errors.Is(err, storage.ErrIndexGone) {
		t.Errorf("a scan of a dropped index: %v", err)
	}
	tx.Rollback()
	o.wantSound()
	if all := o.table.Indexes(); len(all) != 1 || all[0] != o.claim {
		t.Errorf("the table has %d indexes again", len(all))
	}
	o.wantIDs("the old index", o.read(o.begin(), o.claiming()), 1, 2, 3, 4)
}

func TestCreateUniqueIndexOverDuplicates(t *testing.T) {
	o := newOutbox(t, 2)
	tx := o.begin()
	_, err := o.table.CreateIndex(t.Context(), tx, storage.IndexSpec{Name: "UX", Key: []storage.KeyPart{part(colStatus)}, Unique: true})
	wantDuplicate(t, err, "UX", 0)
	tx.Rollback()
	o.wantSound()
}

func TestRewrite(t *testing.T) {
	widen := func(old []sqltype.Value) ([]sqltype.Value, error) { return append(old, text("more")), nil }
	bubble(t, 3, func(t *testing.T, o *outbox) {
		reader := o.begin()
		o.read(reader, storage.ScanRequest{})
		tx, late := o.begin(), o.begin()
		a := o.attempt(func() error { return o.table.Rewrite(t.Context(), tx, 5, widen) })
		a.wantWaiting("a rewrite while a statement reads")
		reader.EndStatement()
		o.must(a.wantDone("the rewrite"))

		// A reader whose statement began before the rewrite waits, and then sees
		// the rows in their new width.
		var rows []storage.Row
		b := o.attempt(func() (err error) {
			rows, err = read(t.Context(), late, o.table, storage.ScanRequest{}, 0)
			return err
		})
		b.wantWaiting("a reader")
		o.must(tx.Commit())
		o.must(b.wantDone("the reader"))
		if len(rows) != 3 || len(rows[0].Values) != 5 {
			t.Errorf("read %v", rows)
		}
		late.Rollback()
		o.wantSound()
	})
}

func TestRewriteRollsBack(t *testing.T) {
	o := newOutbox(t, 3)
	tx := o.begin()
	failure := errors.New("does not convert")
	err := o.table.Rewrite(t.Context(), tx, 5, func(old []sqltype.Value) ([]sqltype.Value, error) {
		if old[colID].N == 2 {
			return nil, failure
		}
		return append(old, text("more")), nil
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	tx.Rollback()
	o.wantSound()
	o.autocommit(func(tx *storage.Txn) error { return tx.Insert(t.Context(), o.table, values(4, "order", 0, "p")) })
}

func TestDropWaitsForUsers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		user, owner := o.begin(), o.begin()
		o.read(user, byID(1, storage.U))
		a := o.attempt(func() error { return o.table.Drop(t.Context(), owner) })
		a.wantWaiting("a drop")
		user.Rollback()
		o.must(a.wantDone("the drop"))
	})
}
