package emulator

// Counters are of row and table locks, since the start and over all sessions.
// Only Skipped has no column in any view of SQL Server; the others show there
// too, as waits and as numbers of errors.
type Counters struct {
	// LockWaits are requests for a lock that had to queue; LockTimeouts (1222) and
	// Deadlocks (1205) are how some of them ended.
	LockWaits, LockTimeouts, Deadlocks int64
	// Escalations are table locks that replaced row locks.
	Escalations int64
	// Skipped are rows that READPAST passed by.
	Skipped int64
}

// Counters may be called at any time.
func (s *Server) Counters() Counters {
	c := s.engine.Storage().Counters()
	return Counters{
		LockWaits: c.LockWaits, LockTimeouts: c.LockTimeouts, Deadlocks: c.Deadlocks,
		Escalations: c.Escalations, Skipped: c.Skipped,
	}
}
