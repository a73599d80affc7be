package storage_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func bound(inclusive bool, prefix ...sqltype.Value) storage.Bound {
	return storage.Bound{Prefix: prefix, Inclusive: inclusive, Set: true}
}

func TestScanRanges(t *testing.T) {
	o := newOutbox(t, 0)
	var desc *storage.Index
	o.autocommit(func(tx *storage.Txn) error {
		down := part(colID)
		down.Desc = true
		var err error
		desc, err = o.table.CreateIndex(t.Context(), tx, storage.IndexSpec{Name: "IX_desc", Key: []storage.KeyPart{part(colType), down}})
		return err
	})
	o.autocommit(func(tx *storage.Txn) error {
		for id, typ := range []string{"a", "a", "b", "b", "b", "c"} {
			if err := tx.Insert(t.Context(), o.table, values(int64(id), typ, 0, "p")); err != nil {
				return err
			}
		}
		return nil
	})
	for _, test := range []struct {
		name    string
		request storage.ScanRequest
		want    []int64
	}{
		{"everything", storage.ScanRequest{}, []int64{0, 1, 2, 3, 4, 5}},
		{"everything, backwards", storage.ScanRequest{Reverse: true}, []int64{5, 4, 3, 2, 1, 0}},
		{"id > 3", storage.ScanRequest{Lower: bound(false, number(3))}, []int64{4, 5}},
		{"id >= 3", storage.ScanRequest{Lower: bound(true, number(3))}, []int64{3, 4, 5}},
		{"id < 3", storage.ScanRequest{Upper: bound(false, number(3))}, []int64{0, 1, 2}},
		{"id <= 3, backwards", storage.ScanRequest{Upper: bound(true, number(3)), Reverse: true}, []int64{3, 2, 1, 0}},
		{"1 < id < 4", storage.ScanRequest{Lower: bound(false, number(1)), Upper: bound(false, number(4))}, []int64{2, 3}},
		{"4 < id < 1", storage.ScanRequest{Lower: bound(false, number(4)), Upper: bound(false, number(1))}, nil},
		{"type = b", storage.ScanRequest{Index: o.claim, Lower: bound(true, text("b")), Upper: bound(true, text("b"))}, []int64{2, 3, 4}},
		{"type > b", storage.ScanRequest{Index: o.claim, Lower: bound(false, text("b"))}, []int64{5}},
		{"type < b, backwards", storage.ScanRequest{Index: o.claim, Upper: bound(false, text("b")), Reverse: true}, []int64{1, 0}},
		{
			"type = b and id > 2",
			storage.ScanRequest{Index: o.claim, Lower: bound(false, text("b"), number(2)), Upper: bound(true, text("b"))},
			[]int64{3, 4},
		},
		{"a descending part", storage.ScanRequest{Index: desc}, []int64{1, 0, 4, 3, 2, 5}},
		{
			"below b 3 in key order, so above it by id",
			storage.ScanRequest{Index: desc, Lower: bound(true, text("b")), Upper: bound(false, text("b"), number(3))},
			[]int64{4},
		},
	} {
		for _, mode := range []storage.ReadMode{storage.ReadVersion, storage.ReadDirty, storage.ReadLocked} {
			tx := o.begin()
			test.request.Mode, test.request.Lock = mode, storage.S
			o.wantIDs(test.name, o.read(tx, test.request), test.want...)
			tx.Rollback()
		}
	}
}

// A scan is fetched in chunks; none may be lost or doubled at their seams.
func TestLongScan(t *testing.T) {
	o := newOutbox(t, 3000)
	tx := o.begin()
	for _, mode := range []storage.ReadMode{storage.ReadVersion, storage.ReadLocked} {
		for _, reverse := range []bool{false, true} {
			got := ids(o.read(tx, storage.ScanRequest{Index: o.claim, Mode: mode, Lock: storage.U, Reverse: reverse}))
			if reverse {
				slices.Reverse(got)
			}
			if len(got) != 3000 || got[0] != 1 || got[2999] != 3000 || !slices.IsSorted(got) {
				t.Errorf("mode %d, reverse %v: %d rows", mode, reverse, len(got))
			}
		}
	}
}

