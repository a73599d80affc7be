package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
)

// Worker claims, publishes and settles until it is stopped. Make it with New.
type Worker struct {
	cfg Config
	log *zap.Logger

	schedule *schedule
	breakers *breakers
	paces    *paces
	shares   *shares
	controls controls
	pulses   pulses
	rates    rates
	catalog  *catalog

	probing    chan struct{}               // held by the one lane that looks for work
	probePause *backoff.ExponentialBackOff // guarded by probing
	places     chan struct{}               // one a batch on its way to the broker
	endings    chan *ending                // claims to settle
	bar        bar

	publishing  sync.WaitGroup
	outstanding atomic.Int64 // claims drawn and not settled yet
	inFlight    atomic.Int64 // events claimed and not decided yet

	awaiting sync.Once // the one log line of a drain that waits for others

	unreadable atomic.Int64 // overdue receipts that the last reap could not read
	stuckSince time.Time    // since when a drain waits for those alone; guarded by probing
	stuck      error        // of a drain that has given up; written before all lanes end

	// left is what the last look for work found; emptied is set by a drain that ended.
	left    atomic.Pointer[[]string]
	emptied atomic.Bool

	// beaten: there may be a heartbeat of this worker in the table.
	connected, beaten, stopping atomic.Bool

	claims claims

	database, probes, settles, returns, reaps, retries, looks, beats *outage
}

// New checks the configuration and makes a Worker. It touches nothing yet.
func New(cfg Config) (*Worker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	watch := func(subject string) *outage { return &outage{subject: subject, log: cfg.Logger} }
	return &Worker{
		cfg: cfg,
		log: cfg.Logger,
		// The first look for work comes without the pause that an empty cycle
		// earns.
		schedule:   newSchedule(cfg.MaxRounds, cfg.Batch),
		breakers:   newBreakers(cfg.Logger, cfg.Destination, cfg.PublishDeadline+probePatience),
		paces:      newPaces(cfg.Rate, cfg.Destination),
		shares:     newShares(cfg.Destination, cfg.MaxInFlight),
		controls:   controls{waiting: cfg.Paused},
		catalog:    newCatalog(cfg.EventTypes, cfg.Discover),
		probing:    make(chan struct{}, 1),
		probePause: newPause(100*time.Millisecond, 5*time.Second),
		places:     make(chan struct{}, cfg.MaxInFlight),
		endings:    make(chan *ending, 4*cfg.MaxInFlight),
		database:   watch("the database"),
		probes:     watch("looking for pending events"),
		claims:     claims{outage: watch("claiming")},
		settles:    watch("settling claims that were sent"),
		returns:    watch("settling claims that were not sent whole"),
		reaps:      watch("reaping"),
		retries:    watch("bringing back failed events"),
		looks:      watch("looking for event types without a route"),
		beats:      watch("the heartbeat"),
	}, nil
}

// Run works until ctx ends, then finishes or gives back what is in hand within
// the grace period and returns nil. With Drain it also returns nil once nothing
// is pending of the types it claims and no claim of any worker is open; and an error
// where all claims that are open have been overdue and unreadable for a lease, or where
// ctx ended before that. Its last
// act is to delete its heartbeat. It returns an error that wraps ErrPermanent when
// the database says at the start that this worker cannot work; a database that is
// only not there yet is waited for. Run is called once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.connect(ctx); err != nil {
		w.leave(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			return w.undrained()
		}
		return err
	}

	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	// What is in hand outlives the stop: first claims under way are given up,
	// then sends, then settling, so that all is over within the grace period.
	outlast := func() (context.Context, context.CancelCauseFunc) {
		return context.WithCancelCause(context.WithoutCancel(ctx))
	}
	reading, abandonClaims := outlast()
	defer abandonClaims(nil)
	sending, abandonSends := outlast()
	defer abandonSends(nil)
	settling, abandonSettles := outlast()
	defer abandonSettles(nil)
	context.AfterFunc(claiming, func() {
		w.stopping.Store(true)
		grace := w.cfg.Grace
		// A call on a connection that hangs ends some seconds after its context.
		settles := grace - min(grace/2, 4*time.Second)
		sends := settles - min(settles/2, 5*time.Second)
		timers := []*time.Timer{
			time.AfterFunc(min(grace*2/5, sends), func() { abandonClaims(errGraceOver) }),
			time.AfterFunc(sends, func() { abandonSends(errGraceOver) }),
			time.AfterFunc(settles, func() { abandonSettles(errGraceOver) }),
		}
		context.AfterFunc(settling, func() {
			for _, t := range timers {
				t.Stop()
			}
		})
	})

	var keepers, lanes sync.WaitGroup
	w.keep(claiming, &keepers)
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		(&settler{w: w}).run(settling)
	}()

	for i := range w.cfg.Lanes {
		lanes.Go(func() {
			w.lane(fmt.Sprintf("lane %d", i+1), stages{claiming: claiming, reading: reading, sending: sending, drained: stopClaiming})
		})
	}
	lanes.Wait()
	w.stopping.Store(true) // what was to do it may not have had its turn yet
	w.publishing.Wait()
	close(w.endings)
	<-settled
	keepers.Wait()
	w.leave(settling)
	if w.stuck == nil {
		return w.undrained()
	}
	return w.stuck
}

