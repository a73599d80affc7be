package service_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
)

// collector takes OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	metrics []string // names
	service string
	spans   []*tracepb.Span
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch r.URL.Path {
		case "/v1/metrics":
			var request metricscollector.ExportMetricsServiceRequest
			if err := proto.Unmarshal(body, &request); err != nil {
				t.Error(err)
			}
			for _, resource := range request.ResourceMetrics {
				for _, a := range resource.Resource.Attributes {
					if a.Key == "service.name" {
						c.service = a.Value.GetStringValue()
					}
				}
				for _, scope := range resource.ScopeMetrics {
					for _, m := range scope.Metrics {
						c.metrics = append(c.metrics, m.Name)
					}
				}
			}
		case "/v1/traces":
			var request tracecollector.ExportTraceServiceRequest
			if err := proto.Unmarshal(body, &request); err != nil {
				t.Error(err)
			}
			for _, resource := range request.ResourceSpans {
				for _, scope := range resource.ScopeSpans {
					c.spans = append(c.spans, scope.Spans...)
				}
			}
		default:
			t.Errorf("request of %s", r.URL.Path)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) named(name string) []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracepb.Span
	for _, s := range c.spans {
		if strings.HasPrefix(s.Name, name) {
			found = append(found, s)
		}
	}
	return found
}

// Each claim is a trace from the claim to its settlement, with a link to the
// trace of every event's writer; and the metrics leave with it.
func TestOpenTelemetry(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	stack := startStack(t, local.Config{})
	traced := event("order.placed", `{"n":1}`)
	traced.Headers = map[string]any{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	enqueue(t, stack, traced, event("order.placed", `{"n":2}`))
	drain(t, settingsFor(t, stack))

	roots, publishes := c.named("outbox process"), c.named("outbox publish")
	if len(roots) != 1 || len(publishes) != 1 || len(c.named("outbox claim")) != 1 || len(c.named("outbox settle")) != 1 {
		t.Fatalf("spans are %v", c.spans)
	}
	root, publish := roots[0], publishes[0]
	if len(root.ParentSpanId) != 0 || root.Name != "outbox process order.placed" {
		t.Errorf("the root is %v", root)
	}
	for _, s := range slices.Concat(publishes, c.named("outbox claim"), c.named("outbox settle")) {
		if string(s.TraceId) != string(root.TraceId) || string(s.ParentSpanId) != string(root.SpanId) {
			t.Errorf("%s is not a child of the claim's span", s.Name)
		}
		if s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s lies outside of the claim's span", s.Name)
		}
	}
	if len(publish.Links) != 1 || string(publish.Links[0].TraceId) != "\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36" {
		t.Errorf("the links are %v, want one to the writer", publish.Links)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"outbox.events.published", "outbox.publish.duration", "outbox.ready"} {
		if !slices.Contains(c.metrics, name) {
			t.Errorf("%s is not among %v", name, c.metrics)
		}
	}
	if c.service != "outbox-worker" {
		t.Errorf("the service is called %q", c.service)
	}
}

func TestTracesOfWhatIsNotSent(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/v1/traces")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	stack := startStack(t, local.Config{})
	if _, err := stack.SQL.Exec(t.Context(), `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers) VALUES (1, 'x', 'x', 'bad', '{}', 'no json')`); err != nil {
		t.Fatal(err)
	}
	drain(t, settingsFor(t, stack))
	publishes := c.named("outbox publish")
	if len(publishes) != 1 || publishes[0].Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || !strings.Contains(publishes[0].Status.Message, "refused: ") {
		t.Errorf("the spans are %v, want a publish with the reason", publishes)
	}
	if len(c.metrics) != 0 {
		t.Errorf("nobody asked for metrics, %v came", c.metrics)
	}
}

// A collector that refuses is in the log, where everything else is.
func TestACollectorThatRefusesIsLogged(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1") // many exports that fail
	stack := startStack(t, local.Config{})
	enqueue(t, stack, event("order.placed", `{"n":1}`))
	s := settingsFor(t, stack)
	s.Claim.Drain = true
	core, logged := observer.New(zap.WarnLevel)
	w, err := service.New(s, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := logged.FilterMessageSnippet("telemetry").All()
	if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0].ContextMap()["error"]), "403") {
		t.Errorf("the log says %v, want one line with the reason", lines)
	}
}

// silenceable forwards connections to target until silence is called: nothing
// arrives any more then, and nobody is told.
func silenceable(t *testing.T, target string) (address string, silence func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var silent atomic.Bool
	forward := func(to, from net.Conn) {
		defer to.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			if silent.Load() {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			context.AfterFunc(t.Context(), func() { client.Close() })
			conns.Go(func() { forward(client, server) })
			conns.Go(func() { forward(server, client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Wait()
	})
	return listener.Addr().String(), func() { silent.Store(true) }
}

// A broker that answers nothing, not even a close, does not cost the last
// metrics.
func TestASilentBrokerDoesNotCostTheLastMetrics(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	stack := startStack(t, local.Config{})
	s := settingsFor(t, stack)
	address, silence := silenceable(t, stack.Bus.Addr())
	s.ServiceBus.ConnectionString = strings.Replace(s.ServiceBus.ConnectionString, stack.Bus.Addr(), address, 1)
	enqueue(t, stack, event("order.placed", "{}"))
	stop := runService(t, s)
	eventually(t, "the event arrives", func() bool { return stack.Bus.Counts(local.Entity).Active == 1 })
	silence()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.metrics, "outbox.ready") {
		t.Errorf("the metrics that came are %v", c.metrics)
	}
}

func TestWrongTelemetryIsASettingThatCannotBe(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "carrier-pigeon")
	_, err := service.New(settingsFor(t, startStack(t, local.Config{})), zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "OTEL_METRICS_EXPORTER") {
		t.Errorf("got %v", err)
	}
}
