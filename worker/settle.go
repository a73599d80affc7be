package worker

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// ending is a claim whose outcomes are known. After leaseOver its receipt is
// the reaper's.
type ending struct {
	settlement Settlement
	leaseOver  time.Time
}

const (
	// settleGroup bounds the receipts of one statement, settleLinger how long
	// the first of a group waits for company. Short, because a process that
	// dies with a receipt not deleted has its batch published twice.
	settleGroup  = 64
	settleLinger = 20 * time.Millisecond
)

// settle ends claims until the channel is closed. ctx is what is left of the
// grace period.
func (w *Worker) settle(ctx context.Context) {
	for first := range w.endings {
		w.settleAll(ctx, w.gather(ctx, first))
	}
}

// gather takes what comes within the linger.
func (w *Worker) gather(ctx context.Context, first ending) []ending {
	group := []ending{first}
	linger := time.NewTimer(settleLinger)
	defer linger.Stop()
	for len(group) < settleGroup {
		select {
		case e, ok := <-w.endings:
			if !ok {
				return group
			}
			group = append(group, e)
		case <-linger.C:
			return group
		case <-ctx.Done():
			return group
		}
	}
	return group
}

// settleAll ends a group: the claims that went out whole in one statement, the
// others in a transaction each.
func (w *Worker) settleAll(ctx context.Context, group []ending) {
	defer w.outstanding.Add(-int64(len(group)))
	var sent []Receipt
	var leaseOver time.Time
	for _, e := range group {
		if e.settlement.AllSent() {
			sent = append(sent, e.settlement.Receipt)
			if e.leaseOver.After(leaseOver) {
				leaseOver = e.leaseOver
			}
		}
	}
	if len(sent) > 0 {
		lost, again := 0, false
		w.persist(ctx, leaseOver, len(sent), func(ctx context.Context) (int, error) {
			n, err := w.cfg.Store.SettleSent(ctx, sent)
			if err == nil && !again {
				lost = n // after a failed try, missing receipts may be our own doing
			}
			again = true
			return lost, err
		})
		if lost > 0 {
			w.log.Warn("receipts were reaped before they were settled: their events are published twice; the lease is too short or this process stood still",
				zap.Int("receipts", lost), zap.Duration("lease", w.cfg.Lease))
		}
	}
	for _, e := range group {
		if e.settlement.AllSent() {
			continue
		}
		again := false
		w.persist(ctx, e.leaseOver, 1, func(ctx context.Context) (int, error) {
			err := w.cfg.Store.Settle(ctx, e.settlement)
			if !errors.Is(err, ErrLeaseLost) {
				again = true
				return 0, err
			}
			if again {
				return 0, nil // the try before did commit
			}
			w.log.Warn("a lease was lost before its claim was settled: nothing was changed",
				zap.Stringer("claim", e.settlement.Receipt.ID), zap.Duration("lease", w.cfg.Lease))
			return 1, nil
		})
	}
}

// persist tries to settle until it succeeds, the lease is over or the grace
// period is. Giving up loses nothing: the receipt stays and is reaped.
func (w *Worker) persist(ctx context.Context, leaseOver time.Time, receipts int, settle func(context.Context) (lost int, err error)) {
	pause := newPause(50*time.Millisecond, 2*time.Second)
	for {
		started := time.Now()
		try, cancel := context.WithDeadline(ctx, leaseOver)
		lost, err := settle(try)
		cancel()
		if err == nil {
			w.settles.passed()
			w.settleBarred.Store(false)
			w.cfg.Observer.Settled(receipts, lost, time.Since(started))
			return
		}
		w.settles.failed(err)
		if errors.Is(err, ErrPermanent) {
			w.settleBarred.Store(true)
		}
		wait := pauseFor(err, pause)
		if time.Now().Add(wait).After(leaseOver) || !sleep(ctx, wait) {
			w.log.Error("a claim was not settled in time; its receipt will be reaped and its events published again",
				zap.Int("receipts", receipts), zap.Error(err))
			return
		}
	}
}
