package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

// telemetry is what leaves the process by OpenTelemetry's own variables
// (opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables).
// Without any of them nothing does: Container Apps has no collector by itself,
// and an exporter that finds none fills the log.
type telemetry struct {
	resource *resource.Resource
	metrics  sdkmetric.Reader      // nil without an exporter
	spans    sdktrace.SpanExporter // nil without an exporter
}

func newTelemetry(ctx context.Context, owner string) (t telemetry, err error) {
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last and win.
	t.resource, err = resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "outbox-worker"), attribute.String("service.version", BuildVersion()), attribute.String("service.instance.id", owner)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return t, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if exports("METRICS") {
		if t.metrics, err = autoexport.NewMetricReader(ctx); err != nil {
			return t, fmt.Errorf("export metrics (OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_…): %w", err)
		}
	}
	if exports("TRACES") {
		if t.spans, err = autoexport.NewSpanExporter(ctx); err != nil {
			return t, errors.Join(fmt.Errorf("export traces (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_…): %w", err), t.shutdown(ctx))
		}
	}
	return t, nil
}

// exports says whether a signal is to leave the process: its exporter or an
// endpoint is named.
func exports(signal string) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return false
	}
	if exporter := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")) != ""
}

func (t telemetry) shutdown(ctx context.Context) (err error) {
	if t.metrics != nil {
		err = t.metrics.Shutdown(ctx)
	}
	if t.spans != nil {
		err = errors.Join(err, t.spans.Shutdown(ctx))
	}
	return err
}

// exportOutage is how long no export may have failed for the next failure to be
// another outage: metrics leave once a minute unless a variable says otherwise.
const exportOutage = 5 * time.Minute

// exportErrors logs that telemetry cannot leave the process: one line an outage.
// It is OpenTelemetry's error handler, which is one for the whole process.
type exportErrors struct {
	log *zap.Logger

	mu   sync.Mutex
	last time.Time
}

// Handle implements otel.ErrorHandler.
func (e *exportErrors) Handle(err error) {
	e.mu.Lock()
	now := time.Now()
	another := now.Sub(e.last) > exportOutage
	e.last = now
	e.mu.Unlock()
	if another {
		e.log.Warn("telemetry cannot be exported; events are not affected", zap.Error(err))
	}
}
