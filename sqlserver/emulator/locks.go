package emulator

import "azsqloutbox/sqlserver/emulator/internal/storage"

// Lock is a lock that is held or waited for, as sys.dm_tran_locks shows it.
type Lock struct {
	Session int64
	// Resource is KEY, RID, OBJECT or APPLICATION.
	Resource string
	// App is the name of an application lock.
	App string
	// Mode is S, U, X, IX, …: held, or asked for where Status is not GRANT.
	Mode string
	// Status is GRANT, WAIT or CONVERT.
	Status string
}

// Waiting says that somebody waits for it.
func (l Lock) Waiting() bool { return l.Status != string(storage.Granted) }

// Locks lists every lock there is, by session.
func (s *Server) Locks() []Lock {
	all := s.engine.Storage().Locks()
	locks := make([]Lock, len(all))
	for i, l := range all {
		locks[i] = Lock{
			Session:  l.SessionID,
			Resource: string(l.Resource),
			App:      l.App,
			Mode:     l.Mode.String(),
			Status:   string(l.Status),
		}
	}
	return locks
}
