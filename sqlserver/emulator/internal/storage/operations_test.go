package storage_test

import (
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// A flip of the outbox's status changes the row in its place in the clustered
// index, and its entry leaves the filtered one; a rollback takes nothing back.
func TestOperationsCountWhatHappensToEntries(t *testing.T) {
	o := newOutbox(t, 10)
	check := func(when string, base, claim storage.Operations) {
		t.Helper()
		if got := o.table.Base().Operations(); got != base {
			t.Errorf("%s: clustered index %+v, want %+v", when, got, base)
		}
		if got := o.claim.Operations(); got != claim {
			t.Errorf("%s: claim index %+v, want %+v", when, got, claim)
		}
	}
	check("after 10 inserts", storage.Operations{Inserts: 10}, storage.Operations{Inserts: 10})
	tx := o.begin()
	rows, err := read(t.Context(), tx, o.table, byID(3, storage.U), 1)
	o.must(err)
	o.must(tx.Update(t.Context(), o.table, rows[0], with(rows[0].Values, colStatus, number(1))))
	check("after a flip", storage.Operations{Inserts: 10, Updates: 1}, storage.Operations{Inserts: 10, Ghosts: 1})
	rows, err = read(t.Context(), tx, o.table, byID(4, storage.U), 1)
	o.must(err)
	o.must(tx.Update(t.Context(), o.table, rows[0], with(rows[0].Values, colPayload, text("q"))))
	check("after a new payload", storage.Operations{Inserts: 10, Updates: 2}, storage.Operations{Inserts: 10, Updates: 1, Ghosts: 1})
	tx.Rollback()
	check("after the rollback", storage.Operations{Inserts: 10, Updates: 2}, storage.Operations{Inserts: 10, Updates: 1, Ghosts: 1})
	o.table.Base().ResetOperations()
	o.claim.ResetOperations()
	check("after a reset", storage.Operations{}, storage.Operations{})
}

func TestOperationsCountPromotions(t *testing.T) {
	o := newOutbox(t, 6000)
	o.table.Base().ResetOperations()
	other := o.begin()
	_, err := read(t.Context(), other, o.table, byID(6000, storage.U), 1) // keeps the table from being locked
	o.must(err)
	tx := o.begin()
	_, err = read(t.Context(), tx, o.table, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.U, ReadPast: true}, 5500)
	o.must(err)
	if got := o.table.Base().Operations(); got.PromotionAttempts != 1 || got.Promotions != 0 {
		t.Errorf("against another's lock: %+v", got)
	}
	other.Rollback()
	tx.BeginStatement()
	tx.Rollback()
	tx = o.begin()
	_, err = read(t.Context(), tx, o.table, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.U, ReadPast: true}, 5500)
	o.must(err)
	if got := o.table.Base().Operations(); got.PromotionAttempts != 2 || got.Promotions != 1 {
		t.Errorf("alone: %+v", got)
	}
}
