package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// lane claims until ctx ends, looking at it before every round. It takes a
// place first, so that no claimed batch waits with its lease running. sending
// outlives ctx: a claim under way is finished, not torn.
func (w *Worker) lane(ctx, sending context.Context, drained func()) {
	pause := newPause(100*time.Millisecond, 5*time.Second)
	for {
		select {
		case w.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r, ok := w.nextRound(ctx, drained)
		if !ok {
			<-w.places
			return
		}
		if err := w.claim(sending, r); err != nil {
			w.claims.failed(err)
			if !sleep(ctx, pauseFor(err, pause)) {
				return
			}
			continue
		}
		w.claims.passed()
		pause.Reset()
	}
}

// claim makes one claim and hands it on together with the place that the lane
// holds; when there is nothing to hand on, the place is given back.
func (w *Worker) claim(sending context.Context, r round) error {
	// Both deadlines run on this process' monotonic clock from before the
	// request, so they end before the lease, which begins when the database
	// executes it.
	asked := time.Now()
	until := asked.Add(w.cfg.PublishDeadline)
	ctx, cancel := context.WithDeadline(sending, until)
	defer cancel()
	w.outstanding.Add(1)
	c, err := w.cfg.Store.Claim(ctx, ClaimRequest{EventType: r.eventType, After: r.after, Batch: w.cfg.Batch})
	if err != nil {
		c = Claim{}
	}
	w.schedule.done(r, c)
	if len(c.Events) == 0 {
		w.outstanding.Add(-1)
		<-w.places
		return err
	}
	w.cfg.Observer.Claimed(r.eventType, len(c.Events), time.Since(asked))
	w.inFlight.Add(int64(len(c.Events)))
	w.publishing.Go(func() { w.publish(sending, c, until, asked.Add(w.cfg.Lease)) })
	return nil
}

// publish sends a claim and hands what came of it to the settler.
func (w *Worker) publish(sending context.Context, c Claim, until, leaseOver time.Time) {
	started := time.Now()
	ctx, cancel := context.WithDeadlineCause(sending, until, ErrDeadline)
	outcomes := w.cfg.Publisher.Publish(ctx, c.Events)
	cancel()
	w.cfg.Observer.Published(c.Receipt.EventType, outcomes, time.Since(started))
	w.report(c, outcomes)
	w.inFlight.Add(-int64(len(c.Events)))
	w.endings <- ending{settlement: settlement(c, outcomes, w.cfg.MaxAttempts), leaseOver: leaseOver}
	<-w.places
}

// report says what a person should know of the outcomes, and lets the event
// type rest when its batch did not go out.
func (w *Worker) report(c Claim, outcomes []Outcome) {
	if len(outcomes) != len(c.Events) {
		w.log.Error("the publisher broke its contract; events without an outcome count as unsent",
			zap.Int("events", len(c.Events)), zap.Int("outcomes", len(outcomes)))
	}
	t := count(len(c.Events), outcomes)
	switch {
	case t.unsent == 0:
		w.cooldown.passed(c.Receipt.EventType)
	case !errors.Is(t.unsentErr, errGraceOver):
		w.cooldown.failed(c.Receipt.EventType, t.unsentErr)
	}
	if t.refused+t.failed == 0 {
		return
	}
	for i, o := range outcomes {
		if o.Verdict == Refused || o.Verdict == Failed {
			w.log.Warn("events could not be published",
				zap.String("event_type", c.Receipt.EventType),
				zap.Int("refused", t.refused), zap.Int("failed", t.failed), zap.Int("of", len(c.Events)),
				zap.Int64("first_id", c.Events[i].ID), zap.Error(o.Err))
			return
		}
	}
}

// nextRound draws a round from the schedule; while the cycle is over, one lane
// looks for work and the others wait for what it finds.
func (w *Worker) nextRound(ctx context.Context, drained func()) (round, bool) {
	for ctx.Err() == nil {
		if !w.settleBarred.Load() {
			if r, ok := w.schedule.next(); ok {
				return r, true
			}
		}
		select {
		case w.probing <- struct{}{}:
		case <-ctx.Done():
			return round{}, false
		}
		w.refill(ctx, drained)
		<-w.probing
	}
	return round{}, false
}

// refill starts the next cycle. The pause before it is the longer the emptier
// the last one was: a backlog is drained without pause, and a trickle is moved
// in few small batches instead of one claim an event.
func (w *Worker) refill(ctx context.Context, drained func()) {
	if w.settleBarred.Load() {
		w.tryToUnbar(ctx)
		return
	}
	if w.schedule.open() {
		return // another lane was quicker
	}
	pause := idlePause(w.cfg.IdlePoll, w.schedule.claimed(), w.cfg.Batch)
	if !sleepUnless(ctx, pause, w.schedule.deepened) {
		return
	}
	open := w.outstanding.Load()
	types, err := w.catalog.pending(ctx, w.cfg.Store, w.cfg.Drain)
	if err != nil {
		if ctx.Err() == nil {
			w.claims.failed(err)
		}
		w.schedule.begin(nil)
		sleep(ctx, pauseHint(err))
		return
	}
	w.claims.passed()
	if w.cfg.Drain && len(types) == 0 && open == 0 {
		w.log.Info("drained: nothing is pending and nothing in flight")
		drained()
		return
	}
	w.schedule.begin(w.cooldown.awake(types))
}

// idlePause is IdlePoll after an empty cycle and nothing after one that filled
// a batch. It varies upwards by a fifth, so that several workers do not look at
// the same moment.
func idlePause(poll time.Duration, claimed, batch int) time.Duration {
	if claimed >= batch {
		return 0
	}
	d := time.Duration(float64(poll) * (1 - float64(claimed)/float64(batch)))
	return d + time.Duration(rand.Int64N(int64(d/5)+1))
}

// tryToUnbar asks the database whether settling is allowed by now.
func (w *Worker) tryToUnbar(ctx context.Context) {
	if !sleep(ctx, 2*time.Second) {
		return
	}
	if err := w.cfg.Store.Check(ctx); err != nil {
		if ctx.Err() == nil {
			w.settles.failed(err)
		}
		return
	}
	w.settleBarred.Store(false)
	w.settles.passed()
}
