package storage_test

import (
	"errors"
	"testing"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

func TestAppLockScopes(t *testing.T) {
	bubble(t, 0, func(t *testing.T, o *outbox) {
		ctx := t.Context()
		s, other := o.session(), o.session()
		tx := begin(s)
		_, err := tx.AppLock(ctx, "purge", storage.X, 0)
		o.must(err)
		// The owners of one session are not in each other's way.
		_, err = s.AppLock(ctx, "purge", storage.X, 0)
		o.must(err)
		o.must(tx.Commit())
		if _, err := other.AppLock(ctx, "purge", storage.S, time.Second); !errors.Is(err, storage.ErrLockTimeout) {
			t.Errorf("the session's lock ended with the transaction: %v", err)
		}
		locks := o.db.Locks()
		if len(locks) != 1 || locks[0].App != "purge" || !locks[0].SessionScope || locks[0].Resource != storage.ApplicationLock {
			t.Errorf("Locks shows %+v", locks)
		}
		s.Close()
		if waited, err := other.AppLock(ctx, "purge", storage.X, time.Second); err != nil || waited {
			t.Errorf("after Close: waited %v, %v", waited, err)
		}
	})
}

func TestAppLockIsCounted(t *testing.T) {
	o := newOutbox(t, 0)
	s, other := o.session(), o.session()
	for range 2 {
		_, err := s.AppLock(t.Context(), "r", storage.X, 0)
		o.must(err)
	}
	o.must(s.AppUnlock("r"))
	if _, err := other.AppLock(t.Context(), "r", storage.X, 0); !errors.Is(err, storage.ErrLockTimeout) {
		t.Errorf("one of two releases freed it: %v", err)
	}
	o.must(s.AppUnlock("r"))
	if err := s.AppUnlock("r"); !errors.Is(err, storage.ErrNotLocked) {
		t.Errorf("a third release: %v", err)
	}
	_, err := other.AppLock(t.Context(), "r", storage.X, 0)
	o.must(err)
	o.must(other.AppUnlock("r"))

	tx := begin(s)
	_, err = tx.AppLock(t.Context(), "r", storage.U, 0)
	o.must(err)
	if err := s.AppUnlock("r"); !errors.Is(err, storage.ErrNotLocked) {
		t.Errorf("the session released its transaction's lock: %v", err)
	}
	o.must(tx.AppUnlock("r"))
	_, err = other.AppLock(t.Context(), "r", storage.X, 0)
	o.must(err)
}
