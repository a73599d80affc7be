package service_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"azsqloutbox/cmd/outbox-dev/local"
)

// grpcCollector takes OTLP over gRPC.
type grpcCollector struct {
	metricscollector.UnimplementedMetricsServiceServer
	mu             sync.Mutex
	metrics, spans []string // names
}

func (c *grpcCollector) Export(_ context.Context, request *metricscollector.ExportMetricsServiceRequest) (*metricscollector.ExportMetricsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceMetrics {
		for _, scope := range resource.ScopeMetrics {
			for _, m := range scope.Metrics {
				c.metrics = append(c.metrics, m.Name)
			}
		}
	}
	return &metricscollector.ExportMetricsServiceResponse{}, nil
}

// grpcTraces is the other half of a grpcCollector: both have an Export.
type grpcTraces struct {
	tracecollector.UnimplementedTraceServiceServer
	of *grpcCollector
}

func (c grpcTraces) Export(_ context.Context, request *tracecollector.ExportTraceServiceRequest) (*tracecollector.ExportTraceServiceResponse, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.of.spans = append(c.of.spans, s.Name)
			}
		}
	}
	return &tracecollector.ExportTraceServiceResponse{}, nil
}

// gRPC is all that the managed OpenTelemetry agent of Container Apps takes; these
// variables, with the slash at the end, are what it puts into an app's environment
// (azure-docs, container-apps/opentelemetry-agents).
func TestOpenTelemetryOverGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &grpcCollector{}
	server := grpc.NewServer()
	metricscollector.RegisterMetricsServiceServer(server, c)
	tracecollector.RegisterTraceServiceServer(server, grpcTraces{of: c})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String()+"/")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	stack := startStack(t, local.Config{})
	enqueue(t, stack, event("order.placed", `{"n":1}`))
	drain(t, settingsFor(t, stack))

	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.metrics, "outbox.events.published") || !slices.Contains(c.spans, "outbox publish") {
		t.Errorf("metrics %v and spans %v", c.metrics, c.spans)
	}
}
