package emulator

import (
	"context"
	"fmt"
)

// Restart does to clients and data what a crash and a new start of the server
// would, on the same address: every connection drops, open transactions are
// rolled back, and sequences go on after the numbers that were in their caches.
// Plan cache and counters of the dynamic management views begin anew. Restart
// returns when the sessions that it ended are gone, or with ctx's error; then
// nothing but the connections is lost yet, and it may be called again.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.engine.Restart(ctx, s.protocol.KillConnections); err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	return nil
}
