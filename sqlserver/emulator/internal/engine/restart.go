package engine

import (
	"context"
	"fmt"
)

// Restart is what an unexpected end and a new start of the server leave: the
// tables as they were committed, sequences without the numbers that were in
// their caches, and empty plan cache, index usage and waits. kick makes the
// sessions that are open now close; Restart waits until they have, or for ctx.
// Those that are opened meanwhile belong to the new start.
//
// Identity columns go on without a gap, unlike in SQL Server, which caches them
// too.
func (e *Engine) Restart(ctx context.Context, kick func()) error {
	var open []*session
	e.eachSession(func(s *session) { open = append(open, s) })
	kick()
	for i, s := range open {
		select {
		case <-s.closed:
		case <-ctx.Done():
			return fmt.Errorf("restart: %d of %d sessions are still open: %w", len(open)-i, len(open), ctx.Err())
		}
	}
	for _, o := range e.catalog.sorted() {
		if q, ok := o.(*sequence); ok {
			q.loseCache()
		}
	}
	e.plans.empty()
	e.usage.empty()
	for _, h := range e.hobts() {
		h.storage().ResetOperations()
	}
	e.db.ResetLockWaits()
	return nil
}
