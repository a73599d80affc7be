package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"
)

const (
	// probePatience bounds one look for work: whoever looks holds up all lanes.
	probePatience = 10 * time.Second
	// barPoll is how often a lane asks whether settling works again.
	barPoll = 500 * time.Millisecond
	// pausePoll is how often a paused lane asks whether it still is; the answer
	// changes with a heartbeat.
	pausePoll = time.Second
)

// stages are the contexts of a run. Each outlives the one before it.
type stages struct {
	claiming context.Context // ends with the stop: no new round
	reading  context.Context // then claims under way
	sending  context.Context // then batches under way
	drained  func()          // ends claiming: there is nothing left
}

// lane claims until the stop, looking at it before every round. It takes a
// place first, so that no claimed batch waits with its lease running.
func (w *Worker) lane(name string, st stages) {
	defer w.pulses.rest(name)
	pause := newPause(100*time.Millisecond, 5*time.Second)
	for {
		w.pulses.rest(name) // whoever has the places is watched
		select {
		case w.places <- struct{}{}:
		case <-st.claiming.Done():
			return
		}
		w.pulses.beat(name)
		r, ok := w.nextRound(name, st)
		if !ok {
			<-w.places
			return
		}
		if err := w.claim(st, r); err != nil {
			w.claims.fail(r.eventType, err)
			w.pulses.rest(name)
			if !sleep(st.claiming, pauseFor(err, pause)) {
				return
			}
			continue
		}
		w.claims.pass(r.eventType)
		pause.Reset()
	}
}

// claim makes one claim and hands it on together with the place that the lane
// holds; when there is nothing to hand on, the place is given back.
func (w *Worker) claim(st stages, r round) error {
	// Both deadlines run on this process' monotonic clock from before the
	// request, so they end before the lease, which begins when the database
	// executes it.
	asked := time.Now()
	until := asked.Add(w.cfg.PublishDeadline)
	ctx, cancel := context.WithDeadline(st.reading, until)
	defer cancel()
	c, err := w.cfg.Store.Claim(ctx, ClaimRequest{EventType: r.eventType, After: r.after, Batch: r.batch})
	if err != nil {
		c = Claim{}
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", w.slowClaim(r.eventType, time.Since(asked)), err)
		}
	}
	w.schedule.done(r, c)
	w.paces.give(r.eventType, r.batch-len(c.Events))
	switch {
	case r.turn.probe && err == nil:
		w.breakers.probed(r.eventType, c.Events)
	case r.turn.probe:
		w.breakers.undecided(r.eventType)
	}
	if len(c.Events) == 0 {
		w.shares.give(r.eventType)
		w.outstanding.Add(-1)
		<-w.places
		return err
	}
	w.cfg.Observer.Claimed(c, time.Since(asked))
	w.inFlight.Add(int64(len(c.Events)))
	lease := w.leaseOf(c.Receipt)
	if sooner := asked.Add(LongestPublishDeadline(lease)); sooner.Before(until) {
		until = sooner
	}
	if err == nil && time.Until(until) < leastToPublish(until.Sub(asked)) {
		err = w.slowClaim(r.eventType, time.Since(asked))
		w.publishing.Go(func() { w.handBack(c, err, asked.Add(lease)) })
		return err
	}
	w.publishing.Go(func() { w.publish(st.sending, c, until, asked.Add(lease)) })
	return nil
}

// leaseOf is how long the claim is this worker's: what its receipt says, where
// the Store gives less than this worker was told. Only the distance of the two
// times counts, as they are of the database's clock.
func (w *Worker) leaseOf(r Receipt) time.Duration {
	if given := r.LeaseUntil.Sub(r.ClaimedAt); given > 0 {
		return min(given, w.cfg.Lease)
	}
	return w.cfg.Lease
}

// publish sends a claim and hands what came of it to the settler.
func (w *Worker) publish(sending context.Context, c Claim, until, leaseOver time.Time) {
	began := time.Now()
	loop := "publishing the claim " + c.Receipt.ID.String()
	w.pulses.beat(loop)
	defer w.pulses.rest(loop)
	ctx, cancel := context.WithDeadlineCause(sending, until, ErrDeadline)
	outcomes := w.cfg.Publisher.Publish(ctx, c.Events)
	cancel()
	w.cfg.Observer.Published(c, outcomes, time.Since(began))
	w.report(c, outcomes, began)
	w.inFlight.Add(-int64(len(c.Events)))
	w.shares.give(c.Receipt.EventType)
	w.endings <- &ending{settlement: settlement(c, outcomes, w.cfg.MaxAttempts), leaseOver: leaseOver}
	<-w.places
}

