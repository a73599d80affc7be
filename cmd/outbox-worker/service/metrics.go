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

	named *named

	backlog atomic.Pointer[counted]
}

// counted is a backlog, what is shown of its event types, and when the count ended.
type counted struct {
	worker.Backlog
	Shown shownTypes
	at    time.Time
}

// Age is how old the numbers are.
func (c counted) Age() time.Duration { return time.Since(c.at) }

// Latency buckets in seconds: a claim takes milliseconds, a publish up to its
// deadline.
var secondsBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60}

// newMetrics serves Prometheus, and whatever else reads with OpenTelemetry. The
// event types that routes name always have series of their own.
func newMetrics(t telemetry, routed []string) (*metrics, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("set up the Prometheus exporter: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(exporter), sdkmetric.WithResource(t.resource)}
	if t.metrics != nil {
		options = append(options, sdkmetric.WithReader(t.metrics))
	}
	m := &metrics{provider: sdkmetric.NewMeterProvider(options...), registry: registry, named: newNamed(routed)}
	b := builder{meter: m.provider.Meter("azsqloutbox/worker")}
	m.claimed = b.counter("outbox.events.claimed", "{event}", "Events claimed, by event type; those beyond a hundred without a route by name are "+otherTypes+".")
	m.published = b.counter("outbox.events.published", "{event}", "Events decided, by event type and outcome (sent, refused, failed, unsent).")
	m.settled = b.counter("outbox.receipts.settled", "{receipt}", "Receipts ended by this worker.")
	m.lost = b.counter("outbox.receipts.lost", "{receipt}", "Receipts that were not settled in time and are the reaper's: their events are published twice.")
	m.reaped = b.counter("outbox.events.reaped", "{event}", "Events of receipts whose lease was over, by what became of them (returned, parked, missing).")
	m.claimSeconds = b.seconds("outbox.claim.duration", "How long a claim transaction takes.")
	m.publishSeconds = b.seconds("outbox.publish.duration", "How long publishing a claimed batch takes.")
	m.settleSeconds = b.seconds("outbox.settle.duration", "How long settling a group of claims takes.")
	m.batch = b.histogram("outbox.claim.size", "{event}", "How many events one claim took.", 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2000)
	if b.err != nil {
		return nil, b.err
	}
	// A counter that is not there yet cannot be told from one that was renamed:
	// those without attributes begin at zero.
	m.settled.Add(context.Background(), 0)
	m.lost.Add(context.Background(), 0)
	m.Reaped(worker.Reaped{})
	return m, nil
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Claimed implements worker.Observer.
func (m *metrics) Claimed(c worker.Claim, took time.Duration) {
	byType := metric.WithAttributes(attribute.String("event_type", m.named.label(c.Receipt.EventType)))
	m.claimed.Add(context.Background(), int64(len(c.Events)), byType)
	m.batch.Record(context.Background(), float64(len(c.Events)))
	m.claimSeconds.Record(context.Background(), took.Seconds())
}

// Published implements worker.Observer.
func (m *metrics) Published(c worker.Claim, outcomes []worker.Outcome, took time.Duration) {
	m.publishSeconds.Record(context.Background(), took.Seconds())
	counts := make(map[worker.Verdict]int64, 1)
	for _, o := range outcomes {
		counts[o.Verdict]++
	}
	for verdict, n := range counts {
		m.published.Add(context.Background(), n, metric.WithAttributes(
			attribute.String("event_type", m.named.label(c.Receipt.EventType)), attribute.Stringer("outcome", verdict)))
	}
}

// Settled implements worker.Observer.
func (m *metrics) Settled(receipts []worker.Receipt, lost int, took time.Duration) {
	m.settled.Add(context.Background(), int64(len(receipts)-lost))
	m.lost.Add(context.Background(), int64(lost))
	if took > 0 { // a claim that was given up took none
		m.settleSeconds.Record(context.Background(), took.Seconds())
	}
}

// Reaped implements worker.Observer.
func (m *metrics) Reaped(r worker.Reaped) {
	for what, n := range map[string]int{"returned": r.Returned, "parked": r.Parked, "missing": len(r.Missing)} {
		m.reaped.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("became", what)))
	}
}
