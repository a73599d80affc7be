package storage_test

import (
	"runtime"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// The life of an outbox row: inserted, flipped, purged. 100,000 of them leave
// nothing behind, neither by the counters nor in memory.
func TestNothingPilesUp(t *testing.T) {
	const rounds, batch = 400, 250
	o := newOutbox(t, 0)
	s := o.session()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before uint64
	for round := range int64(rounds) {
		if round == 20 {
			before = heap()
		}
		statement := func(f func(tx *storage.Txn, id int64) error) {
			tx := begin(s)
			for i := range int64(batch) {
				o.must(f(tx, round*batch+i))
			}
			o.must(tx.Commit())
		}
		statement(func(tx *storage.Txn, id int64) error {
			return tx.Insert(t.Context(), o.table, values(id, "order", 0, "a payload of some length, to be seen in the heap"))
		})
		statement(func(tx *storage.Txn, id int64) error { return o.set(tx, id, colStatus, number(1)) })
		statement(o.remove)
	}
	after := heap()
	o.wantSound()
	if n := o.table.Rows(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	// 95,000 rows went through in between; a leak of one pointer each would show.
	if grown := int64(after) - int64(before); grown > 95_000*8 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// An open snapshot keeps what it needs and no more; its end frees it all.
func TestSnapshotHoldsHistory(t *testing.T) {
	o := newOutbox(t, 10)
	o.autocommit(func(tx *storage.Txn) error { return o.set(tx, 1, colPayload, text("v1")) })
	if c := o.db.Counters(); c.Versions != 0 {
		t.Errorf("%d versions without a snapshot", c.Versions)
	}
	old := o.begin()
	for _, v := range []string{"v2", "v3"} {
		o.autocommit(func(tx *storage.Txn) error { return o.set(tx, 1, colPayload, text(v)) })
	}
	middle := o.begin()
	o.autocommit(func(tx *storage.Txn) error { return o.set(tx, 1, colStatus, number(1)) })
	o.autocommit(func(tx *storage.Txn) error { return o.remove(tx, 2) })
	if c := o.db.Counters(); c.Versions != 4 || c.Ghosts != 3 {
		t.Errorf("two snapshots hold %d versions and %d ghosts, want 4 and 3", c.Versions, c.Ghosts)
	}
	payload := func(tx *storage.Txn) string {
		return o.read(tx, storage.ScanRequest{Index: o.claim})[0].Values[colPayload].S
	}
	if a, b := payload(old), payload(middle); a != "v1" || b != "v3" {
		t.Errorf("the snapshots see %q and %q, want v1 and v3", a, b)
	}
	old.EndStatement()
	if c := o.db.Counters(); c.Versions != 2 || c.Ghosts != 3 {
		t.Errorf("the younger snapshot holds %d versions and %d ghosts, want 2 and 3", c.Versions, c.Ghosts)
	}
	if got := payload(middle); got != "v3" {
		t.Errorf("the younger snapshot sees %q now", got)
	}
	middle.EndStatement()
	old.Rollback()
	middle.Rollback()
	o.wantSound()
}

// A row that comes back to a key while a snapshot still keeps the ghost there
// revives it; if that is rolled back, the ghost must go all the same.
func TestRevivedGhostIsCleanedUp(t *testing.T) {
	for _, commit := range []bool{true, false} {
		o := newOutbox(t, 1)
		old := o.begin()
		o.autocommit(func(tx *storage.Txn) error { return o.set(tx, 1, colStatus, number(1)) })
		back := o.begin()
		o.must(o.set(back, 1, colStatus, number(0)))
		// The ghost was nobody's lock; alive again it is as locked as a new key.
		beside := o.begin()
		o.wantIDs("a claim beside it", o.read(beside, o.claiming()))
		beside.Rollback()
		old.Rollback() // cleans up after the first change, and meets a row in use
		if commit {
			o.must(back.Commit())
		} else {
			back.Rollback()
		}
		o.wantSound()
	}
}
