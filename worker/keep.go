package worker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	unroutedEvery = 30 * time.Second
	// keeperPatience bounds one housekeeping call, so that a hanging connection
	// does not end it for good.
	keeperPatience = 30 * time.Second
	// mostNames is how many event types a log line names.
	mostNames = 20
	// leavePatience bounds what the last statement adds to a stop.
	leavePatience = 5 * time.Second
)

// keep starts what the table needs from time to time; all of it ends with ctx.
// A paused worker only shows that it is there, and listens.
func (w *Worker) keep(ctx context.Context, wg *sync.WaitGroup) {
	unpaused := func(do func(context.Context)) func(context.Context) {
		return func(ctx context.Context) {
			if !w.isPaused() {
				do(ctx)
			}
		}
	}
	wg.Go(func() { w.every(ctx, "the heartbeat", w.cfg.HeartbeatEvery, w.heartbeat) })
	wg.Go(func() {
		var due bool
		w.every(ctx, "reaping", w.cfg.ReapEvery,
			unpaused(func(ctx context.Context) { due = w.reap(ctx) }),
			unpaused(func(ctx context.Context) { w.retry(ctx, due) }))
	})
	if !w.cfg.Discover {
		wg.Go(func() { w.every(ctx, "the look for event types without a route", unroutedEvery, w.reportUnrouted) })
	}
}

// every takes its steps, one after the other, at once and then about every
// interval, varied by a tenth so that workers started together drift apart. Each
// step has keeperPatience for itself; one that does not come back shows as loop.
func (w *Worker) every(ctx context.Context, loop string, interval time.Duration, steps ...func(context.Context)) {
	for {
		for _, do := range steps {
			w.pulses.beat(loop)
			call, cancel := context.WithTimeout(ctx, keeperPatience)
			do(call)
			cancel()
		}
		w.pulses.rest(loop)
		jitter := time.Duration(rand.Int64N(int64(interval)/5+1)) - interval/10
		if !sleep(ctx, interval+jitter) {
			return
		}
	}
}

// reap gives back what others left, and says whether failed events are due. The
// store logs each receipt; here they are counted.
func (w *Worker) reap(ctx context.Context) (retryDue bool) {
	r, err := w.cfg.Store.Reap(ctx)
	if r.Receipts > 0 {
		w.cfg.Observer.Reaped(r)
	}
	if err == nil {
		w.unreadable.Store(int64(r.Unreadable))
	}
	w.note(ctx, w.reaps, err)
	if err == nil && !r.RetryDue {
		w.retries.passed() // what this worker failed to bring back, another one did
	}
	return r.RetryDue
}

// retry brings back what failed long enough ago.
func (w *Worker) retry(ctx context.Context, due bool) {
	if due {
		_, err := w.cfg.Store.RetryDue(ctx)
		w.note(ctx, w.retries, err)
	}
}

func (w *Worker) heartbeat(ctx context.Context) { w.note(ctx, w.beats, w.beat(ctx)) }

// beat writes this worker's row and takes what people have told the workers.
func (w *Worker) beat(ctx context.Context) error {
	w.beaten.Store(true)
	waits := w.controls.waits()
	told, err := w.cfg.Store.Heartbeat(ctx, Heartbeat{
		Lanes: w.cfg.Lanes, InFlight: int(w.inFlight.Load()), Paused: waits, Trouble: w.trouble(),
		Breakers: w.breakers.list(), Unrouted: w.catalog.unroutedTypes(), Rates: w.rates.take(),
	})
	if err != nil {
		return err
	}
	changes := w.controls.set(told)
	if err := w.comparePauses(ctx, w.catalog.types()); err != nil {
		return err
	}
	w.schedule.rest(w.pausedType)
	for _, c := range changes {
		c.say(w.log)
	}
	if waits && !w.controls.waits() {
		return w.beat(ctx) // the row says still that it waits
	}
	return nil
}

// leave takes this worker's row away: it has stopped, and a row that stays is of
// one that was killed. Where the database does not answer any more, that is no
// reason to wait.
func (w *Worker) leave(ctx context.Context) {
	if !w.beaten.Load() || w.beats.err() != nil || w.settles.err() != nil {
		return
	}
	call, cancel := context.WithTimeout(ctx, min(leavePatience, w.cfg.Grace))
	defer cancel()
	if err := w.cfg.Store.Leave(call); err != nil {
		w.log.Info("this worker's heartbeat stays in the table for a day: it could not be deleted", zap.Error(err))
	}
}

func (w *Worker) isPaused() bool {
	_, paused := w.controls.allPaused()
	return paused
}

func (w *Worker) pausedType(eventType string) bool {
	return w.controls.paused(eventType, w.cfg.Destination(eventType))
}

func (w *Worker) reportUnrouted(ctx context.Context) {
	types, news, err := w.catalog.findUnrouted(ctx, w.cfg.Store)
	if err == nil && news && len(types) > 0 {
		w.log.Warn("events are pending that no route names; they wait until one does", zap.Int("types", len(types)), zap.Strings("event_types", types[:min(len(types), mostNames)]))
	}
	w.note(ctx, w.looks, err)
}

// note keeps the outage; an error that the stop itself caused is none.
func (w *Worker) note(ctx context.Context, o *outage, err error) {
	switch {
	case err == nil:
		o.passed()
	case context.Cause(ctx) != context.Canceled:
		o.failed(err)
	}
}
