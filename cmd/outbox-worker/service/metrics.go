package service

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"azsqloutbox/worker"
)

// metrics is a worker.Observer that counts with OpenTelemetry and serves the
// result to Prometheus. It may be used from many goroutines.
type metrics struct {
	provider *sdkmetric.MeterProvider
	registry *prometheus.Registry

	claimed, published, settled, lost, reaped          metric.Int64Counter
	claimSeconds, publishSeconds, settleSeconds, batch metric.Float64Histogram

	backlog atomic.Pointer[worker.Backlog]
}

// Latency buckets in seconds: a claim takes milliseconds, a publish up to its
// deadline.
var secondsBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60}

func newMetrics() (*metrics, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("set up the Prometheus exporter: %w", err)
	}
	m := &metrics{
		provider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
		registry: registry,
	}
	b := builder{meter: m.provider.Meter("azsqloutbox/worker")}
	m.claimed = b.counter("outbox.events.claimed", "{event}", "Events claimed, by event type.")
	m.published = b.counter("outbox.events.published", "{event}", "Events decided, by event type and outcome (sent, refused, failed, unsent).")
	m.settled = b.counter("outbox.receipts.settled", "{receipt}", "Receipts ended by this worker.")
	m.lost = b.counter("outbox.receipts.lost", "{receipt}", "Receipts that the reaper took before they were settled: their events are published twice.")
	m.reaped = b.counter("outbox.events.reaped", "{event}", "Events of receipts whose lease was over, by what became of them (returned, parked, missing).")
	m.claimSeconds = b.seconds("outbox.claim.duration", "How long a claim transaction takes.")
	m.publishSeconds = b.seconds("outbox.publish.duration", "How long publishing a claimed batch takes.")
	m.settleSeconds = b.seconds("outbox.settle.duration", "How long settling a group of claims takes.")
	m.batch = b.histogram("outbox.claim.size", "{event}", "Events a claim.", 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2000)
	if b.err != nil {
		return nil, b.err
	}
	// A counter that is not there yet cannot be told from one that was renamed:
	// those without attributes begin at zero.
	m.settled.Add(context.Background(), 0)
	m.lost.Add(context.Background(), 0)
	return m, nil
}

// watch adds the gauges that are read when somebody looks.
func (m *metrics) watch(w *worker.Worker) error {
	b := builder{meter: m.provider.Meter("azsqloutbox/worker")}
	inFlight := b.gauge("outbox.events.in_flight", "{event}", "Events claimed and not decided yet.")
	ready := b.gauge("outbox.ready", "", "1 while the worker does its work.") // a unit of 1 would make its name outbox_ready_ratio
	backlog := b.gauge("outbox.backlog", "{event}", fmt.Sprintf("Pending events by event type; counting stops at %d.", worker.BacklogCountCap))
	total := b.gauge("outbox.backlog.total", "{event}", "Pending events of all types, as the catalog counts the claim index.")
	oldest := b.floatGauge("outbox.oldest_event.age", "s", "How long the event with the lowest id has been pending, by event type.")
	if b.err != nil {
		return b.err
	}
	_, err := b.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(inFlight, w.Status().InFlightEvents)
		if w.Ready() == nil {
			o.ObserveInt64(ready, 1)
		} else {
			o.ObserveInt64(ready, 0)
		}
		if last := m.backlog.Load(); last != nil {
			o.ObserveInt64(total, last.Total)
			for _, t := range last.Types {
				byType := metric.WithAttributes(attribute.String("event_type", t.EventType))
				o.ObserveInt64(backlog, t.Pending, byType)
				o.ObserveFloat64(oldest, t.OldestAge.Seconds(), byType)
			}
		}
		return nil
	}, inFlight, ready, backlog, total, oldest)
	return err
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Claimed implements worker.Observer.
func (m *metrics) Claimed(eventType string, events int, took time.Duration) {
	byType := metric.WithAttributes(attribute.String("event_type", eventType))
	m.claimed.Add(context.Background(), int64(events), byType)
	m.batch.Record(context.Background(), float64(events))
	m.claimSeconds.Record(context.Background(), took.Seconds())
}

// Published implements worker.Observer.
func (m *metrics) Published(eventType string, outcomes []worker.Outcome, took time.Duration) {
	m.publishSeconds.Record(context.Background(), took.Seconds())
	counts := make(map[worker.Verdict]int64, 1)
	for _, o := range outcomes {
		counts[o.Verdict]++
	}
	for verdict, n := range counts {
		m.published.Add(context.Background(), n, metric.WithAttributes(
			attribute.String("event_type", eventType), attribute.Stringer("outcome", verdict)))
	}
}

// Settled implements worker.Observer.
func (m *metrics) Settled(receipts, lost int, took time.Duration) {
	m.settled.Add(context.Background(), int64(receipts-lost))
	m.lost.Add(context.Background(), int64(lost))
	m.settleSeconds.Record(context.Background(), took.Seconds())
}

// Reaped implements worker.Observer.
func (m *metrics) Reaped(r worker.Reaped) {
	for what, n := range map[string]int{"returned": r.Returned, "parked": r.Parked, "missing": len(r.Missing)} {
		m.reaped.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("became", what)))
	}
}

// builder makes instruments and keeps the first error.
type builder struct {
	meter metric.Meter
	err   error
}

func (b *builder) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) counter(name, unit, what string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return c
}

func (b *builder) seconds(name, what string) metric.Float64Histogram {
	return b.histogram(name, "s", what, secondsBuckets...)
}

func (b *builder) histogram(name, unit, what string, buckets ...float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(buckets...))
	b.keep(err)
	return h
}

func (b *builder) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := b.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return g
}

func (b *builder) floatGauge(name, unit, what string) metric.Float64ObservableGauge {
	g, err := b.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return g
}
