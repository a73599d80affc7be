package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"azsqloutbox/worker"
)

// gauges are read when somebody looks.
type gauges struct {
	inFlight, ready, pending, total, others, failed, openReceipts, overdueReceipts metric.Int64ObservableGauge
	breakerOpen, paused                                                            metric.Int64ObservableGauge
	oldest, breakerAge                                                             metric.Float64ObservableGauge
}

// watch adds the gauges.
func (m *metrics) watch(w *worker.Worker) error {
	b := builder{meter: m.provider.Meter("azsqloutbox/worker")}
	g := gauges{
		inFlight:        b.gauge("outbox.events.in_flight", "{event}", "Events claimed by this worker and not decided yet."),
		ready:           b.gauge("outbox.ready", "", "1 while the worker does its work."), // a unit of 1 would make its name outbox_ready_ratio
		pending:         b.gauge("outbox.events.pending", "{event}", fmt.Sprintf("Pending events by event type, and whether a route names it; counting stops at %d, and sooner where many types are deep. %s sums up those that have no series of their own.", worker.BacklogCountCap, otherTypes)),
		total:           b.gauge("outbox.events.pending_all_types", "{event}", "Pending events of all types: the rows of the claim index by the catalog, approximate and without a bound."),
		others:          b.gauge("outbox.event_types.other", "{type}", fmt.Sprintf("Event types that %s stands for, beyond %d and those that routes name.", otherTypes, ownSeries)),
		oldest:          b.floatGauge("outbox.oldest_pending_age", "s", "How long the event with the lowest id has been pending, by event type."),
		failed:          b.gauge("outbox.events.failed", "{event}", fmt.Sprintf("Failed events by state: waiting ones come back, parked ones need a person; counting stops at %d.", worker.BacklogCountCap)),
		openReceipts:    b.gauge("outbox.receipts.open", "{receipt}", "Claims of all workers that are not settled."),
		overdueReceipts: b.gauge("outbox.receipts.overdue", "{receipt}", "Claims of all workers whose lease is over and that nobody has reaped yet."),
		breakerOpen:     b.gauge("outbox.breaker.open", "", "1 while the breaker of a destination is not closed, by destination and state; not there for those that work."),
		breakerAge:      b.floatGauge("outbox.breaker.age", "s", "How long a destination has been failing."),
		paused:          b.gauge("outbox.paused", "", "1 for every pause in force, by scope and name."),
	}
	if b.err != nil {
		return b.err
	}
	_, err := b.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		g.observe(o, w)
		if last := m.backlog.Load(); last != nil {
			g.observeBacklog(o, last)
		}
		return nil
	}, g.inFlight, g.ready, g.pending, g.total, g.others, g.oldest, g.failed, g.openReceipts, g.overdueReceipts, g.breakerOpen, g.breakerAge, g.paused)
	return err
}

func (g gauges) observe(o metric.Observer, w *worker.Worker) {
	s := w.Status()
	o.ObserveInt64(g.inFlight, s.InFlightEvents)
	if w.Working() == nil {
		o.ObserveInt64(g.ready, 1)
	} else {
		o.ObserveInt64(g.ready, 0)
	}
	for _, b := range s.Breakers {
		o.ObserveInt64(g.breakerOpen, 1, metric.WithAttributes(attribute.String("destination", b.Destination), attribute.String("state", string(b.State))))
		o.ObserveFloat64(g.breakerAge, b.Age().Seconds(), metric.WithAttributes(attribute.String("destination", b.Destination)))
	}
	for _, p := range s.Pauses {
		o.ObserveInt64(g.paused, 1, metric.WithAttributes(attribute.String("scope", string(p.Scope)), attribute.String("name", p.Name)))
	}
	ofAll := slices.ContainsFunc(s.Pauses, func(p worker.Control) bool { return p.Scope == worker.ScopeAll })
	if s.Paused && !ofAll { // by its own --paused
		o.ObserveInt64(g.paused, 1, metric.WithAttributes(attribute.String("scope", "worker"), attribute.String("name", "")))
	}
}

func (g gauges) observeBacklog(o metric.Observer, b *counted) {
	o.ObserveInt64(g.total, b.Total)
	o.ObserveInt64(g.failed, b.Waiting, metric.WithAttributes(attribute.String("state", "waiting")))
	o.ObserveInt64(g.failed, b.Parked, metric.WithAttributes(attribute.String("state", "parked")))
	o.ObserveInt64(g.openReceipts, b.OpenReceipts)
	o.ObserveInt64(g.overdueReceipts, b.OverdueReceipts)
	pending := func(eventType string, routed bool, n int64) {
		o.ObserveInt64(g.pending, n, metric.WithAttributes(attribute.String("event_type", eventType), attribute.Bool("routed", routed)))
	}
	oldest := func(eventType string, age time.Duration) {
		o.ObserveFloat64(g.oldest, age.Seconds(), metric.WithAttributes(attribute.String("event_type", eventType)))
	}
	for _, t := range b.Shown.Own {
		pending(t.EventType, !b.Shown.unrouted[t.EventType], t.Pending)
		oldest(t.EventType, t.OldestAge)
	}
	others := b.Shown.Others
	o.ObserveInt64(g.others, int64(others.Types))
	if others.Types > 0 {
		pending(otherTypes, true, others.routed)
		pending(otherTypes, false, others.unrouted)
		oldest(otherTypes, others.OldestAge)
	}
}
