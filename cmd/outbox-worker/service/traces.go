package service

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"azsqloutbox/servicebus"
	"azsqloutbox/worker"
)

// traces makes a trace of each claim, from the claim to its settlement, with a
// link to the trace of every event's writer. It is a worker.Observer.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer

	mu   sync.Mutex
	open map[uuid.UUID]context.Context // by receipt, with the claim's span
}

// maxLinks is what the SDK keeps of a span's links by default
// (OTEL_SPAN_LINK_COUNT_LIMIT); to read more headers would be for nothing.
const maxLinks = 128

func newTraces(exporter sdktrace.SpanExporter, r *resource.Resource) *traces {
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(r))
	return &traces{provider: provider, tracer: provider.Tracer("azsqloutbox/worker"), open: make(map[uuid.UUID]context.Context)}
}

// Claimed implements worker.Observer.
func (t *traces) Claimed(c worker.Claim, took time.Duration) {
	now := time.Now()
	begun := now.Add(-took)
	ctx, _ := t.tracer.Start(context.Background(), "outbox process "+c.Receipt.EventType,
		trace.WithTimestamp(begun), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(
			attribute.String("outbox.event_type", c.Receipt.EventType),
			attribute.String("outbox.claim_id", c.Receipt.ID.String()),
			attribute.Int("messaging.batch.message_count", len(c.Events))))
	t.span(ctx, "outbox claim", begun, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[c.Receipt.ID] = ctx
}

// Published implements worker.Observer.
func (t *traces) Published(c worker.Claim, outcomes []worker.Outcome, took time.Duration) {
	t.mu.Lock()
	ctx, ok := t.open[c.Receipt.ID]
	t.mu.Unlock()
	if !ok {
		return
	}
	now := time.Now()
	_, span := t.tracer.Start(ctx, "outbox publish", trace.WithTimestamp(now.Add(-took)), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithLinks(links(c.Events)...),
		trace.WithAttributes(attribute.String("messaging.system", "servicebus"), attribute.String("messaging.operation.type", "send")))
	counts := make(map[worker.Verdict]int)
	for _, o := range outcomes {
		counts[o.Verdict]++
		if o.Err != nil && counts[o.Verdict] == 1 {
			span.SetStatus(codes.Error, o.Verdict.String()+": "+o.Err.Error())
		}
	}
	for verdict, n := range counts {
		span.SetAttributes(attribute.Int("outbox."+verdict.String(), n))
	}
	span.End(trace.WithTimestamp(now))
}

// Settled implements worker.Observer.
func (t *traces) Settled(receipts []worker.Receipt, lost int, took time.Duration) {
	now := time.Now()
	for _, r := range receipts {
		t.mu.Lock()
		ctx, ok := t.open[r.ID]
		delete(t.open, r.ID)
		t.mu.Unlock()
		if !ok {
			continue
		}
		t.span(ctx, "outbox settle", now.Add(-took), now, attribute.Int("outbox.receipts", len(receipts)), attribute.Int("outbox.receipts_lost", lost))
		trace.SpanFromContext(ctx).End(trace.WithTimestamp(now))
	}
}

// Reaped implements worker.Observer: what another worker left has no trace here.
func (t *traces) Reaped(worker.Reaped) {}

func (t *traces) span(ctx context.Context, name string, from, until time.Time, attributes ...attribute.KeyValue) {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(until))
}

// links are to the writers' spans, as far as their events' headers name them.
func links(events []worker.Event) []trace.Link {
	var out []trace.Link
	for _, e := range events {
		if len(out) == maxLinks {
			break
		}
		var carried struct {
			Traceparent string `json:"traceparent"`
			Tracestate  string `json:"tracestate"`
		}
		if len(e.Headers) == 0 || json.Unmarshal(e.Headers, &carried) != nil || carried.Traceparent == "" {
			continue
		}
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{
			servicebus.HeaderTraceparent: carried.Traceparent, "tracestate": carried.Tracestate,
		})
		if writer := trace.SpanContextFromContext(ctx); writer.IsValid() {
			out = append(out, trace.Link{SpanContext: writer, Attributes: []attribute.KeyValue{attribute.Int64("outbox.event_id", e.ID)}})
		}
	}
	return out
}
