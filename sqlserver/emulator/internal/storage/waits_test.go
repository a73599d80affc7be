package storage

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// Every wait is counted once under the mode that was asked for, whether it ends
// with the lock or without, and the session remembers how long it was.
func TestLockWaitsAreMetered(t *testing.T) {
	db := New()
	a, b := db.NewSession(), db.NewSession()
	defer a.Close()
	defer b.Close()
	if _, err := a.AppLock(context.Background(), "x", X, Forever); err != nil {
		t.Fatal(err)
	}
	if n := len(db.LockWaits()); n != 0 {
		t.Fatalf("%d modes waited for, nobody has waited", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := b.AppLock(ctx, "x", S, Forever)
		done <- err
	}()
	var waiting LockInfo
	for waiting.Status != Waiting {
		runtime.Gosched()
		for _, l := range db.Locks() {
			if l.SessionID == b.ID() {
				waiting = l
			}
		}
	}
	if waiting.BlockedBy != a.ID() || waiting.Since.IsZero() {
		t.Errorf("waits for session %d since %v, want session %d", waiting.BlockedBy, waiting.Since, a.ID())
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w := db.LockWaits()
	if len(w) != 1 || w[S].Count != 1 || w[S].Total <= 0 || w[S].Max != w[S].Total || b.Waited() != w[S].Total {
		t.Errorf("waits %v, session waited %v", w, b.Waited())
	}
}
