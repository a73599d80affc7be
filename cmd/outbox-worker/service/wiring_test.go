package service

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// Every setting of claiming reaches those who go by it.
func TestSettingsReachStoreAndWorker(t *testing.T) {
	file := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(file, []byte("routes:\n  - {event-type: paid, entity: payments, rate: 7}\n  - {event-type: placed, entity: orders}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := DefaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	maxInFlight, deadline := 9, 11*time.Second
	settings.SQL.DSN = "sqlserver://sa:pw@127.0.0.1:1?database=shop"
	settings.SQL.Schema, settings.SQL.Table = "sales", "events"
	settings.SQL.MaxEventBytes, settings.SQL.MaxBatchBytes = 2048, 4096
	settings.ServiceBus.ConnectionString = "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=c2VjcmV0"
	settings.ServiceBus.Config, settings.ServiceBus.Rate = file, 3
	settings.Claim = ClaimSettings{
		Lanes: 3, Batch: 44, MaxRounds: 5, MaxInFlight: &maxInFlight, Lease: 40 * time.Second, PublishDeadline: &deadline,
		IdlePoll: 6 * time.Second, ReapEvery: 7 * time.Second, MaxAttempts: 8, Drain: true,
	}
	settings.Process.Grace = 12 * time.Second
	s, err := New(settings, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	routes, err := settings.ServiceBus.routes()
	if err != nil {
		t.Fatal(err)
	}

	got := s.workerConfig(routes)
	want := worker.Config{
		EventTypes: []string{"paid", "placed"}, Lanes: 3, Batch: 44, MaxRounds: 5, MaxInFlight: maxInFlight,
		Lease: 40 * time.Second, PublishDeadline: deadline, Grace: 12 * time.Second, IdlePoll: 6 * time.Second, ReapEvery: 7 * time.Second,
		MaxAttempts: 8, Drain: true,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(worker.Config{}, "Store", "Publisher", "Observer", "Logger", "Destination", "Rate")); diff != "" {
		t.Errorf("the worker's configuration (-want +got):\n%s", diff)
	}
	if a, b := got.Rate("payments"), got.Rate("orders"); a != 7 || b != 3 {
		t.Errorf("the rates are %g and %g, want 7 by its route and 3 by the setting", a, b)
	}
	if d := got.Destination("paid"); d != "payments" {
		t.Errorf("the destination is %q", d)
	}

	store := s.storeConfig(routes, "me", "shop.sales.events")
	wantStore := sqlserver.Config{
		Owner: "me", Version: heartbeatVersion(), Source: "shop.sales.events", Destinations: []string{"payments", "orders"},
		Names: settings.SQL.Names(), Lease: 40 * time.Second, MaxEventBytes: 2048, MaxBatchBytes: 4096, MaxAttempts: 8,
	}
	if diff := cmp.Diff(wantStore, store, cmpopts.IgnoreFields(sqlserver.Config{}, "DB", "Logger")); diff != "" {
		t.Errorf("the store's configuration (-want +got):\n%s", diff)
	}
}

// Telemetry leaves the process only where a variable says so.
func TestWhatExports(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"nothing said":           {nil, false},
		"an exporter":            {map[string]string{"OTEL_METRICS_EXPORTER": "otlp"}, true},
		"none":                   {map[string]string{"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, false},
		"another signal's":       {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, false},
		"an endpoint":            {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true},
		"an endpoint of its own": {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, true},
		"switched off":           {map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"OTEL_SDK_DISABLED", "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
				t.Setenv(variable, c.env[variable])
			}
			if got := exports("METRICS"); got != c.want {
				t.Errorf("exports is %v", got)
			}
		})
	}
}
