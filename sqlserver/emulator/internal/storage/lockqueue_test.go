package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		ctx := t.Context()
		holder := o.session()
		_, err := holder.AppLock(ctx, "r", storage.X, 0)
		o.must(err)
		var order []int
		var waiters []*attempt
		for i := range 5 {
			s := o.session()
			a := o.attempt(func() error {
				waited, err := s.AppLock(ctx, "r", storage.X, storage.Forever)
				if !waited {
					t.Error("the request was granted past the holder")
				}
				order = append(order, i)
				return errors.Join(err, s.AppUnlock("r"))
			})
			a.wantWaiting("a request behind an X lock")
			waiters = append(waiters, a)
		}
		o.must(holder.AppUnlock("r"))
		for i, a := range waiters {
			o.must(a.wantDone("a waiter"))
			if order[i] != i {
				t.Errorf("granted in the order %v", order)
			}
		}
	})
}

// A request that is compatible with the holders still waits behind one that is
// not, or readers would starve a writer.
func TestNobodyOvertakesTheQueue(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		ctx := t.Context()
		reader, another, writer, late := o.session(), o.session(), o.session(), o.session()
		for _, s := range []*storage.Session{reader, another} {
			_, err := s.AppLock(ctx, "r", storage.S, 0)
			o.must(err)
		}
		w := o.attempt(func() error { _, err := writer.AppLock(ctx, "r", storage.X, storage.Forever); return err })
		w.wantWaiting("X behind S")
		l := o.attempt(func() error { _, err := late.AppLock(ctx, "r", storage.S, storage.Forever); return err })
		l.wantWaiting("S behind a waiting X")

		o.must(another.AppUnlock("r"))
		l.wantWaiting("S behind an X that waits for one reader less")
		o.must(reader.AppUnlock("r"))
		o.must(w.wantDone("X"))
		l.wantWaiting("S behind X")
		o.must(writer.AppUnlock("r"))
		o.must(l.wantDone("S"))
	})
}

func TestConversionGoesFirst(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		ctx := t.Context()
		converter, reader, stranger := o.session(), o.session(), o.session()
		for _, s := range []*storage.Session{converter, reader} {
			_, err := s.AppLock(ctx, "r", storage.S, 0)
			o.must(err)
		}
		x := o.attempt(func() error { _, err := stranger.AppLock(ctx, "r", storage.X, storage.Forever); return err })
		x.wantWaiting("a new X")
		c := o.attempt(func() error { _, err := converter.AppLock(ctx, "r", storage.X, storage.Forever); return err })
		c.wantWaiting("a conversion to X while another S is held")

		statuses := map[storage.LockStatus]int{}
		for _, l := range o.db.Locks() {
			statuses[l.Status]++
		}
		if statuses[storage.Granted] != 2 || statuses[storage.Waiting] != 1 || statuses[storage.Converting] != 1 {
			t.Errorf("Locks shows %v", statuses)
		}

		o.must(reader.AppUnlock("r"))
		o.must(c.wantDone("the conversion"))
		x.wantWaiting("the new X")
		converter.Close()
		o.must(x.wantDone("the new X"))
	})
}

func TestLockTimeout(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		holder := o.begin()
		o.must(o.set(holder, 1, colPayload, text("x")))
		s := o.session()
		s.LockTimeout = 3 * time.Second
		tx := begin(s)
		began := time.Now()
		_, err := read(t.Context(), tx, o.table, byID(1, storage.U), 0)
		if !errors.Is(err, storage.ErrLockTimeout) || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v, want a lock timeout after 3s", err, time.Since(began))
		}
		s.LockTimeout = storage.Forever
		request := byID(1, storage.U)
		request.NoWait = true
		if _, err := read(t.Context(), tx, o.table, request, 0); !errors.Is(err, storage.ErrLockTimeout) {
			t.Errorf("NOWAIT: %v", err)
		}
		if c := o.db.Counters(); c.LockTimeouts != 2 || c.LockWaits != 1 {
			t.Errorf("counted %d timeouts and %d waits", c.LockTimeouts, c.LockWaits)
		}
		// The transaction goes on, and what timed out blocks nobody.
		holder.Rollback()
		o.wantIDs("after the holder is gone", o.read(tx, byID(1, storage.U)), 1)
	})
}

// Who waited behind a request that gave up goes at once.
func TestTimeoutLetsTheQueueGoOn(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		reader, writer, late := o.session(), o.session(), o.session()
		_, err := reader.AppLock(t.Context(), "r", storage.S, 0)
		o.must(err)
		w := o.attempt(func() error { _, err := writer.AppLock(t.Context(), "r", storage.X, time.Second); return err })
		w.wantWaiting("X behind S")
		l := o.attempt(func() error { _, err := late.AppLock(t.Context(), "r", storage.S, storage.Forever); return err })
		l.wantWaiting("S behind a waiting X")
		time.Sleep(time.Second) // of the bubble's clock
		if err := w.wantDone("X"); !errors.Is(err, storage.ErrLockTimeout) {
			t.Errorf("got %v", err)
		}
		o.must(l.wantDone("S"))
	})
}

func TestCancelledWait(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		holder := o.begin()
		o.must(o.set(holder, 1, colPayload, text("x")))
		ctx, cancel := context.WithCancel(t.Context())
		s := o.session()
		a := o.attempt(func() error {
			_, err := read(ctx, begin(s), o.table, byID(1, storage.U), 0)
			return err
		})
		a.wantWaiting("a read of a locked row")
		behind := o.begin()
		b := o.attempt(func() error { _, err := read(t.Context(), behind, o.table, byID(1, storage.S), 0); return err })
		b.wantWaiting("a second reader")
		cancel()
		if err := a.wantDone("the cancelled read"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		s.Close()
		o.must(holder.Commit())
		o.must(b.wantDone("the second reader"))
		behind.Rollback()
		o.wantSound()
	})
}
