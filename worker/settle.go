package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
)

// ending is a claim whose outcomes are known. After leaseOver its receipt is
// the reaper's.
type ending struct {
	settlement Settlement
	leaseOver  time.Time

	// Of the settler alone:
	tries   int
	nextTry time.Time
	pause   *backoff.ExponentialBackOff
}

const (
	// settleGroup bounds the receipts of one statement, settleLinger how long
	// the first of a group waits for company. Short, because a process that
	// dies with a receipt not deleted has its batch published twice.
	settleGroup  = 64
	settleLinger = 20 * time.Millisecond
	// settlePatience bounds one try: a connection that hangs must not use up the
	// lease of everything that waits behind it.
	settlePatience = 10 * time.Second
)

// settler ends claims. What cannot be settled waits for its next try without
// holding up the others. It is one goroutine.
type settler struct {
	w    *Worker
	open []*ending
}

// run settles what comes until the channel is closed and all is ended. ctx is
// what is left of the grace period; when it ends, the rest is left to the
// reaper.
func (s *settler) run(ctx context.Context) {
	const loop = "the settler"
	defer s.w.pulses.rest(loop)
	incoming := (<-chan *ending)(s.w.endings)
	for incoming != nil || len(s.open) > 0 {
		s.w.pulses.beat(loop)
		accept := incoming
		if len(s.open) >= cap(s.w.endings) {
			accept = nil // publishers wait, and with them the lanes
		}
		wake := time.NewTimer(s.untilNext())
		select {
		case e, ok := <-accept:
			if !ok {
				incoming = nil
				break
			}
			s.take(e)
		case <-wake.C:
			incoming = s.takeReady(incoming)
			s.pass(ctx)
		case <-ctx.Done():
			s.abandonAll(incoming)
			return
		}
		wake.Stop()
	}
}

func (s *settler) take(e *ending) {
	e.nextTry = time.Now().Add(settleLinger)
	e.pause = newPause(50*time.Millisecond, 2*time.Second)
	s.open = append(s.open, e)
}

// takeReady takes what ended while a call was under way, as one that hung may be
// followed by another. It returns nil in place of a closed channel.
func (s *settler) takeReady(incoming <-chan *ending) <-chan *ending {
	for len(s.open) < cap(s.w.endings) {
		select {
		case e, ok := <-incoming:
			if !ok {
				return nil
			}
			s.take(e)
		default:
			return incoming
		}
	}
	return incoming
}

// untilNext is how long nothing is due.
func (s *settler) untilNext() time.Duration {
	next := time.Minute // to show that it lives
	for _, e := range s.open {
		next = min(next, time.Until(e.nextTry))
	}
	return max(next, 0)
}

// pass tries everything that is due, once: the claims that went out whole in
// one statement and first, the others in a transaction each.
func (s *settler) pass(ctx context.Context) {
	now := time.Now()
	for _, e := range slices.Clone(s.open) {
		if !now.Before(e.leaseOver) {
			s.abandon(e)
		}
	}
	due := func(e *ending) bool { return !now.Before(e.nextTry) }
	if !slices.ContainsFunc(s.open, due) {
		return
	}
	var group []*ending
	for _, e := range s.open {
		// Those still waiting for company have found it.
		if e.settlement.AllSent() && (due(e) || e.tries == 0) && len(group) < settleGroup {
			group = append(group, e)
		}
	}
	if len(group) > 0 && !s.settleSent(ctx, group) {
		return
	}
	for _, e := range slices.Clone(s.open) {
		if !e.settlement.AllSent() && due(e) && !s.settleOne(ctx, e) {
			return
		}
	}
}

func receiptsOf(group []*ending) []Receipt {
	receipts := make([]Receipt, len(group))
	for i, e := range group {
		receipts[i] = e.settlement.Receipt
	}
	return receipts
}

// settleSent returns false when the database does not answer at all, so that
// the pass does not spend its patience on every claim in turn.
func (s *settler) settleSent(ctx context.Context, group []*ending) bool {
	receipts := receiptsOf(group)
	repeated := 0
	for _, e := range group {
		if e.tries > 0 {
			repeated++
		}
	}
	lost := 0
	answered, err := s.try(ctx, group, s.w.settles, func(ctx context.Context) (err error) {
		lost, err = s.w.cfg.Store.SettleSent(ctx, receipts)
		// After a failed try, receipts that are missing may be our own doing.
		lost = max(0, lost-repeated)
		return err
	}, &lost)
	if err == nil && lost > 0 {
		s.w.log.Warn("receipts were reaped before they were settled: their events are published twice; the lease is too short or this process stood still",
			zap.Int("receipts", lost), zap.Duration("lease", s.w.cfg.Lease))
	}
	return answered
}

func (s *settler) settleOne(ctx context.Context, e *ending) bool {
	lost := 0
	answered, _ := s.try(ctx, []*ending{e}, s.w.returns, func(ctx context.Context) error {
		err := s.w.cfg.Store.Settle(ctx, e.settlement)
		if !errors.Is(err, ErrLeaseLost) {
			return err
		}
		if e.tries == 0 { // else the try before may have committed
			lost = 1
			s.w.log.Warn("a lease was lost before its claim was settled: nothing was changed",
				zap.Stringer("claim", e.settlement.Receipt.ID), zap.Duration("lease", s.w.cfg.Lease))
		}
		return nil
	}, &lost)
	return answered
}

// try makes one try for a group. It returns false when there was no answer.
func (s *settler) try(ctx context.Context, group []*ending, o *outage, settle func(context.Context) error, lost *int) (answered bool, err error) {
	began := time.Now()
	call, cancel := context.WithTimeout(ctx, settlePatience)
	err = settle(call)
	hung := call.Err() != nil
	cancel()
	if err == nil {
		o.passed()
		s.w.bar.open()
		s.w.cfg.Observer.Settled(receiptsOf(group), *lost, time.Since(began))
		s.end(group...)
		return true, nil
	}
	o.failed(err)
	for _, e := range group {
		// Once for each claim: a single one that can never be settled must not
		// keep all others from being claimed until its lease ends.
		if errors.Is(err, ErrPermanent) && e.tries == 0 {
			s.w.bar.close()
		}
		e.tries++
		e.nextTry = time.Now().Add(pauseFor(err, e.pause))
	}
	return !hung, err
}

// end takes claims off the list.
func (s *settler) end(group ...*ending) {
	s.open = slices.DeleteFunc(s.open, func(e *ending) bool { return slices.Contains(group, e) })
	s.w.outstanding.Add(-int64(len(group)))
}

// abandon leaves a claim to the reaper. Nothing is lost by it, but what was
// sent is published again.
func (s *settler) abandon(e *ending) {
	s.w.log.Error("a claim was not settled in time; its receipt will be reaped and its events published again",
		zap.Stringer("claim", e.settlement.Receipt.ID), zap.String("event_type", e.settlement.Receipt.EventType),
		zap.Int("events", len(e.settlement.Receipt.EventIDs)), zap.Int("tries", e.tries))
	s.w.cfg.Observer.Settled([]Receipt{e.settlement.Receipt}, 1, 0)
	s.end(e)
}

// abandonAll takes what still comes, so that no publisher waits for ever.
func (s *settler) abandonAll(incoming <-chan *ending) {
	for _, e := range slices.Clone(s.open) {
		s.abandon(e)
	}
	if incoming == nil {
		return
	}
	for e := range incoming {
		s.abandon(e)
	}
}
