package storage_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func TestUpdateLocks(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		first, second := o.begin(), o.begin()
		o.wantIDs("the first", o.read(first, byID(1, storage.U)), 1)
		// A shared lock goes with an update lock, a version needs none at all.
		o.wantIDs("a reader", o.read(o.begin(), byID(1, storage.S)), 1)
		var rows []storage.Row
		a := o.attempt(func() (err error) {
			rows, err = read(t.Context(), second, o.table, byID(1, storage.U), 0)
			return err
		})
		a.wantWaiting("a second update lock")
		o.must(o.set(first, 1, colPayload, text("changed")))
		o.must(first.Commit())
		o.must(a.wantDone("the second"))
		// After the wait the row is read again.
		if len(rows) != 1 || rows[0].Values[colPayload].S != "changed" {
			t.Errorf("the second read %v", rows)
		}
	})
}

// What happens to a row while a locking reader waits for it decides what the
// reader gets.
func TestRereadAfterWait(t *testing.T) {
	scan := func(o *outbox) storage.ScanRequest {
		r := o.claiming()
		r.ReadPast = false
		return r
	}
	for _, test := range []struct {
		name   string
		change func(o *outbox, tx *storage.Txn) error
		commit bool
		want   []int64
	}{
		{"deleted", func(o *outbox, tx *storage.Txn) error { return o.remove(tx, 1) }, true, []int64{2}},
		{"delete rolled back", func(o *outbox, tx *storage.Txn) error { return o.remove(tx, 1) }, false, []int64{1, 2}},
		{"left the filter", func(o *outbox, tx *storage.Txn) error { return o.set(tx, 1, colStatus, number(1)) }, true, []int64{2}},
		{"left it, rolled back", func(o *outbox, tx *storage.Txn) error { return o.set(tx, 1, colStatus, number(1)) }, false, []int64{1, 2}},
		{"left the range", func(o *outbox, tx *storage.Txn) error { return o.set(tx, 1, colType, text("zebra")) }, true, []int64{2}},
		{"moved on in the range", func(o *outbox, tx *storage.Txn) error { return o.set(tx, 1, colID, number(9)) }, true, []int64{2, 9}},
		{"left and came back", func(o *outbox, tx *storage.Txn) error {
			return errors.Join(o.set(tx, 1, colStatus, number(1)), o.set(tx, 1, colStatus, number(0)))
		}, true, []int64{1, 2}},
		{"deleted and inserted again", func(o *outbox, tx *storage.Txn) error {
			return errors.Join(o.remove(tx, 1), tx.Insert(o.Context(), o.table, values(1, "order", 0, "new")))
		}, true, []int64{1, 2}},
		{"another came in behind it", func(o *outbox, tx *storage.Txn) error {
			return errors.Join(o.remove(tx, 1), tx.Insert(o.Context(), o.table, values(3, "order", 0, "new")))
		}, true, []int64{2, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, o *outbox) {
				writer, s := o.begin(), o.session()
				reader := begin(s)
				o.must(test.change(o, writer))
				var rows []storage.Row
				a := o.attempt(func() (err error) {
					rows, err = read(o.Context(), reader, o.table, scan(o), 0)
					return err
				})
				// The row left the index, but its ghost is there, and locked.
				a.wantWaiting("a locking reader")
				if test.commit {
					o.must(writer.Commit())
				} else {
					writer.Rollback()
				}
				o.must(a.wantDone("the reader"))
				o.wantIDs("the reader", rows, test.want...)
				if _, n := o.held(s); n != len(rows) {
					t.Errorf("%d row locks for %d rows", n, len(rows))
				}
				reader.Rollback()
				o.wantSound()
			})
		})
	}
}

// A wait can be long: what came into the range meanwhile is met too.
func TestScanGoesOnFromTheWait(t *testing.T) {
	bubble(t, 2, func(t *testing.T, o *outbox) {
		writer, reader := o.begin(), o.begin()
		o.must(o.set(writer, 1, colPayload, text("x")))
		var rows []storage.Row
		a := o.attempt(func() (err error) {
			rows, err = read(t.Context(), reader, o.table, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.U}, 0)
			return err
		})
		a.wantWaiting("a scan")
		o.autocommit(func(tx *storage.Txn) error { return tx.Insert(t.Context(), o.table, values(3, "order", 0, "p")) })
		o.must(writer.Commit())
		o.must(a.wantDone("the scan"))
		o.wantIDs("the scan", rows, 1, 2, 3)
	})
}

func TestReadPastMeetsGhosts(t *testing.T) {
	o := newOutbox(t, 3)
	writer := o.begin()
	o.must(o.set(writer, 2, colStatus, number(1)))
	o.wantIDs("without waiting", o.read(o.begin(), o.claiming()), 1, 3)
	if n := o.db.Counters().Skipped; n != 1 {
		t.Errorf("%d rows were skipped, want the ghost", n)
	}
}