// ErrNotDrained ends a Run with Drain that was stopped before the drain was done.
var ErrNotDrained = errors.New("not drained")

// undrained is the error of a drain that was stopped before it was done; who started
// it would take its end for an empty table.
func (w *Worker) undrained() error {
	if !w.cfg.Drain || w.emptied.Load() {
		return nil
	}
	types := w.left.Load()
	if types == nil {
		return fmt.Errorf("%w: stopped before the first look for pending events", ErrNotDrained)
	}
	return fmt.Errorf("%w: stopped while events were pending or claims were open; the last look found %d event types with something pending (%q): start it again, or see outboxctl status",
		ErrNotDrained, len(*types), (*types)[:min(len(*types), mostNames)])
}

// checkPatience is long, because the check is some twenty round trips, and a
// distant database may take seconds for each.
const checkPatience = 2 * time.Minute

var errGraceOver = errors.New("the grace period of the stop is over")

// connect proves that the database can be worked with.
func (w *Worker) connect(ctx context.Context) error {
	pause := newPause(200*time.Millisecond, 10*time.Second)
	for {
		check, cancel := context.WithTimeout(ctx, checkPatience)
		err := w.cfg.Store.Check(check)
		if err == nil {
			err = w.catalog.check(check, w.cfg.Store)
		}
		if err == nil {
			// Before anything is claimed, so that a pause which is in force holds
			// for a worker that starts.
			err = w.beat(check)
		}
		cancel()
		switch {
		case err == nil:
			w.database.passed()
			w.connected.Store(true)
			if w.controls.waits() {
				w.log.Info("paused: nothing is claimed, reaped or retried", zap.String("why", startedPaused))
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrPermanent):
			return fmt.Errorf("the outbox cannot be worked with: %w", err)
		}
		w.database.failed(err)
		if !sleep(ctx, pauseFor(err, pause)) {
			return ctx.Err()
		}
	}
}

// Ready says what does not work at the moment, a single destination included;
// nil when all does. It may be called at any time, before and after Run too.
func (w *Worker) Ready() error { return errors.Join(w.Working(), w.breakers.err()) }

// Working is Ready without the destinations: while one of them is down, the
// worker does its work for the others.
func (w *Worker) Working() error {
	switch {
	case w.stopping.Load():
		return errors.New("stopping")
	case !w.connected.Load():
		return firstError(w.database.err(), errors.New("not connected to the database yet"))
	}
	return errors.Join(w.trouble(), w.beats.err())
}

// trouble is what of its work in the database it cannot do, though it is there to
// say so.
func (w *Worker) trouble() error {
	switch {
	case w.isPaused():
		return nil
	case w.bar.closed():
		return fmt.Errorf("claiming has stopped because settling is refused: %w", errors.Join(w.settles.err(), w.returns.err()))
	}
	return errors.Join(w.probes.err(), w.claims.outage.err(), w.settles.err(), w.reaps.err(), w.retries.err())
}

// Status is a snapshot for status pages and heartbeats.
type Status struct {
	Connected bool
	// Paused says that nothing at all is claimed, and PausedWhy in words why.
	Paused    bool
	PausedWhy string
	// Pauses are what people have paused, in whole or in part.
	Pauses []Control
	// Breakers are the destinations that do not take what they are sent.
	Breakers []Breaker
	// Events claimed and not decided yet, and claims not settled yet.
	InFlightEvents int64
	OpenClaims     int64
	// EventTypes are those that are asked for: the configured ones and those
	// found lately. Unrouted ones have something pending, but no route.
	EventTypes []string
	Unrouted   []string
}

// LearnTypes makes Status know the event types that have something pending, for
// whoever counts the backlog. It asks the table only where the worker itself has
// not for ten seconds, as in a pause; where every type has a route by name it never
// does, because those without one are looked for in a pause too. It may be called
// at any time.
func (w *Worker) LearnTypes(ctx context.Context) error { return w.catalog.learn(ctx, w.cfg.Store) }

// Status may be called at any time.
func (w *Worker) Status() Status {
	why, paused := w.controls.allPaused()
	return Status{
		Connected:      w.connected.Load(),
		Paused:         paused,
		PausedWhy:      why,
		Pauses:         w.controls.active(),
		Breakers:       w.breakers.list(),
		InFlightEvents: w.inFlight.Load(),
		OpenClaims:     w.outstanding.Load(),
		EventTypes:     w.catalog.types(),
		Unrouted:       w.catalog.unroutedTypes(),
	}
}
