package storage

import "context"

// The name of an object is locked while a transaction that creates or drops it
// is open: there may be no Table yet, or none any more, to lock instead.

// LockName takes Sch-M on a name to the end of the transaction.
func (tx *Txn) LockName(ctx context.Context, name string) error {
	if tx.done {
		return ErrTxnDone
	}
	_, err := tx.db.locks.lockApp(ctx, &tx.locks, namePrefix+name, SchM, tx.session.LockTimeout)
	return err
}

// AwaitName waits until no other session's transaction has the name locked, and
// says whether it had to.
func (s *Session) AwaitName(ctx context.Context, name string) (waited bool, err error) {
	if s.db.locks.names.Load() == 0 {
		return false, nil
	}
	waited, err = s.db.locks.lockApp(ctx, &s.locks, namePrefix+name, SchS, s.LockTimeout)
	if err != nil {
		return waited, err
	}
	return waited, s.db.locks.unlockApp(&s.locks, namePrefix+name)
}

// namePrefix keeps names apart from application locks, which have none of it.
const namePrefix = "\x00"
