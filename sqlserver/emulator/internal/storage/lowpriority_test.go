package storage_test

import (
	"errors"
	"testing"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// A request at low priority keeps nobody waiting, yields to those who come
// later, and gives up when its patience ends.
func TestLowPriorityYields(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		ctx := t.Context()
		table := o.table
		holder, builder, late := o.session(), o.session(), o.session()
		tx := holder.Begin(storage.ReadCommitted)
		o.must(tx.LockTable(ctx, table, storage.IX))
		low := builder.Begin(storage.ReadCommitted)
		a := o.attempt(func() error { return low.LockTableLow(ctx, table, storage.SchM, time.Hour) })
		a.wantWaiting("Sch-M at low priority behind IX")

		other := late.Begin(storage.ReadCommitted)
		o.must(other.LockTable(ctx, table, storage.IX)) // at once: nobody queues behind it
		tx.Rollback()
		a.wantWaiting("Sch-M at low priority behind one who came later")

		shared := holder.Begin(storage.ReadCommitted)
		s := o.attempt(func() error { return shared.LockTable(ctx, table, storage.S) })
		s.wantWaiting("S behind IX")
		other.Rollback()
		o.must(s.wantDone("S, which came after Sch-M"))
		a.wantWaiting("Sch-M at low priority behind S")
		shared.Rollback()
		o.must(a.wantDone("Sch-M with nobody left"))
		low.Rollback()
	})
}

func TestLowPriorityEnds(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		ctx := t.Context()
		tx := o.session().Begin(storage.ReadCommitted)
		defer tx.Rollback()
		o.must(tx.LockTable(ctx, o.table, storage.IX))
		low := o.session().Begin(storage.ReadCommitted)
		defer low.Rollback()
		began := time.Now()
		if err := low.LockTableLow(ctx, o.table, storage.SchM, time.Minute); !errors.Is(err, storage.ErrLockTimeout) {
			t.Errorf("got %v, want a timeout", err)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %v", waited)
		}
		if err := low.LockTableLow(ctx, o.table, storage.SchM, 0); !errors.Is(err, storage.ErrLockTimeout) {
			t.Errorf("without patience: %v", err)
		}
	})
}
