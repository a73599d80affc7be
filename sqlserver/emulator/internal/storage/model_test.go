package storage_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// Random changes, savepoints, commits and rollbacks by one session give what a
// plain map gives, in every index.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			o := newOutbox(t, 0)
			s := o.session()
			committed := map[int64][]sqltype.Value{}
			for range 30 {
				var snapshot *storage.Txn
				if rnd.IntN(3) == 0 { // keeps history alive across the transaction
					snapshot = o.begin()
				}
				saw := maps.Clone(committed)
				tx := begin(s)
				model := maps.Clone(committed)
				mark, marked := tx.Savepoint(), maps.Clone(model)
				for range rnd.IntN(20) {
					id := rnd.Int64N(12)
					switch rnd.IntN(8) {
					case 0, 1:
						row := values(id, fmt.Sprint(rnd.IntN(3)), rnd.Int64N(2), "inserted")
						err := tx.Insert(t.Context(), o.table, row)
						if _, there := model[id]; there {
							wantDuplicate(t, err, "PK", id)
						} else {
							o.must(err)
							model[id] = row
						}
					case 2:
						o.must(o.remove(tx, id))
						delete(model, id)
					case 3:
						to := rnd.Int64N(12)
						err := o.set(tx, id, colID, number(to))
						row, there := model[id]
						if _, taken := model[to]; there && taken && to != id {
							wantDuplicate(t, err, "PK", to)
						} else if o.must(err); there {
							delete(model, id)
							model[to] = with(row, colID, number(to))
						}
					case 4:
						mark, marked = tx.Savepoint(), maps.Clone(model)
					case 5:
						tx.RollbackTo(mark)
						model = maps.Clone(marked)
					default:
						column, v := colStatus, number(rnd.Int64N(2))
						if rnd.IntN(3) == 0 {
							column, v = colType, text(fmt.Sprint(rnd.IntN(3)))
						}
						o.must(o.set(tx, id, column, v))
						if row, there := model[id]; there {
							model[id] = with(row, column, v)
						}
					}
				}
				wantModel(o, tx, "itself", model)
				if snapshot != nil {
					wantModel(o, snapshot, "a snapshot beside it", saw)
				}
				if rnd.IntN(4) == 0 {
					tx.Rollback()
				} else {
					o.must(tx.Commit())
					committed = model
				}
				if snapshot != nil {
					wantModel(o, snapshot, "a snapshot from before it", saw)
					snapshot.Rollback()
				}
				o.wantSound()
				check := o.begin()
				wantModel(o, check, "the next transaction", committed)
				check.Rollback()
			}
		})
	}
}

func wantModel(o *outbox, tx *storage.Txn, who string, model map[int64][]sqltype.Value) {
	o.Helper()
	all := slices.Sorted(maps.Keys(model))
	rows := o.read(tx, storage.ScanRequest{})
	o.wantIDs(who, rows, all...)
	for _, row := range rows {
		if want := model[row.Values[colID].N]; !slices.Equal(row.Values, want) {
			o.Errorf("%s: row %v, want %v", who, row.Values, want)
		}
	}
	pending := slices.DeleteFunc(all, func(id int64) bool { return model[id][colStatus].N != 0 })
	got := ids(o.read(tx, storage.ScanRequest{Index: o.claim}))
	slices.Sort(got)
	if !slices.Equal(got, pending) {
		o.Errorf("%s: pending %v, want %v", who, got, pending)
	}
}

// Money moves between accounts from many sessions; every statement of a reader
// sees the same total, whatever is under way, and no deadlock loses any.
func TestTransfersKeepTheSum(t *testing.T) {
	const accounts, workers, transfers, start = 8, 6, 150, 1000
	o := newOutbox(t, 0)
	o.autocommit(func(tx *storage.Txn) error {
		for id := range int64(accounts) {
			if err := tx.Insert(t.Context(), o.table, values(id, "account", start, "p")); err != nil {
				return err
			}
		}
		return nil
	})
	transfer := func(s *storage.Session, from, to, amount int64, abort bool) error {
		tx := begin(s)
		defer tx.Rollback()
		for _, leg := range []struct{ id, amount int64 }{{from, -amount}, {to, amount}} {
			tx.BeginStatement()
			rows, err := read(t.Context(), tx, o.table, byID(leg.id, storage.U), 0)
			if err != nil {
				return err
			}
			row := with(rows[0].Values, colStatus, number(rows[0].Values[colStatus].N+leg.amount))
			if err := tx.Update(t.Context(), o.table, rows[0], row); err != nil {
				return err
			}
		}
		if abort {
			return nil
		}
		return tx.Commit()
	}
	sum := func(tx *storage.Txn, r storage.ScanRequest) {
		rows, err := read(t.Context(), tx, o.table, r, 0)
		if err != nil {
			t.Error(err)
		}
		total := int64(0)
		for _, row := range rows {
			total += row.Values[colStatus].N
		}
		if total != accounts*start || len(rows) != accounts {
			t.Errorf("%d accounts hold %d", len(rows), total)
		}
	}

	var working, reading sync.WaitGroup
	stop := make(chan struct{})
	for w := range workers {
		working.Go(func() {
			s := o.db.NewSession()
			defer s.Close()
			rnd := rand.New(rand.NewPCG(uint64(w), 2))
			for range transfers {
				from, to := rnd.Int64N(accounts), rnd.Int64N(accounts)
				amount, abort := rnd.Int64N(100), rnd.IntN(10) == 0
				err := storage.ErrDeadlock
				for errors.Is(err, storage.ErrDeadlock) {
					err = transfer(s, from, to, amount, abort)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	reading.Go(func() {
		s := o.db.NewSession()
		defer s.Close()
		tx := begin(s)
		defer tx.Rollback()
		for {
			select {
			case <-stop:
				return
			default:
				tx.BeginStatement()
				sum(tx, storage.ScanRequest{})
				tx.EndStatement()
			}
		}
	})
	working.Wait()
	close(stop)
	reading.Wait()
	tx := o.begin()
	sum(tx, storage.ScanRequest{Mode: storage.ReadLocked, Lock: storage.S})
	tx.Rollback()
	o.wantSound()
	t.Logf("%+v", o.db.Counters())
}