// Equal keys of a nonclustered index follow the clustered key, whatever the
// order they came in.
func TestEqualKeysFollowTheClusteredKey(t *testing.T) {
	o := newOutbox(t, 0)
	var byType *storage.Index
	o.autocommit(func(tx *storage.Txn) error {
		var err error
		byType, err = o.table.CreateIndex(t.Context(), tx, storage.IndexSpec{Name: "IX_type", Key: []storage.KeyPart{part(colType)}})
		if err != nil {
			return err
		}
		for _, id := range rand.Perm(50) {
			if err := tx.Insert(t.Context(), o.table, values(int64(id), "order", 0, "p")); err != nil {
				return err
			}
		}
		return nil
	})
	if got := ids(o.read(o.begin(), storage.ScanRequest{Index: byType})); len(got) != 50 || !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
}

func TestHeap(t *testing.T) {
	o := newOutbox(t, 0)
	o.table = o.db.CreateTable(4, nil)
	if o.table.Clustered() != nil {
		t.Error("a heap has a clustered index")
	}
	o.autocommit(func(tx *storage.Txn) error {
		for range 2 { // nothing is unique in a heap
			for id := range int64(3) {
				if err := tx.Insert(t.Context(), o.table, values(id, "t", 0, "p")); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s := o.session()
	tx := begin(s)
	rows := o.read(tx, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.U})
	o.wantIDs("in the order of insertion", rows, 0, 1, 2, 0, 1, 2)
	for _, l := range o.db.Locks() {
		if l.Resource == storage.KeyLock || l.Index != nil {
			t.Errorf("a heap has RIDs, not keys: %+v", l)
		}
	}
	for _, row := range rows[:4] {
		o.must(tx.Delete(t.Context(), o.table, row))
	}
	if err := tx.Update(t.Context(), o.table, rows[0], rows[0].Values); !errors.Is(err, storage.ErrRowGone) {
		t.Errorf("an update of a deleted row: %v", err)
	}
	o.must(tx.Commit())
	o.wantIDs("what is left", o.read(o.begin(), storage.ScanRequest{}), 1, 2)
}

func TestSkipGivesTheLockBack(t *testing.T) {
	o := newOutbox(t, 3)
	s := o.session()
	tx := begin(s)
	o.read(tx, byID(2, storage.U))
	c := tx.Scan(t.Context(), o.table, storage.ScanRequest{Index: o.claim, Mode: storage.ReadLocked, Lock: storage.U, Base: true})
	for range 3 {
		row, _, err := c.Next()
		o.must(err)
		if row.Values[colID].N == 3 {
			o.must(tx.Update(t.Context(), o.table, row, with(row.Values, colPayload, text("x"))))
		}
		c.Skip()
	}
	c.Close()
	other := o.session()
	request := storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.U, ReadPast: true}
	// 2 was locked before this scan, 3 was changed: neither is the scan's to give.
	o.wantIDs("free rows", o.read(begin(other), request), 1)
}

// Under READ COMMITTED shared locks go as the scan moves on; REPEATABLE READ
// and HOLDLOCK keep them.
func TestSharedLockDuration(t *testing.T) {
	o := newOutbox(t, 2)
	for _, test := range []struct {
		iso         storage.Isolation
		hold        bool
		table, rows int
	}{
		{storage.ReadCommitted, false, 0, 0},
		{storage.ReadCommitted, true, 1, 2},
		{storage.RepeatableRead, false, 1, 2},
		{storage.Serializable, false, 1, 0},
	} {
		s := o.session()
		tx := s.Begin(test.iso)
		tx.BeginStatement()
		o.read(tx, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.S, Hold: test.hold})
		tx.EndStatement()
		table, rows := o.held(s)
		if (table != 0) != (test.table == 1) || rows != test.rows {
			t.Errorf("isolation %d, hold %v: table %v and %d rows locked", test.iso, test.hold, table, rows)
		}
		tx.Rollback()
	}
}

// TABLOCK in a transaction that writes is SIX while the statement runs; after
// it the writer's IX is what stays.
func TestTableLockOfOneStatement(t *testing.T) {
	o := newOutbox(t, 2)
	s, other := o.session(), o.session()
	other.LockTimeout = 0
	tx := begin(s)
	o.must(o.set(tx, 1, colPayload, text("x")))
	o.read(tx, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.S, TableLock: true})
	if table, _ := o.held(s); table.String() != "SIX" {
		t.Errorf("during the statement the table lock is %v", table)
	}
	late := begin(other)
	if err := o.set(late, 2, colPayload, text("y")); !errors.Is(err, storage.ErrLockTimeout) {
		t.Errorf("a write beside TABLOCK: %v", err)
	}
	tx.EndStatement()
	if table, _ := o.held(s); table.String() != "IX" {
		t.Errorf("after the statement the table lock is %v", table)
	}
	o.must(o.set(late, 2, colPayload, text("y")))
}