// leastToPublish is what a claim must leave of its publish deadline: with less, a
// healthy destination would get the blame for a slow database.
func leastToPublish(deadline time.Duration) time.Duration { return min(deadline/4, time.Second) }

func (w *Worker) slowClaim(eventType string, took time.Duration) error {
	return fmt.Errorf("a claim of %q took %s of the publish deadline of %s, so nothing was sent and the destination was not tried: the database is slow or far away; raise the lease (--lease, now %s), or --publish-deadline where it is set",
		eventType, took.Round(time.Millisecond), w.cfg.PublishDeadline, w.cfg.Lease)
}

// handBack ends a claim of which nothing was sent.
func (w *Worker) handBack(c Claim, why error, leaseOver time.Time) {
	outcomes := slices.Repeat([]Outcome{{Verdict: Unsent, Err: why}}, len(c.Events))
	w.breakers.undecided(c.Receipt.EventType)
	w.inFlight.Add(-int64(len(c.Events)))
	w.shares.give(c.Receipt.EventType)
	w.endings <- &ending{settlement: settlement(c, outcomes, w.cfg.MaxAttempts), leaseOver: leaseOver}
	<-w.places
}

// report says what a person should know of the outcomes, and opens the breaker
// when a batch did not go out for its destination's sake.
func (w *Worker) report(c Claim, outcomes []Outcome, began time.Time) {
	if len(outcomes) != len(c.Events) {
		w.log.Error("the publisher broke its contract; events without an outcome count as unsent",
			zap.Int("events", len(c.Events)), zap.Int("outcomes", len(outcomes)))
	}
	t := count(len(c.Events), outcomes)
	w.rates.add(c.Receipt.EventType, t.sent)
	switch {
	case t.unsent == 0 && t.sent+t.failed > 0:
		w.breakers.passed(c.Receipt.EventType, began)
	case t.unsent == 0: // refused for their own sake: that says nothing of the destination
		w.breakers.undecided(c.Receipt.EventType)
	case errors.Is(t.unsentErr, errGraceOver):
	case t.sent > 0 && doubtful(t.unsentErr):
		// The destination took the others. What it did not take may be a message's
		// own doing, and the publisher goes on to find out which: with the next
		// claim, where this one was a probe.
		w.breakers.undecided(c.Receipt.EventType)
	default:
		w.breakers.failed(c.Receipt.EventType, t.unsentErr)
		down := w.cfg.Destination(c.Receipt.EventType)
		w.schedule.rest(func(t string) bool { return w.cfg.Destination(t) == down })
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
// looks for work and the others wait for what it finds. The round counts as
// outstanding from before it is drawn, so that a drain never sees none between
// the drawing and the claim.
func (w *Worker) nextRound(name string, st stages) (round, bool) {
	ctx, trial := st.claiming, false
	for ctx.Err() == nil {
		w.pulses.beat(name)
		if w.bar.closed() && !trial {
			if trial = w.bar.trial(); !trial {
				w.pulses.rest(name)
				sleep(ctx, barPoll)
				continue
			}
		}
		w.outstanding.Add(1)
		if r, ok := w.schedule.next(w.shares.full); ok {
			if trial {
				r.batch = 1
			}
			if r.batch = w.paces.take(r.eventType, r.batch); r.batch > 0 {
				w.shares.take(r.eventType)
				return r, true
			}
			w.schedule.done(r, Claim{}) // its destination has had its events for now
			if r.turn.probe {
				w.breakers.undecided(r.eventType)
			}
			w.outstanding.Add(-1)
			continue
		}
		w.outstanding.Add(-1)
		w.pulses.rest(name) // whoever looks for work is watched
		select {
		case w.probing <- struct{}{}:
		case <-ctx.Done():
			return round{}, false
		}
		w.refill(name, st)
		<-w.probing
	}
	return round{}, false
}

// refill starts the next cycle. The pause before it is the longer the emptier
// the last one was: a backlog is drained without pause, and a trickle is moved
// in few small batches instead of one claim an event.
func (w *Worker) refill(name string, st stages) {
	ctx := st.claiming
	if w.schedule.open(w.shares.full) {
		return // another lane was quicker
	}
	if w.isPaused() {
		w.schedule.begin(nil, w.cfg.Batch, nil)
		sleep(ctx, pausePoll)
		return
	}
	if !sleepUnless(ctx, idlePause(w.cfg.IdlePoll, w.schedule.claimed(), w.cfg.Batch), w.schedule.deepened) {
		return
	}
	w.pulses.beat(name)
	defer w.pulses.rest(name)
	idle := w.outstanding.Load() == 0
	call, cancel := context.WithTimeout(ctx, probePatience)
	types, receipts, err := w.look(call, idle)
	if err == nil {
		err = w.comparePauses(call, types)
	}
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			w.probes.failed(err)
		}
		w.schedule.begin(nil, w.cfg.Batch, nil)
		w.pulses.rest(name)
		sleep(ctx, pauseFor(err, w.probePause))
		return
	}
	w.probes.passed()
	w.probePause.Reset()
	seen := slices.Clone(types)
	w.left.Store(&seen)
	if w.cfg.Drain && idle && len(types) == 0 && receipts > 0 && w.nobodyEnds(receipts) {
		st.drained()
		return
	}
	if w.cfg.Drain && idle && len(types) == 0 && receipts == 0 {
		w.emptied.Store(true)
		w.log.Info("drained: nothing is pending of the routed event types, and no claim of any worker is open")
		st.drained()
		return
	}
	w.shares.know(w.catalog.types())
	w.breakers.want(types)
	types = w.breakers.awake(slices.DeleteFunc(types, w.pausedType))
	w.claims.keep(types)
	w.schedule.begin(types, w.cfg.Batch, w.breakers.probe)
}

