package storage_test

import (
	"errors"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// ring has every session change its own row and then its neighbour's. It
// returns who was the victim, by position.
func ring(o *outbox, sessions []*storage.Session, extraWork []int) int {
	o.Helper()
	n := len(sessions)
	txs := make([]*storage.Txn, n)
	for i, s := range sessions {
		txs[i] = begin(s)
		for range 1 + extraWork[i] {
			o.must(o.set(txs[i], int64(i+1), colPayload, text("mine")))
		}
	}
	attempts := make([]*attempt, n)
	for i := range sessions {
		attempts[i] = o.attempt(func() error {
			err := o.set(txs[i], int64((i+1)%n+1), colPayload, text("neighbour's"))
			if err != nil {
				txs[i].Rollback()
				return err
			}
			return txs[i].Commit()
		})
		if i < n-1 {
			attempts[i].wantWaiting("a wait that closes no ring")
		}
	}
	victim := -1
	for i, a := range attempts {
		switch err := a.wantDone("a session of the ring"); {
		case err == nil:
		case !errors.Is(err, storage.ErrDeadlock), victim >= 0:
			o.Errorf("session %d: %v (a victim already: %d)", i, err, victim)
		default:
			victim = i
		}
	}
	return victim
}

func TestDeadlockVictim(t *testing.T) {
	for _, test := range []struct {
		name       string
		priorities []int
		extraWork  []int
		victim     int
	}{
		{"of two equals the one that closes the ring", []int{0, 0}, []int{0, 0}, 1},
		{"the lower priority", []int{-5, 0}, []int{0, 0}, 0},
		{"priority before cost", []int{0, 5}, []int{9, 0}, 0},
		{"the cheaper one", []int{0, 0}, []int{0, 3}, 0},
		{"the lowest of three", []int{0, -1, 3}, []int{0, 0, 0}, 1},
		{"the cheapest of three", []int{0, 0, 0}, []int{2, 1, 2}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, o *outbox) {
				var sessions []*storage.Session
				for _, p := range test.priorities {
					s := o.session()
					s.DeadlockPriority = p
					sessions = append(sessions, s)
				}
				if got := ring(o, sessions, test.extraWork); got != test.victim {
					t.Errorf("the victim is session %d, want %d", got, test.victim)
				}
				if got := o.db.Counters().Deadlocks; got != 1 {
					t.Errorf("counted %d deadlocks", got)
				}
				o.wantSound()
			})
		})
	}
}

// Two shared locks that both want to become exclusive wait for each other.
func TestConversionDeadlock(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		txs := []*storage.Txn{o.begin(), o.begin()}
		request := byID(1, storage.S)
		request.Hold = true
		var attempts []*attempt
		for _, tx := range txs {
			o.wantIDs("both read", o.read(tx, request), 1)
		}
		for _, tx := range txs {
			attempts = append(attempts, o.attempt(func() error { return o.set(tx, 1, colPayload, text("x")) }))
		}
		first, second := attempts[0], attempts[1]
		var failed *attempt
		select {
		case err := <-first.done:
			failed = second
			if !errors.Is(err, storage.ErrDeadlock) {
				t.Errorf("got %v", err)
			}
			txs[0].Rollback()
		case err := <-second.done:
			failed = first
			if !errors.Is(err, storage.ErrDeadlock) {
				t.Errorf("got %v", err)
			}
			txs[1].Rollback()
		}
		o.must(failed.wantDone("the survivor"))
	})
}

// The claim locks index key, then row; who comes by primary key locks row,
// then index key. With a status 0 row that is a deadlock, and it is found.
func TestDeadlockBetweenIndexAndRow(t *testing.T) {
	bubble(t, 1, func(t *testing.T, o *outbox) {
		claimer, byKey := o.begin(), o.begin()
		o.wantIDs("claimed", o.read(claimer, o.claiming()), 1)
		b := o.attempt(func() error { return o.set(byKey, 1, colStatus, number(2)) })
		b.wantWaiting("the update of a claimed row by primary key")
		err := o.set(claimer, 1, colStatus, number(1))
		if err != nil {
			claimer.Rollback()
		}
		errB := b.wantDone("the update by primary key")
		if errors.Is(err, storage.ErrDeadlock) == errors.Is(errB, storage.ErrDeadlock) {
			t.Errorf("claimer: %v, other: %v; want one victim", err, errB)
		}
	})
}
