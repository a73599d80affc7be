package engine

import "time"

// sessionState is what a session shows of itself in the views of others. Its
// fields belong to the session's own goroutine, so it hands out copies.
type sessionState struct {
	set              settings
	transactions     int
	deadlockPriority int
	// transaction is the id of the open user transaction, 0 for none.
	transaction uint64
	// transactionName and transactionBegan are that one's.
	transactionName  string
	transactionBegan time.Time
}

func (s *session) state() sessionState {
	st := sessionState{set: s.set, transactions: s.tranCount(), deadlockPriority: s.store.DeadlockPriority}
	if s.tran != nil {
		st.transaction, st.transactionName, st.transactionBegan = s.tran.id, s.tran.shownName(), s.tran.began
	}
	return st
}

// publish shows what has changed: at the end of a request, and where a
// transaction begins or ends within one.
func (s *session) publish() {
	now := s.state()
	if last := s.shown.Load(); last == nil || *last != now {
		s.shown.Store(&now)
	}
}