func TestReadPastWaitsForTheTable(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		owner, claimer := o.begin(), o.begin()
		o.must(owner.LockTable(t.Context(), o.table, storage.X))
		var rows []storage.Row
		a := o.attempt(func() (err error) {
			rows, err = read(t.Context(), claimer, o.table, o.claiming(), 0)
			return err
		})
		a.wantWaiting("READPAST against a table lock")
		o.must(owner.Commit())
		o.must(a.wantDone("the claim"))
		o.wantIDs("the claim", rows, 1)
	})
}

// With Base the row's own key is locked after the index key, and READPAST
// passes over a row when either is taken.
func TestBaseLock(t *testing.T) {
	o := newOutbox(t, 2)
	s := o.session()
	tx := begin(s)
	o.read(o.begin(), byID(1, storage.U)) // base of 1 only
	request := o.claiming()
	o.wantIDs("the covering index", o.read(tx, request), 1, 2)
	tx.Rollback()
	tx = begin(s)
	request.Base = true
	o.wantIDs("with a lookup", o.read(tx, request), 2)
	if _, rows := o.held(s); rows != 2 {
		t.Errorf("%d row locks, want index key and base of one row", rows)
	}
}

// A change to a column beside the key locks the index entry, one elsewhere
// does not.
func TestIncludedColumnIsLocked(t *testing.T) {
	o := newOutbox(t, 3)
	var slim *storage.Index
	o.autocommit(func(tx *storage.Txn) (err error) {
		slim, err = o.table.CreateIndex(t.Context(), tx, storage.IndexSpec{Name: "IX_slim", Key: []storage.KeyPart{part(colType)}})
		return err
	})
	writer := o.begin()
	o.must(o.set(writer, 2, colPayload, text("x")))
	request := o.claiming()
	o.wantIDs("an index that includes the column", o.read(o.begin(), request), 1, 3)
	request.Index = slim
	rows := o.read(o.begin(), request)
	o.wantIDs("an index that does not", rows, 1, 2, 3)
	if got := rows[1].Values[colPayload].S; got != "p" {
		t.Errorf("read the uncommitted payload %q", got)
	}
}

// Claims from many goroutines are disjoint and complete.
func TestClaimsAreDisjoint(t *testing.T) {
	const events, batch, lanes = 6000, 50, 8
	o := newOutbox(t, events)
	var mu sync.Mutex
	var claimed []int64
	var lanesDone sync.WaitGroup
	for lane := range lanes {
		lanesDone.Go(func() {
			s := o.db.NewSession()
			defer s.Close()
			for round := 0; ; round++ {
				tx := begin(s)
				rows, err := read(t.Context(), tx, o.table, o.claiming(), batch)
				for _, row := range rows {
					err = errors.Join(err, tx.Update(t.Context(), o.table, row, with(row.Values, colStatus, number(1))))
				}
				if err != nil {
					t.Error(err)
				}
				if (round+lane)%5 == 4 { // some claims fail and give their rows back
					tx.Rollback()
					continue
				}
				if err := tx.Commit(); err != nil || t.Failed() {
					return
				}
				mu.Lock()
				claimed = append(claimed, ids(rows)...)
				enough := len(claimed) >= events
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	lanesDone.Wait()
	slices.Sort(claimed)
	if unique := slices.Compact(slices.Clone(claimed)); len(claimed) != events || len(unique) != events {
		t.Errorf("%d events were claimed, %d different ones, want %d", len(claimed), len(unique), events)
	}
	if n := o.claim.Rows(); n != 0 {
		t.Errorf("the claim index counts %d rows", n)
	}
	o.wantSound()
}

// READCOMMITTEDLOCK never returns what is not committed.
func TestLockedReadWaitsForWriter(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		writer := o.begin()
		o.must(o.set(writer, 1, colPayload, text("draft")))
		if rows := o.read(o.begin(), storage.ScanRequest{Mode: storage.ReadDirty}); rows[0].Values[colPayload].S != "draft" {
			t.Errorf("NOLOCK read %v", rows)
		}
		var rows []storage.Row
		reader := o.begin()
		a := o.attempt(func() (err error) {
			at := storage.Bound{Prefix: []sqltype.Value{number(1)}, Inclusive: true, Set: true}
			rows, err = read(t.Context(), reader, o.table, storage.ScanRequest{Lower: at, Mode: storage.ReadLocked, Lock: storage.S}, 0)
			return err
		})
		a.wantWaiting("a locking reader")
		writer.Rollback()
		o.must(a.wantDone("the reader"))
		if len(rows) != 1 || rows[0].Values[colPayload].S != "p" {
			t.Errorf("read %v", rows)
		}
	})
}