// look asks which types have something pending and, for a drain with nothing in
// hand, how many claims are open. What a settlement or a lease gives back between
// the two questions is in neither answer, so that nothing is nothing only when it
// was seen twice.
func (w *Worker) look(ctx context.Context, idle bool) (types []string, receipts int, err error) {
	for range 2 {
		types, err = w.catalog.pending(ctx, w.cfg.Store, w.cfg.Drain)
		if err != nil || !w.cfg.Drain || !idle || len(types) > 0 {
			return types, 0, err
		}
		receipts, err = w.cfg.Store.OpenReceipts(ctx)
		if err != nil {
			return nil, 0, err
		}
		if receipts > 0 {
			// Claims that a dead worker left come back when their lease is over.
			w.awaiting.Do(func() {
				w.log.Info("nothing is pending, but claims of other workers are open: waiting for them or for their leases to end", zap.Int("claims", receipts))
			})
			return nil, receipts, nil
		}
	}
	return nil, 0, nil
}

// nobodyEnds says, with the error of the run, that a drain waits in vain: for a
// lease and longer, no open claim was other than overdue and unreadable, so that
// neither a worker of this version nor one of another has ended it. Whoever holds
// probing calls it.
func (w *Worker) nobodyEnds(receipts int) bool {
	unreadable := int(w.unreadable.Load())
	if receipts > unreadable {
		w.stuckSince = time.Time{}
		return false
	}
	if w.stuckSince.IsZero() {
		w.stuckSince = time.Now()
	}
	if time.Since(w.stuckSince) < w.cfg.Lease {
		return false
	}
	w.stuck = fmt.Errorf("not drained: nothing is pending, but %d claims whose leases are over cannot be read, and nobody has ended them for %s: their events may be unsent. outboxctl status names them, and this log (\"cannot be read\") says what is wrong with each; run a worker of the version that wrote them",
		receipts, time.Since(w.stuckSince).Round(time.Second))
	return true
}

// idlePause is IdlePoll after an empty cycle and nothing after one that filled
// a batch. It is an eighth longer, so that with the default and all housekeeping
// an idle worker stays below four statements a second, and varies by a twentieth,
// so that several workers do not look at the same moment. More would cost a lone
// event: it waits for the longest pause at worst.
func idlePause(poll time.Duration, claimed, batch int) time.Duration {
	if claimed >= batch {
		return 0
	}
	d := time.Duration(float64(poll) * (1 - float64(claimed)/float64(batch)))
	return d + d*3/40 + time.Duration(rand.Int64N(int64(d/10)+1))
}
