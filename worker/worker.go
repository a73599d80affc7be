package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Worker claims, publishes and settles until it is stopped. Make it with New.
type Worker struct {
	cfg Config
	log *zap.Logger

	schedule *schedule
	cooldown *cooldown
	catalog  *catalog

	probing chan struct{} // held by the one lane that looks for work
	places  chan struct{} // one a batch on its way to the broker
	endings chan ending   // claims to settle

	publishing  sync.WaitGroup
	outstanding atomic.Int64 // claims asked for and not settled yet
	inFlight    atomic.Int64 // events claimed and not decided yet

	connected atomic.Bool
	// settleBarred stops claiming after a settle failed for a reason that no
	// waiting mends: every further lease would only be published twice.
	settleBarred atomic.Bool

	claims, settles, reaps, beats *outage
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
		schedule: newSchedule(cfg.MaxRounds, cfg.Batch),
		cooldown: newCooldown(cfg.Logger),
		catalog:  newCatalog(cfg.EventTypes, cfg.Discover),
		probing:  make(chan struct{}, 1),
		places:   make(chan struct{}, cfg.MaxInFlight),
		endings:  make(chan ending, 4*cfg.MaxInFlight),
		claims:   watch("claiming"),
		settles:  watch("settling"),
		reaps:    watch("reaping"),
		beats:    watch("the heartbeat"),
	}, nil
}

// Run works until ctx ends, then finishes or gives back what is in hand within
// the grace period and returns nil. With Drain it also returns nil once the
// table is empty. It returns an error that wraps ErrPermanent when the database
// says at the start that this worker cannot work; a database that is only not
// there yet is waited for. Run is called once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}

	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	// What is in hand outlives the stop: sending ends a little before the grace
	// period does, settling with it.
	sending, abandonSends := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandonSends(nil)
	settling, abandonSettles := context.WithCancel(context.WithoutCancel(ctx))
	defer abandonSettles()
	context.AfterFunc(claiming, func() {
		reserve := min(w.cfg.Grace/4, 5*time.Second)
		sends := time.AfterFunc(w.cfg.Grace-reserve, func() { abandonSends(errGraceOver) })
		settles := time.AfterFunc(w.cfg.Grace, abandonSettles)
		context.AfterFunc(settling, func() { sends.Stop(); settles.Stop() })
	})

	var keepers, lanes sync.WaitGroup
	w.keep(claiming, &keepers)
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		w.settle(settling)
	}()

	if w.cfg.Paused {
		w.log.Info("paused: connected, but nothing is claimed, reaped or retried")
		<-claiming.Done()
	} else {
		for range w.cfg.Lanes {
			lanes.Go(func() { w.lane(claiming, sending, stopClaiming) })
		}
	}
	lanes.Wait()
	stopClaiming()
	if n := w.inFlight.Load(); n > 0 {
		w.log.Info("stopping: finishing what is in hand", zap.Int64("events", n), zap.Duration("grace", w.cfg.Grace))
	}
	w.publishing.Wait()
	close(w.endings)
	<-settled
	keepers.Wait()
	return nil
}

var errGraceOver = errors.New("the grace period of the stop is over")

// connect proves that the database can be worked with.
func (w *Worker) connect(ctx context.Context) error {
	database := &outage{subject: "the database", log: w.log}
	pause := newPause(200*time.Millisecond, 10*time.Second)
	for {
		check, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := w.cfg.Store.Check(check)
		if err == nil {
			err = w.catalog.check(check, w.cfg.Store)
		}
		cancel()
		switch {
		case err == nil:
			database.passed()
			w.connected.Store(true)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrPermanent):
			return fmt.Errorf("the outbox cannot be worked with: %w", err)
		}
		database.failed(err)
		w.claims.failed(err)
		if !sleep(ctx, pauseFor(err, pause)) {
			return ctx.Err()
		}
	}
}

// Ready says why this worker does not do its work at the moment; nil when it
// does. It may be called at any time, before and after Run too.
func (w *Worker) Ready() error {
	if !w.connected.Load() {
		return firstError(w.claims.err(), errors.New("not connected to the database yet"))
	}
	if w.settleBarred.Load() {
		return fmt.Errorf("claiming has stopped because settling is refused: %w", w.settles.err())
	}
	return errors.Join(w.claims.err(), w.cooldown.err())
}

// Status is a snapshot for status pages and heartbeats.
type Status struct {
	Connected bool
	Paused    bool
	// Events claimed and not decided yet, and claims not settled yet.
	InFlightEvents int64
	OpenClaims     int64
	// EventTypes are those that are asked for: the configured ones and those
	// found lately. Unrouted ones have something pending, but no route.
	EventTypes []string
	Unrouted   []string
}

// Status may be called at any time.
func (w *Worker) Status() Status {
	return Status{
		Connected:      w.connected.Load(),
		Paused:         w.cfg.Paused,
		InFlightEvents: w.inFlight.Load(),
		OpenClaims:     w.outstanding.Load(),
		EventTypes:     w.catalog.types(),
		Unrouted:       w.catalog.unroutedTypes(),
	}
}
